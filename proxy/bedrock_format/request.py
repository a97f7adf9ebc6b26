"""Writing a Converse request from the canonical form.

Not expressible and left out, because the answer is as good without: seed, penalties, log probabilities, the user's
name, and the wish for one tool call at a time. `tool_choice` "none" is met by offering no tools.
"""

from __future__ import annotations

from typing import Any

import msgspec

from proxy.anthropic_format.request import ONLY_JSON, closed_schema
from proxy.anthropic_format.shapes import allowed_name
from proxy.anthropic_format.turns import inexpressible
from proxy.bedrock_format import models
from proxy.bedrock_format.shapes import MAX_NAME
from proxy.bedrock_format.turns import cache_point, system_blocks, turns
from proxy.canonical import ChatRequest, ResponseFormat, Tool, ToolChoice

JSON = dict[str, Any]


def converse_body(request: ChatRequest, model: str, output_cap: int | None) -> JSON:
    """The body of Converse and ConverseStream. Raises BadRequest for what cannot be said."""
    if request.foreign_tools:
        raise inexpressible(f"a tool of type '{request.foreign_tools[0].type}'", "tools")
    choice = request.tool_choice
    with_tools = bool(request.tools) and not (choice is not None and choice.mode == "none")
    body: JSON = {"messages": turns(request.messages, model, with_tools=with_tools)}
    if with_tools:
        body["toolConfig"] = _tool_config(request.tools, choice, model)
    system = system_blocks(request.system, model)
    _add_format(body, system, request.response_format, model)
    if system:
        body["system"] = system
    _add_inference(body, request, model, request.max_tokens or output_cap)
    return body


def offered_names(request: ChatRequest | None) -> dict[str, str]:
    """The tools of the caller, as the provider knows them -> as the caller does."""
    return {} if request is None else {allowed_name(tool.name, MAX_NAME): tool.name for tool in request.tools}


def _add_inference(body: JSON, request: ChatRequest, model: str, limit: int | None) -> None:
    own = models.own_members(request, model, limit)
    config: JSON = {} if limit is None else {"maxTokens": limit}
    config |= models.sampling(request, model, thinks="thinking" in own)
    if request.stop:
        if not all(text.strip() for text in request.stop):
            raise inexpressible("a stop sequence of nothing but white space", "stop")
        config["stopSequences"] = request.stop
        if models.tells_stop_sequence(model):
            body["additionalModelResponseFieldPaths"] = ["/stop_sequence"]
    if config:
        body["inferenceConfig"] = config
    if own:
        body["additionalModelRequestFields"] = own


def _tool_config(tools: list[Tool], choice: ToolChoice | None, model: str) -> JSON:
    written: list[JSON] = []
    for tool in tools:
        written.append({"toolSpec": _tool_spec(tool, model)})
        point = cache_point(tool.cache_control)
        if point is not None and models.takes_cache_points_in_tools(model):
            written.append({"cachePoint": point})
    config: JSON = {"tools": written}
    if choice is not None and choice.mode == "required":
        config["toolChoice"] = {"any": {}}
    elif choice is not None and choice.mode == "tool":
        config["toolChoice"] = {"tool": {"name": allowed_name(choice.name or "", MAX_NAME)}}
    return config


def _tool_spec(tool: Tool, model: str) -> JSON:
    schema = {**(tool.parameters or {"properties": {}}), "type": "object"}
    spec: JSON = {"name": allowed_name(tool.name, MAX_NAME)}
    if tool.description and tool.description.strip():
        spec["description"] = tool.description
    if tool.strict and models.takes_strict_tools(model):
        schema, spec["strict"] = closed_schema(schema), True
    spec["inputSchema"] = {"json": schema}
    return spec


def _add_format(body: JSON, system: list[JSON], wanted: ResponseFormat | None, model: str) -> None:
    """A schema is kept to by AWS or refused; Converse has no word for JSON of any shape, so the model is asked."""
    if wanted is None or wanted.type == "text":
        return
    if wanted.type == "json_object" or wanted.schema is None:
        system.append({"text": ONLY_JSON})
        return
    if not models.takes_schema(model):
        raise inexpressible("a response_format of type 'json_schema'", "response_format")
    schema: JSON = {"schema": msgspec.json.encode(closed_schema(wanted.schema)).decode()}
    if wanted.name:
        schema["name"] = allowed_name(wanted.name, MAX_NAME)
    if wanted.description:
        schema["description"] = wanted.description
    body["outputConfig"] = {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}}
