"""What each provider's API accepts as the body of a request, by the vendor's own types where there are any."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NotRequired

import pydantic
from anthropic.types import message_create_params as anthropic_params
from google.genai import types
from openai.types.chat import completion_create_params as openai_params
from typing_extensions import TypedDict

JSON = dict[str, Any]


def openai(body: JSON) -> None:
    kind = openai_params.CompletionCreateParamsStreaming if body.get("stream") else _OPENAI
    _by_type(kind, body)


def anthropic(body: JSON) -> None:
    """Sampling parameters are no longer among the SDK's own members, but models before Claude 4.7 take them."""
    kind = anthropic_params.MessageCreateParamsStreaming if body.get("stream") else _ANTHROPIC
    sampling = {name: value for name, value in body.items() if name in ("temperature", "top_p", "top_k")}
    assert all(isinstance(value, int | float) and 0 <= value <= 500 for value in sampling.values())
    _by_type(kind, {name: value for name, value in body.items() if name not in sampling})


def bedrock(body: JSON) -> None:
    """By botocore, as it would check the call of its own client."""
    from botocore.validate import ParamValidator  # noqa: PLC0415

    report = ParamValidator().validate(_with_bytes(body) | {"modelId": "m"}, _converse_input())
    assert not report.has_errors(), report.generate_report()


def ollama(body: JSON) -> None:
    _by_type(OllamaBody, body)


def gemini(body: JSON) -> None:
    """Google's types refuse members they do not know."""
    members = {
        "contents": list[types.Content],
        "systemInstruction": types.Content,
        "tools": list[types.Tool],
        "toolConfig": types.ToolConfig,
        "generationConfig": types.GenerationConfig,
    }
    for name, value in body.items():
        _adapter(members[name]).validate_python(value)


_OPENAI = openai_params.CompletionCreateParamsNonStreaming
_ANTHROPIC = anthropic_params.MessageCreateParamsNonStreaming

ACCEPTED: dict[str, Callable[[JSON], None]] = {
    "openai": openai,
    "azure_openai": openai,
    "mock": openai,
    "openai_compatible": openai,
    "anthropic": anthropic,
    "bedrock": bedrock,
    "gemini": gemini,
    "ollama": ollama,
}


# ---------------------------------------------------------------- Ollama has no SDK among ours (docs/api.md of Ollama)


class _Function(TypedDict):
    name: str
    arguments: JSON


class _Call(TypedDict):
    id: str
    function: _Function


class _Message(TypedDict):
    role: Literal["system", "user", "assistant", "tool"]
    content: str
    thinking: NotRequired[str]
    images: NotRequired[list[str]]
    tool_calls: NotRequired[list[_Call]]
    tool_name: NotRequired[str]
    tool_call_id: NotRequired[str]


class _ToolFunction(TypedDict):
    name: str
    description: NotRequired[str]
    parameters: JSON


class _Tool(TypedDict):
    type: Literal["function"]
    function: _ToolFunction


class OllamaBody(TypedDict):
    model: str
    messages: list[_Message]
    stream: bool
    tools: NotRequired[list[_Tool]]
    format: NotRequired[Literal["json"] | JSON]
    think: NotRequired[bool | Literal["low", "medium", "high"]]
    options: NotRequired[JSON]


# ---------------------------------------------------------------- by type


@cache
def _adapter(kind: Any) -> pydantic.TypeAdapter[Any]:
    return pydantic.TypeAdapter(kind)


def _by_type(kind: Any, body: JSON) -> None:
    """Everything is of its type, and nothing is there that the type does not have: such a member would be dropped."""
    read = _whole(_adapter(kind).validate_python(body))
    differing = {name: (value, read.get(name)) for name, value in body.items() if value != read.get(name)}
    assert differing == {}, differing


def _whole(value: Any) -> Any:
    """pydantic checks what is iterable only while it is read."""
    if isinstance(value, dict):
        return {name: _whole(inner) for name, inner in value.items()}
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        return value
    return [_whole(inner) for inner in value]


@cache
def _converse_input() -> Any:
    from botocore.loaders import Loader  # noqa: PLC0415
    from botocore.model import ServiceModel  # noqa: PLC0415

    service = ServiceModel(Loader().load_service_model("bedrock-runtime", "service-2"))
    return service.operation_model("Converse").input_shape


def _with_bytes(value: Any) -> Any:
    """Base64 is what bytes are on the wire."""
    if isinstance(value, dict):
        blobs = ("bytes", "redactedContent")
        return {name: b"x" if name in blobs else _with_bytes(inner) for name, inner in value.items()}
    return [_with_bytes(inner) for inner in value] if isinstance(value, list) else value
