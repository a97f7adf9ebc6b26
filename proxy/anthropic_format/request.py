"""Writing a Messages request from the canonical form.

Not expressible and left out, because the answer is as good without: seed, penalties, log probabilities. The user's name
goes as a hash: Anthropic wants an opaque id and refuses addresses.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from proxy.anthropic_format import models
from proxy.anthropic_format.shapes import MAX_TOOL_NAME, allowed_name
from proxy.anthropic_format.thinking import thinking_members
from proxy.anthropic_format.turns import inexpressible, system_blocks, turns
from proxy.canonical import ChatRequest, ResponseFormat, Tool
from proxy.context import ANTHROPIC

JSON = dict[str, Any]

#: For callers who name no limit; the API wants one (tokens).
DEFAULT_MAX_TOKENS = 4096

#: Members of a JSON schema that hold schemas by name, and those that hold plain values.
_NAMED_SCHEMAS, _VALUES = ("properties", "$defs", "definitions"), ("enum", "const", "default", "examples")

_MODES = {"auto": "auto", "none": "none", "required": "any", "tool": "tool"}
ONLY_JSON = "Answer with one JSON object and nothing else: no words around it, no code fence."


def messages_body(request: ChatRequest, model: str, output_cap: int | None) -> JSON:
    """The body but for `stream`. Raises BadRequest for what cannot be said."""
    limit = request.max_tokens or output_cap or DEFAULT_MAX_TOKENS
    body: JSON = {"model": model, "max_tokens": limit, "messages": turns(request.messages)}
    system = system_blocks(request.system)
    _add_tools(body, request)
    _add_format(body, system, request.response_format)
    _add_thinking(body, request)
    _add_sampling(body, request)
    if system:
        body["system"] = system
    if request.stop:
        if not all(text.strip() for text in request.stop):
            raise inexpressible("a stop sequence of nothing but white space", "stop")
        body["stop_sequences"] = request.stop
    if request.user:
        body["metadata"] = {"user_id": hashlib.sha256(request.user.encode()).hexdigest()}
    return body


def original_names(request: ChatRequest | None) -> dict[str, str]:
    """Tool names that had to be written otherwise, as the provider knows them -> as the client does."""
    if request is None:
        return {}
    return {
        written: tool.name for tool in request.tools if (written := allowed_name(tool.name, MAX_TOOL_NAME)) != tool.name
    }


def _add_tools(body: JSON, request: ChatRequest) -> None:
    for foreign in request.foreign_tools:
        if foreign.dialect != ANTHROPIC:
            raise inexpressible(f"a tool of type '{foreign.type}'", "tools")
    tools = [
        *(foreign.block for foreign in request.foreign_tools),
        *(_tool(tool, body["model"]) for tool in request.tools),
    ]
    if not tools:
        return
    body["tools"] = tools
    choice = request.tool_choice
    chosen: JSON = {"type": _MODES[choice.mode] if choice else "auto"}
    if choice and choice.mode == "tool":
        chosen["name"] = allowed_name(choice.name or "", MAX_TOOL_NAME)
    if request.parallel_tool_calls is False and chosen["type"] != "none":
        chosen["disable_parallel_tool_use"] = True
    if choice or len(chosen) > 1:
        body["tool_choice"] = chosen


def _tool(tool: Tool, model: str) -> JSON:
    schema = {**(tool.parameters or {"properties": {}}), "type": "object"}
    written: JSON = {"name": allowed_name(tool.name, MAX_TOOL_NAME), "input_schema": schema}
    if tool.description:
        written["description"] = tool.description
    if tool.strict and models.takes_schema(model):
        written |= {"input_schema": closed_schema(schema), "strict": True}
    if tool.cache_control is not None:
        written["cache_control"] = tool.cache_control
    return written


def _add_format(body: JSON, system: list[JSON], wanted: ResponseFormat | None) -> None:
    """A schema is kept to by the provider where the model can; else, and for any JSON, the model is asked."""
    if wanted is None or wanted.type == "text":
        return
    schema = wanted.schema if wanted.type == "json_schema" else None
    if schema is not None and models.takes_schema(body["model"]):
        body["output_config"] = {"format": {"type": "json_schema", "schema": closed_schema(schema)}}
        return
    text = ONLY_JSON
    if schema is not None:
        text += f" It must fit this JSON schema: {msgspec.json.encode(schema).decode()}"
    system.append({"type": "text", "text": text})


def closed_schema(schema: Any) -> Any:
    """The schema with every object closed to other members, as the API demands."""
    if isinstance(schema, list):
        return [closed_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed: JSON = {}
    for name, value in schema.items():
        if name in _NAMED_SCHEMAS and isinstance(value, dict):
            closed[name] = {key: closed_schema(inner) for key, inner in value.items()}
        else:
            closed[name] = value if name in _VALUES else closed_schema(value)
    if schema.get("type") == "object":
        closed["additionalProperties"] = False
    return closed


def _add_thinking(body: JSON, request: ChatRequest) -> None:
    thinking, effort = thinking_members(request, body["model"], body["max_tokens"])
    if thinking is not None:
        body["thinking"] = thinking
    if effort is not None:
        body.setdefault("output_config", {})["effort"] = effort


def _add_sampling(body: JSON, request: ChatRequest) -> None:
    """Models that think, and the newest ones always, choose for themselves."""
    if "thinking" in body or not models.takes_sampling(body["model"]):
        return
    if request.temperature is not None:
        body["temperature"] = min(request.temperature, 1)
    both = models.takes_both_sampling_parameters(body["model"])
    if request.top_p is not None and (request.temperature is None or both):
        body["top_p"] = request.top_p
    if request.top_k is not None:
        body["top_k"] = request.top_k
