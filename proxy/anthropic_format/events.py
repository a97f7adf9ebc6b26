"""One event of an Anthropic stream, decoded as far as the gateway must know it."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from proxy.anthropic_format.shapes import UNREADABLE
from proxy.errors import UpstreamFault

JSON = dict[str, Any]

#: Events whose form the gateway relies on. Others are handed on unread: there will be new ones.
_KNOWN = frozenset(
    (
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "error",
    )
)

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Delta(msgspec.Struct):
    """Of a block (text, thinking, partial_json, signature) or of the message (stop_reason, stop_sequence)."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    signature: str | None = None
    stop_reason: str | None = None
    stop_sequence: str | None = None


class Started(msgspec.Struct):
    """`message` of message_start."""

    usage: Any = None


class Event(msgspec.Struct):
    """`type` is empty when the event names none that could be written again."""

    type: str = ""
    index: int | None = None
    delta: Delta | None = None
    content_block: JSON | None = None
    message: Started | None = None
    usage: Any = None
    error: Any = None


_decode = msgspec.json.Decoder(Event).decode


def read_event(name: bytes | None, data: bytes) -> Event:
    """Raises UpstreamFault for data that is no JSON object, or no event of its type."""
    try:
        event = _decode(data)
    except UNREADABLE:
        event = _lenient(data)
    if name == b"error":
        event.type = "error"
    elif event.type not in _KNOWN:
        kind = event.type or (name or b"").decode("utf-8", "replace")
        event.type = kind if _NAME.fullmatch(kind) else ""
    return event


def document_of(data: bytes) -> JSON:
    """The whole event. Raises UpstreamFault for what is no JSON object."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise _malformed("an event of the stream is not JSON") from None
    if not isinstance(document, dict):
        raise _malformed("an event of the stream is not an object")
    return document


def _lenient(data: bytes) -> Event:
    """What the strict decoder refuses: halves of surrogate pairs, and unknown events with members of other types."""
    document = document_of(data)
    try:
        return msgspec.convert(_whole(document), Event)
    except (msgspec.ValidationError, RecursionError):
        kind = document.get("type")
        if not isinstance(kind, str) or kind in _KNOWN:
            raise _malformed("an event of the stream has not the form of its type") from None
        return Event(type=kind)


def _whole(value: Any) -> Any:
    """The same with U+FFFD for each half of a surrogate pair, so that it can be encoded again."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_whole(name): _whole(inner) for name, inner in value.items()}
    return [_whole(inner) for inner in value] if isinstance(value, list) else value


def _malformed(problem: str) -> UpstreamFault:
    return UpstreamFault("protocol", problem, status=200)
