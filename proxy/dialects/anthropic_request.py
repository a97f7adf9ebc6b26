"""A Messages body in canonical form. Raises BadRequest naming the member that is malformed."""

from __future__ import annotations

from typing import Any

from proxy.canonical import (
    ChatRequest,
    Foreign,
    Message,
    ResponseFormat,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from proxy.context import ANTHROPIC, Call
from proxy.dialects import fields
from proxy.dialects.anthropic_content import cache_control, content_parts, text_parts
from proxy.dialects.fields import refused

JSON = dict[str, Any]

#: The largest top_k that makes sense.
MAX_TOP_K = 1_000_000

_MODES: dict[str, Any] = {"auto": "auto", "any": "required", "tool": "tool", "none": "none"}
#: output_config.effort -> reasoning_effort.
_EFFORTS = {"low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}


def chat_request(call: Call) -> ChatRequest:
    body = call.body
    request = ChatRequest(
        messages=[],
        system=text_parts(body.get("system"), "system"),
        max_tokens=call.max_tokens,
        temperature=fields.number(body, "temperature", 0, 2),
        top_p=fields.number(body, "top_p", 0, 1),
        top_k=fields.integer(body, "top_k", 0, MAX_TOP_K),
        stop=body.get("stop_sequences") or [],
        response_format=_response_format(body),
        user=call.user,
    )
    for number, message in enumerate(body["messages"]):
        path = f"messages[{number}].content"
        if message["role"] == "system":
            request.system += text_parts(message.get("content"), path)
        else:
            request.messages.append(Message(message["role"], content_parts(message.get("content"), path)))
    _name_results(request.messages)
    _add_tools(request, body)
    _add_thinking(request, body)
    return request


def _name_results(messages: list[Message]) -> None:
    """Results name the tool, too: some providers match them by name."""
    names: dict[str, str] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                names[part.id] = part.name
            elif isinstance(part, ToolResult):
                part.name = names.get(part.call_id)


def _add_tools(request: ChatRequest, body: JSON) -> None:
    for number, entry in enumerate(fields.objects(body, "tools", fields.MAX_TOOLS)):
        kind = entry.get("type") or "custom"
        if kind == "custom":
            request.tools.append(_tool(entry, f"tools[{number}]"))
        else:
            request.foreign_tools.append(Foreign(ANTHROPIC, str(kind)[:60], entry))
    choice = body.get("tool_choice")
    if choice is None:
        return
    kind = choice.get("type") if isinstance(choice, dict) else None
    mode = _MODES.get(kind) if isinstance(kind, str) else None
    if mode is None:
        raise refused("tool_choice.type", f"must be one of {', '.join(_MODES)}")
    name = fields.text(choice, "name", fields.MAX_MODEL_NAME)
    if mode == "tool" and not name:
        raise refused("tool_choice.name", "must name a tool")
    request.tool_choice = ToolChoice(mode, name if mode == "tool" else None)
    if fields.boolean(choice, "disable_parallel_tool_use"):
        request.parallel_tool_calls = False


def _tool(entry: JSON, path: str) -> Tool:
    name, schema, description = (entry.get(member) for member in ("name", "input_schema", "description"))
    if not isinstance(name, str) or not name:
        raise refused(f"{path}.name", "must be a text that is not empty")
    if not isinstance(schema, dict):
        raise refused(f"{path}.input_schema", "must be an object")
    return Tool(
        name=name,
        description=description if isinstance(description, str) and description else None,
        parameters=schema,
        strict=fields.boolean(entry, "strict"),
        cache_control=cache_control(entry),
    )


def _add_thinking(request: ChatRequest, body: JSON) -> None:
    """A budget stays one. Adaptive thinking is the model's own affair elsewhere, unless an effort is named."""
    thinking = _object(body, "thinking")
    kind = thinking.get("type")
    if kind == "enabled":
        request.thinking_budget = fields.integer(thinking, "budget_tokens", 1, fields.MAX_OUTPUT_TOKENS)
    elif kind != "disabled":
        effort = _object(body, "output_config").get("effort")
        request.reasoning_effort = _EFFORTS.get(effort) if isinstance(effort, str) else None


def _response_format(body: JSON) -> ResponseFormat | None:
    """output_config.format, or output_format as it was called before."""
    wanted = _object(body, "output_config").get("format") or body.get("output_format")
    if wanted is None:
        return None
    schema = wanted.get("schema") if isinstance(wanted, dict) else None
    if not isinstance(schema, dict) or wanted.get("type") != "json_schema":
        raise refused("output_config.format", "must be of type json_schema and have a schema")
    return ResponseFormat("json_schema", schema=schema)


def _object(body: JSON, name: str) -> JSON:
    value = body.get(name)
    if value is not None and not isinstance(value, dict):
        raise refused(name, "must be an object")
    return value or {}
