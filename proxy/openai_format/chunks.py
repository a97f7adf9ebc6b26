"""One chunk of an OpenAI-style stream, decoded as far as the gateway must know it."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from proxy.errors import UpstreamFault
from proxy.openai_format.answer import arguments_text
from proxy.openai_format.calls import Fragment, Function

JSON = dict[str, Any]

OBJECT = "chat.completion.chunk"


class Delta(msgspec.Struct):
    content: str | list[Any] | None = None
    tool_calls: list[Fragment] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    function_call: Function | None = None
    audio: Any = None


class Choice(msgspec.Struct):
    index: int | None = None  # None: left out, the only one
    delta: Delta | None = None
    finish_reason: str | None = None


class Chunk(msgspec.Struct):
    object: str | None = None
    choices: list[Choice] | None = None
    usage: Any = None
    error: Any = None


class OddChunk(Chunk):
    """A chunk with members of unusual types, read as far as they make sense."""


_decode = msgspec.json.Decoder(Chunk).decode


def read_chunk(data: bytes) -> Chunk:
    """Raises UpstreamFault for data that is no JSON object."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _lenient(document_of(data))


def is_end(data: bytes) -> bool:
    """Whether this is the end marker."""
    return data[:1] == b"[" and data.strip() == b"[DONE]"


def error_in(name: bytes | None, data: bytes, chunk: Chunk) -> Any:
    """The error that an event tells of, if any: under `error`, or the event itself is one (vLLM)."""
    if chunk.error:
        return chunk.error
    return document_of(data) if name == b"error" or chunk.object == "error" else None


def document_of(data: bytes) -> JSON:
    """The whole chunk. Raises UpstreamFault for what is no JSON object."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise UpstreamFault("protocol", "an event of the stream is not JSON", status=200) from None
    if not isinstance(document, dict):
        raise UpstreamFault("protocol", "an event of the stream is not an object", status=200)
    return document


def encode(document: JSON) -> bytes:
    """A changed chunk as JSON; halves of surrogate pairs stay escaped, as they came."""
    try:
        return msgspec.json.encode(document)
    except UnicodeEncodeError:
        return json.dumps(document, separators=(",", ":")).encode()


def _lenient(document: JSON) -> OddChunk:
    choices = document.get("choices")
    return OddChunk(
        object=_text(document.get("object")),
        choices=[_choice(item) for item in choices if isinstance(item, dict)] if isinstance(choices, list) else None,
        usage=document.get("usage"),
        error=document.get("error"),
    )


def _choice(source: JSON) -> Choice:
    delta = source.get("delta")
    index = source.get("index")
    return Choice(
        index=index if isinstance(index, int) else None,
        delta=_delta(delta) if isinstance(delta, dict) else None,
        finish_reason=_text(source.get("finish_reason")),
    )


def _delta(source: JSON) -> Delta:
    content, calls, legacy = source.get("content"), source.get("tool_calls"), source.get("function_call")
    return Delta(
        content=content if isinstance(content, list) else _text(content),
        tool_calls=[_fragment(item) for item in calls if isinstance(item, dict)] if isinstance(calls, list) else None,
        reasoning_content=_text(source.get("reasoning_content")),
        reasoning=_text(source.get("reasoning")),
        refusal=_text(source.get("refusal")),
        function_call=_function(legacy) if isinstance(legacy, dict) else None,
        audio=source.get("audio"),
    )


def _fragment(source: JSON) -> Fragment:
    index, function, custom = source.get("index"), source.get("function"), source.get("custom")
    return Fragment(
        index=int(index) if isinstance(index, int) or (isinstance(index, str) and index.isdecimal()) else None,
        id=_text(source.get("id")),
        type=_text(source.get("type")),
        function=_function(function) if isinstance(function, dict) else None,
        custom=_function(custom) if isinstance(custom, dict) else None,
        extra_content=source.get("extra_content"),
    )


def _function(source: JSON) -> Function:
    return Function(
        name=_text(source.get("name")),
        arguments=arguments_text(source.get("arguments")),
        input=_text(source.get("input")),
    )


def _text(value: Any) -> str | None:
    """A text that can be encoded again: half a surrogate pair becomes U+FFFD."""
    if not isinstance(value, str):
        return None
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
