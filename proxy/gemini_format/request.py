"""Writing a generateContent request from the canonical form.

Not expressible and left out, because the answer is as good without: the user's name, log probabilities, marks for the
cache (Gemini caches by itself), `strict` of a tool, and the wish for one call at a time. A seed beyond 32 bits is
folded: the same one still gives the same.
"""

from __future__ import annotations

from typing import Any

import msgspec

from proxy.canonical import ChatRequest, ResponseFormat, Tool, ToolChoice
from proxy.gemini_format import models
from proxy.gemini_format.media import inexpressible
from proxy.gemini_format.schemas import gemini_schema
from proxy.gemini_format.shapes import allowed_name
from proxy.gemini_format.turns import contents

JSON = dict[str, Any]

_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY", "tool": "ANY"}
_LARGEST_SEED = (1 << 31) - 1
_ONLY_JSON = "Answer with one JSON object and nothing else: no words around it, no code fence."


def generate_body(request: ChatRequest, model: str, output_cap: int | None) -> JSON:
    """The body for whole answers and streams alike. Raises BadRequest for what cannot be said."""
    body: JSON = {"contents": contents(request.messages, model)}
    system = [text.text for text in request.system if text.text]
    config = _config(request, model, request.max_tokens or output_cap)
    _add_tools(body, request)
    _add_format(config, system, request, model)
    if system:
        body["systemInstruction"] = {"parts": [{"text": text} for text in system]}
    if config:
        body["generationConfig"] = config
    return body


def original_names(request: ChatRequest | None) -> dict[str, str]:
    """Function names that had to be written otherwise, as Gemini knows them -> as the client does."""
    if request is None:
        return {}
    return {written: tool.name for tool in request.tools if (written := allowed_name(tool.name)) != tool.name}


def _config(request: ChatRequest, model: str, limit: int | None) -> JSON:
    wanted: JSON = {
        "maxOutputTokens": limit,
        "temperature": request.temperature,
        "topP": request.top_p,
        "topK": request.top_k or None,
        "stopSequences": request.stop or None,
        "seed": _seed(request.seed),
        "frequencyPenalty": request.frequency_penalty or None,  # 0 changes nothing, and some models refuse the member
        "presencePenalty": request.presence_penalty or None,
        "thinkingConfig": models.thinking_config(model, request.reasoning_effort, request.thinking_budget),
    }
    return {name: value for name, value in wanted.items() if value is not None}


def _seed(seed: int | None) -> int | None:
    return seed if seed is None or abs(seed) <= _LARGEST_SEED else seed & _LARGEST_SEED


def _add_tools(body: JSON, request: ChatRequest) -> None:
    if request.foreign_tools:
        raise inexpressible(f"a tool of type '{request.foreign_tools[0].type}'", "tools")
    if not request.tools:
        return
    body["tools"] = [{"functionDeclarations": [_declaration(tool) for tool in request.tools]}]
    if request.tool_choice is not None:
        body["toolConfig"] = {"functionCallingConfig": _calling(request.tool_choice)}


def _declaration(tool: Tool) -> JSON:
    declared: JSON = {"name": allowed_name(tool.name)}
    if tool.description:
        declared["description"] = tool.description
    if tool.parameters:
        declared["parametersJsonSchema"] = gemini_schema(tool.parameters)
    return declared


def _calling(choice: ToolChoice) -> JSON:
    config: JSON = {"mode": _MODES[choice.mode]}
    if choice.mode == "tool":
        config["allowedFunctionNames"] = [allowed_name(choice.name or "")]
    return config


def _add_format(config: JSON, system: list[str], request: ChatRequest, model: str) -> None:
    """Where functions and JSON exclude each other, the model is asked for JSON in words."""
    wanted = request.response_format
    if wanted is None or wanted.type == "text":
        return
    schema = wanted.schema if wanted.type == "json_schema" else None
    if request.tools and not models.takes_format_with_tools(model):
        system.append(_in_words(wanted, schema))
        return
    config["responseMimeType"] = "application/json"
    if schema is not None:
        config["responseJsonSchema"] = gemini_schema(schema)


def _in_words(wanted: ResponseFormat, schema: JSON | None) -> str:
    if schema is None:
        return _ONLY_JSON
    about = f" ({wanted.description})" if wanted.description else ""
    return f"{_ONLY_JSON} It must fit this JSON schema{about}: {msgspec.json.encode(schema).decode()}"
