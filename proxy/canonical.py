"""The canonical request and answer: a superset of what every dialect can say.

Dialects parse client bodies into `ChatRequest`, provider adapters write provider bodies from it and read
`ChatResponse` or stream events back. When client and provider speak the same dialect nothing of this is built:
`Call.body` (the client's own JSON) is forwarded with the names that must change.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

JSON = dict[str, Any]
Role = Literal["user", "assistant"]
FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]


#: Begins the signature of thinking that is Gemini's. No other provider can read one, and Gemini reads no other's.
GEMINI_SIGNED = "gemini:"


class Text(msgspec.Struct):
    text: str
    cache_control: JSON | None = None


class Image(msgspec.Struct):
    """Either inline (`data` base64 with `media_type`) or by `url`, which the gateway never fetches itself."""

    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    detail: str | None = None
    cache_control: JSON | None = None


class File(msgspec.Struct):
    """A document: inline base64 `data`, plain `text`, a `url` or a provider's `file_id`."""

    media_type: str | None = None
    data: str | None = None
    text: str | None = None
    url: str | None = None
    file_id: str | None = None
    name: str | None = None
    cache_control: JSON | None = None


class Audio(msgspec.Struct):
    data: str
    format: str


class Thinking(msgspec.Struct):
    """Model reasoning. `signature` is opaque and must come back unchanged; `redacted` is encrypted reasoning."""

    text: str = ""
    signature: str | None = None
    redacted: str | None = None


class ToolCall(msgspec.Struct):
    """`arguments` is JSON text as the model wrote it ("" counts as "{}"); `signature` as in Thinking."""

    id: str
    name: str
    arguments: str = ""
    signature: str | None = None


class ToolResult(msgspec.Struct):
    call_id: str
    content: list[Any] = msgspec.field(default_factory=list)  # Text | Image | File
    is_error: bool = False
    name: str | None = None
    cache_control: JSON | None = None


class Foreign(msgspec.Struct):
    """A block only `dialect` can express. Another provider's adapter must refuse it by name, never drop it."""

    dialect: str
    type: str
    block: JSON


Part = Text | Image | File | Audio | Thinking | ToolCall | ToolResult | Foreign


class Message(msgspec.Struct):
    role: Role
    parts: list[Any]  # list[Part]


class Tool(msgspec.Struct):
    name: str
    description: str | None = None
    parameters: JSON | None = None  # JSON Schema of an object; None: no arguments
    strict: bool | None = None
    cache_control: JSON | None = None


class ToolChoice(msgspec.Struct):
    """mode auto | none | required | tool (then `name`)."""

    mode: Literal["auto", "none", "required", "tool"]
    name: str | None = None


class ResponseFormat(msgspec.Struct):
    """type text | json_object | json_schema (then `name`, `schema`, `strict`)."""

    type: Literal["text", "json_object", "json_schema"]
    name: str | None = None
    schema: JSON | None = None
    strict: bool | None = None
    description: str | None = None


class ChatRequest(msgspec.Struct, kw_only=True):
    """A chat call in neutral words. Roles alternate freely; tool results are parts of user messages."""

    messages: list[Message]
    system: list[Text] = msgspec.field(default_factory=list)
    tools: list[Tool] = msgspec.field(default_factory=list)
    foreign_tools: list[Foreign] = msgspec.field(default_factory=list)
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: list[str] = msgspec.field(default_factory=list)
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    response_format: ResponseFormat | None = None
    reasoning_effort: str | None = None  # minimal | low | medium | high
    thinking_budget: int | None = None  # tokens
    user: str | None = None


class Usage(msgspec.Struct):
    """Token counts with one meaning everywhere.

    `input_tokens` includes cache reads and writes; `output_tokens` includes reasoning.
    `cache_write_1h_tokens` is the part of `cache_write_tokens` written for an hour.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    reasoning_tokens: int = 0


class ChatResponse(msgspec.Struct, kw_only=True):
    """A whole answer. `native_finish` and `stop_sequence` as the provider spelt them; `usage` None: it sent none."""

    id: str | None = None
    model: str | None = None
    parts: list[Any] = msgspec.field(default_factory=list)  # Text | Thinking | ToolCall | Foreign
    finish_reason: FinishReason = "stop"
    native_finish: str | None = None
    stop_sequence: str | None = None
    refusal: str | None = None
    usage: Usage | None = None


class EmbeddingRequest(msgspec.Struct, kw_only=True):
    """Texts to turn into vectors. Token ids are refused before: no other provider shares OpenAI's vocabulary."""

    inputs: list[str]
    dimensions: int | None = None
    user: str | None = None


class EmbeddingResponse(msgspec.Struct, kw_only=True):
    """One vector an input, in order. `usage` None: the provider sent none."""

    vectors: list[list[float]]
    usage: Usage | None = None
    parts: tuple[()] = ()  # no text: nothing to estimate output from
    finish_reason: FinishReason = "stop"


# ---------------------------------------------------------------- stream events (a decoder yields, a renderer takes)


class TextDelta(msgspec.Struct):
    text: str


class ThinkingDelta(msgspec.Struct):
    text: str


class SignatureDelta(msgspec.Struct):
    """The (whole) signature of the thinking block that is open."""

    signature: str


class RedactedThinking(msgspec.Struct):
    data: str


class RefusalDelta(msgspec.Struct):
    text: str


class ToolCallStart(msgspec.Struct):
    """Opens call number `index` (0, 1, … in order of opening; the decoder renumbers bad upstream indices)."""

    index: int
    id: str
    name: str
    signature: str | None = None


class ToolCallDelta(msgspec.Struct):
    """A fragment of the arguments text of call `index`. Fragments of different calls may interleave."""

    index: int
    arguments: str


class ForeignDelta(msgspec.Struct):
    """A whole block only `dialect` can express (e.g. a server tool's result). Others skip what is output only."""

    dialect: str
    block: JSON


class UsageSeen(msgspec.Struct):
    """Usage so far: cumulative, replaces what was known before."""

    usage: Usage


class Finished(msgspec.Struct):
    """The provider's own terminal marker came. Exactly one per stream, last but for UsageSeen."""

    finish_reason: FinishReason
    native_finish: str | None = None
    stop_sequence: str | None = None


StreamEvent = (
    TextDelta
    | ThinkingDelta
    | SignatureDelta
    | RedactedThinking
    | RefusalDelta
    | ToolCallStart
    | ToolCallDelta
    | ForeignDelta
    | UsageSeen
    | Finished
)
