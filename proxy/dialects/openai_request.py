"""An OpenAI-style chat body in canonical form. Raises BadRequest naming the member that is malformed."""

from __future__ import annotations

from typing import Any, cast

from proxy.canonical import (
    ChatRequest,
    Foreign,
    Message,
    ResponseFormat,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from proxy.context import OPENAI, Call
from proxy.dialects import fields
from proxy.dialects.fields import refused
from proxy.dialects.openai_content import content_parts
from proxy.openai_format.shapes import read_signature, read_thinking

JSON = dict[str, Any]

_MODES = ("none", "auto", "required")
_FORMATS = ("text", "json_object", "json_schema")


def chat_request(call: Call) -> ChatRequest:
    body = call.body
    if call.choices > 1:
        raise refused("n", "must be 1 for this model")
    conversation = _Conversation()
    for number, message in enumerate(body["messages"]):
        conversation.add(message, f"messages[{number}]")
    request = ChatRequest(
        messages=conversation.messages,
        system=conversation.system,
        max_tokens=call.max_tokens,
        temperature=fields.number(body, "temperature", 0, 2),
        top_p=fields.number(body, "top_p", 0, 1),
        stop=fields.stops(body),
        seed=fields.integer(body, "seed", -(1 << 63), (1 << 63) - 1),
        frequency_penalty=fields.number(body, "frequency_penalty", -2, 2),
        presence_penalty=fields.number(body, "presence_penalty", -2, 2),
        logprobs=fields.boolean(body, "logprobs"),
        top_logprobs=fields.integer(body, "top_logprobs", 0, 20),
        parallel_tool_calls=fields.boolean(body, "parallel_tool_calls"),
        response_format=_response_format(body),
        reasoning_effort=fields.text(body, "reasoning_effort", 32),
        user=call.user,
    )
    _add_tools(request, body)
    return request


class _Conversation:
    """Messages one after the other. Tool messages, and what the user says after them, become one user message."""

    def __init__(self) -> None:
        self.system: list[Text] = []
        self.messages: list[Message] = []
        self._legacy_ids: dict[str, str] = {}  # function name -> id of its latest call

    def add(self, message: JSON, path: str) -> None:
        role = message["role"]
        if role in ("system", "developer"):
            for part in content_parts(message, path):
                if not isinstance(part, Text):
                    raise refused(f"{path}.content", "may hold text only")
                self.system.append(part)
        elif role == "assistant":
            self._append("assistant", self._assistant(message, path))
        elif role == "user":
            self._append("user", content_parts(message, path))
        else:
            self._append("user", [self._result(message, path)])

    def _append(self, role: Role, parts: list[Any]) -> None:
        last = self.messages[-1] if self.messages else None
        if role == "user" and last is not None and last.role == "user" and _has_results(last):
            last.parts += parts
        else:
            self.messages.append(Message(role, parts))

    def _assistant(self, message: JSON, path: str) -> list[Any]:
        parts: list[Any] = [*read_thinking(message), *content_parts(message, path)]
        refusal = message.get("refusal")
        if isinstance(refusal, str) and refusal:
            parts.append(Text(refusal))
        parts += _tool_calls(message, path)
        legacy = message.get("function_call")
        if isinstance(legacy, dict):
            name = _name(legacy, f"{path}.function_call")
            self._legacy_ids[name] = f"call_{len(self.messages)}"
            parts.append(ToolCall(self._legacy_ids[name], name, _arguments(legacy, f"{path}.function_call")))
        return parts

    def _result(self, message: JSON, path: str) -> ToolResult:
        name = message.get("name")
        name = name if isinstance(name, str) else None
        if message["role"] == "function":
            call_id = self._legacy_ids.get(name or "")
            if call_id is None:
                raise refused(f"{path}.name", "is no function that was called")
        else:
            call_id = message.get("tool_call_id")
            if not isinstance(call_id, str) or not call_id:
                raise refused(f"{path}.tool_call_id", "must be a text that is not empty")
        return ToolResult(call_id, content_parts(message, path), name=name)


def _has_results(message: Message) -> bool:
    return any(isinstance(part, ToolResult) for part in message.parts)


def _tool_calls(message: JSON, path: str) -> list[ToolCall]:
    found = []
    entries = message.get("tool_calls")
    if entries is not None and not isinstance(entries, list):
        raise refused(f"{path}.tool_calls", "must be a list")
    for number, entry in enumerate(entries or ()):
        place = f"{path}.tool_calls[{number}]"
        if not isinstance(entry, dict):
            raise refused(place, "must be an object")
        if entry.get("type", "function") != "function":
            raise refused(f"{place}.type", "must be 'function' for this model")
        if not isinstance(entry.get("id"), str) or not entry["id"]:
            raise refused(f"{place}.id", "must be a text that is not empty")
        function = entry.get("function")
        if not isinstance(function, dict):
            raise refused(f"{place}.function", "must be an object")
        name, arguments = _name(function, f"{place}.function"), _arguments(function, f"{place}.function")
        found.append(ToolCall(entry["id"], name, arguments, read_signature(entry)))
    return found


def _name(source: JSON, path: str) -> str:
    name = source.get("name")
    if not isinstance(name, str) or not name:
        raise refused(f"{path}.name", "must be a text that is not empty")
    return name


def _arguments(source: JSON, path: str) -> str:
    arguments = source.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        raise refused(f"{path}.arguments", "must be a text")
    return arguments or ""


def _add_tools(request: ChatRequest, body: JSON) -> None:
    for number, entry in enumerate(fields.objects(body, "tools", fields.MAX_TOOLS)):
        kind = entry.get("type", "function")
        if kind != "function":
            request.foreign_tools.append(Foreign(OPENAI, str(kind), entry))
            continue
        function = entry.get("function")
        if not isinstance(function, dict):
            raise refused(f"tools[{number}].function", "must be an object")
        request.tools.append(_tool(function, f"tools[{number}].function", entry.get("cache_control")))
    choice, param = body.get("tool_choice"), "tool_choice"
    if not request.tools and not request.foreign_tools:
        legacy = fields.objects(body, "functions", fields.MAX_TOOLS)
        request.tools = [_tool(entry, f"functions[{number}]", None) for number, entry in enumerate(legacy)]
        if legacy:
            choice, param = body.get("function_call"), "function_call"
    request.tool_choice = _tool_choice(choice, param)


def _tool(function: JSON, path: str, cache_control: Any) -> Tool:
    description, parameters, strict = (function.get(name) for name in ("description", "parameters", "strict"))
    if description is not None and not isinstance(description, str):
        raise refused(f"{path}.description", "must be a text")
    if parameters is not None and not isinstance(parameters, dict):
        raise refused(f"{path}.parameters", "must be an object")
    return Tool(
        name=_name(function, path),
        description=description,
        parameters=parameters,
        strict=fields.boolean(function, "strict") if strict is not None else None,
        cache_control=cache_control if isinstance(cache_control, dict) else None,
    )


def _tool_choice(choice: Any, param: str) -> ToolChoice | None:
    if choice is None:
        return None
    if choice in _MODES:
        return ToolChoice(cast("Any", choice))
    if isinstance(choice, dict):
        if param == "function_call":
            return ToolChoice("tool", _name(choice, param))
        if choice.get("type") == "function" and isinstance(choice.get("function"), dict):
            return ToolChoice("tool", _name(choice["function"], "tool_choice.function"))
    raise refused(param, "must be none, auto, required or name a function")


def _response_format(body: JSON) -> ResponseFormat | None:
    wanted = body.get("response_format")
    if wanted is None:
        return None
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if kind not in _FORMATS:
        raise refused("response_format.type", f"must be one of {', '.join(_FORMATS)}")
    if kind != "json_schema":
        return ResponseFormat(kind)
    source = wanted.get("json_schema")
    if not isinstance(source, dict) or not isinstance(source.get("schema", {}), dict):
        raise refused("response_format.json_schema", "must be an object with a schema")
    name, description = source.get("name"), source.get("description")
    return ResponseFormat(
        kind,
        name=name if isinstance(name, str) else None,
        schema=source.get("schema"),
        strict=fields.boolean(source, "strict"),
        description=description if isinstance(description, str) else None,
    )
