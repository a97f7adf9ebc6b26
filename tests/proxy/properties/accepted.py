"""What each provider's API accepts as the body of a request, by the vendor's own types where there are any."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NotRequired

import pydantic
from anthropic.types import message_create_params as anthropic_params
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
    _by_type(GeminiBody, body)


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


# ---------------------------------------------------------------- Ollama and Gemini: no SDK of theirs is among ours
# Sources: docs/api.md of Ollama; generateContent and its types in the reference of the Gemini API, v1beta.


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


class _Blob(TypedDict):
    mimeType: str
    data: str


class _FileData(TypedDict):
    fileUri: str
    mimeType: NotRequired[str]


class _FunctionCall(TypedDict):
    id: NotRequired[str]
    name: str
    args: JSON


class _FunctionResponse(TypedDict):
    id: NotRequired[str]
    name: str
    response: JSON


class _Part(TypedDict, total=False):
    text: str
    thought: bool
    thoughtSignature: str
    inlineData: _Blob
    fileData: _FileData
    functionCall: _FunctionCall
    functionResponse: _FunctionResponse


class _Content(TypedDict):
    role: Literal["user", "model"]
    parts: list[_Part]


class _System(TypedDict):
    parts: list[_Part]


class _Declaration(TypedDict):
    name: str
    description: NotRequired[str]
    parametersJsonSchema: NotRequired[JSON]


class _Declarations(TypedDict):
    functionDeclarations: list[_Declaration]


class _Calling(TypedDict):
    mode: Literal["AUTO", "NONE", "ANY", "VALIDATED"]
    allowedFunctionNames: NotRequired[list[str]]


class _ToolConfig(TypedDict):
    functionCallingConfig: _Calling


class _ThinkingConfig(TypedDict, total=False):
    includeThoughts: bool
    thinkingBudget: int
    thinkingLevel: Literal["minimal", "low", "medium", "high"]


class _GenerationConfig(TypedDict, total=False):
    maxOutputTokens: int
    temperature: float
    topP: float
    topK: int
    stopSequences: list[str]
    seed: int
    frequencyPenalty: float
    presencePenalty: float
    thinkingConfig: _ThinkingConfig
    responseMimeType: Literal["application/json", "text/plain"]
    responseJsonSchema: JSON


class GeminiBody(TypedDict):
    contents: list[_Content]
    systemInstruction: NotRequired[_System]
    tools: NotRequired[list[_Declarations]]
    toolConfig: NotRequired[_ToolConfig]
    generationConfig: NotRequired[_GenerationConfig]


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
