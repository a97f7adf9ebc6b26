"""A body of OpenAI's Responses API in canonical form.

Raises BadRequest naming the member that is malformed, and Inexpressible for what only OpenAI itself can do: to go on
from what it has stored, and to run tools of its own.
"""

from __future__ import annotations

from typing import Any, cast

from proxy.canonical import (
    ChatRequest,
    Message,
    ResponseFormat,
    Role,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from proxy.context import Call
from proxy.dialects import fields
from proxy.dialects.fields import refused
from proxy.dialects.responses_content import content_parts, inexpressible, thinking_of

JSON = dict[str, Any]

#: Members that go on from what OpenAI has stored.
STORED = ("previous_response_id", "conversation", "prompt")
_MODES = ("none", "auto", "required")
_FORMATS = ("text", "json_object", "json_schema")


def kind_of(item: JSON) -> Any:
    """An item's type: messages may leave it out, and so may references, which have an id only."""
    kind = item.get("type")
    if kind is None:
        return "item_reference" if "id" in item and "role" not in item else "message"
    return kind


def chat_request(call: Call) -> ChatRequest:
    body = call.body
    for name in STORED:
        if body.get(name) is not None:
            raise inexpressible(name, "it goes on from what OpenAI has stored")
    conversation = _Conversation(body.get("instructions"))
    given = body.get("input")
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    for number, item in enumerate(given or ()):
        conversation.add(item, f"input[{number}]")
    reasoning = _object(body, "reasoning") or {}
    request = ChatRequest(
        messages=conversation.messages,
        system=conversation.system,
        max_tokens=call.max_tokens,
        temperature=fields.number(body, "temperature", 0, 2),
        top_p=fields.number(body, "top_p", 0, 1),
        parallel_tool_calls=fields.boolean(body, "parallel_tool_calls"),
        response_format=_response_format(body),
        reasoning_effort=_effort(reasoning),
        user=call.user,
    )
    request.tools = [
        _tool(tool, f"tools[{n}]") for n, tool in enumerate(fields.objects(body, "tools", fields.MAX_TOOLS))
    ]
    request.tool_choice = _tool_choice(body.get("tool_choice"))
    return request


class _Conversation:
    """Items one after the other: those of the assistant become one turn, as do results of tools and what follows."""

    def __init__(self, instructions: str | None) -> None:
        self.system: list[Text] = [Text(instructions)] if instructions else []
        self.messages: list[Message] = []
        self._signatures: dict[str, str] = {}  # id of a call -> its signature

    def add(self, item: JSON, path: str) -> None:
        kind = kind_of(item)
        if kind == "message":
            self._add_message(item, path)
        elif kind == "function_call":
            self._append("assistant", [self._call(item, path)])
        elif kind == "function_call_output":
            self._append("user", [self._result(item, path)])
        elif kind == "reasoning":
            self._add_reasoning(item, path)
        else:
            raise inexpressible(f"{path}.type", f"an item of type {str(kind)[:60]!r}")

    def _add_message(self, item: JSON, path: str) -> None:
        role, parts = item["role"], content_parts(item.get("content"), f"{path}.content")
        if role in ("system", "developer"):
            for part in parts:
                if not isinstance(part, Text):
                    raise refused(f"{path}.content", "may hold text only")
                self.system.append(part)
        else:
            self._append(role, parts, message=True)

    def _add_reasoning(self, item: JSON, path: str) -> None:
        found = thinking_of(item, path)
        if isinstance(found, Thinking):
            self._append("assistant", [found])
        elif found is not None and found.call and found.signature:
            self._signatures[found.call] = found.signature

    def _append(self, role: Role, parts: list[Any], *, message: bool = False) -> None:
        last = self.messages[-1] if self.messages else None
        if last is not None and last.role == role and not (message and _is_said(last)):
            last.parts += parts
        else:
            self.messages.append(Message(role, parts))

    def _call(self, item: JSON, path: str) -> ToolCall:
        call_id = _name(item, "call_id", path)
        arguments = item.get("arguments")
        if not isinstance(arguments, str):
            raise refused(f"{path}.arguments", "must be a text")
        return ToolCall(call_id, _name(item, "name", path), arguments, self._signatures.get(call_id))

    def _result(self, item: JSON, path: str) -> ToolResult:
        name = item.get("name")
        return ToolResult(
            _name(item, "call_id", path),
            content_parts(item.get("output"), f"{path}.output"),
            name=name if isinstance(name, str) else None,
        )


def _is_said(message: Message) -> bool:
    """Whether a turn is complete: the assistant spoke and calls nothing, or the user spoke and gives no results."""
    return not any(isinstance(part, ToolCall | ToolResult) for part in message.parts) and any(
        not isinstance(part, Thinking) for part in message.parts
    )


def _name(item: JSON, name: str, path: str) -> str:
    value = item.get(name)
    if not isinstance(value, str) or not value:
        raise refused(f"{path}.{name}", "must be a text that is not empty")
    return value


def _object(body: JSON, name: str) -> JSON | None:
    value = body.get(name)
    if value is not None and not isinstance(value, dict):
        raise refused(name, "must be an object")
    return value


def _effort(reasoning: JSON) -> str | None:
    effort = reasoning.get("effort")
    if effort is not None and (not isinstance(effort, str) or len(effort) > 32):
        raise refused("reasoning.effort", "must be a text of at most 32 characters")
    return effort


def _tool(tool: JSON, path: str) -> Tool:
    kind = tool.get("type")
    if kind != "function":
        raise inexpressible(f"{path}.type", f"a tool of type {str(kind)[:60]!r}")
    description, parameters = tool.get("description"), tool.get("parameters")
    if description is not None and not isinstance(description, str):
        raise refused(f"{path}.description", "must be a text")
    if parameters is not None and not isinstance(parameters, dict):
        raise refused(f"{path}.parameters", "must be an object")
    strict = tool.get("strict")
    if strict is not None and not isinstance(strict, bool):
        raise refused(f"{path}.strict", "must be true or false")
    return Tool(name=_name(tool, "name", path), description=description, parameters=parameters, strict=strict)


def _tool_choice(choice: Any) -> ToolChoice | None:
    if choice is None:
        return None
    if isinstance(choice, str) and choice in _MODES:
        return ToolChoice(cast("Any", choice))
    if not isinstance(choice, dict):
        raise refused("tool_choice", "must be none, auto, required or name a function")
    if choice.get("type") != "function":
        raise inexpressible("tool_choice.type", f"a choice of type {str(choice.get('type'))[:60]!r}")
    return ToolChoice("tool", _name(choice, "name", "tool_choice"))


def _response_format(body: JSON) -> ResponseFormat | None:
    text = _object(body, "text")
    wanted = text.get("format") if text is not None else None
    if wanted is None:
        return None
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if kind not in _FORMATS:
        raise refused("text.format.type", f"must be one of {', '.join(_FORMATS)}")
    found = ResponseFormat(kind)
    if kind == "json_schema":
        _read_schema(found, wanted)
        _name(wanted, "name", "text.format")
    return found


def _read_schema(found: ResponseFormat, wanted: JSON) -> None:
    for name, types, words in (
        ("name", str, "must be a text"),
        ("description", str, "must be a text"),
        ("schema", dict, "must be an object"),
        ("strict", bool, "must be true or false"),
    ):
        value = wanted.get(name)
        if value is not None and not isinstance(value, types):
            raise refused(f"text.format.{name}", words)
        setattr(found, name, value)
    if found.schema is None:
        raise refused("text.format.schema", "must be an object")
