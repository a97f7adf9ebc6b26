"""Reading whole answers of the Converse API."""

from __future__ import annotations

from typing import Any

import msgspec

from proxy.bedrock_format.errors import fault_of_exception
from proxy.bedrock_format.shapes import (
    UNREADABLE,
    finish_reason,
    is_for_caller,
    objects_of,
    read_usage,
    stop_sequence,
    text_of,
)
from proxy.canonical import ChatResponse, Foreign, Text, Thinking, ToolCall
from proxy.errors import UpstreamFault

JSON = dict[str, Any]

#: The dialect of blocks that no client can be shown.
BEDROCK = "bedrock"


def chat_response(body: bytes, names: dict[str, str]) -> ChatResponse:
    """A good answer in canonical form; `names` are the caller's tools. Raises UpstreamFault when it is none."""
    document = document_of(body)
    output = document.get("output")
    message = output.get("message") if isinstance(output, dict) else None
    blocks = message.get("content") if isinstance(message, dict) else None
    if not isinstance(blocks, list):
        raise _not_a_message(document, body)
    parts = [part for block in objects_of(blocks) for part in _parts(block, names)]
    native = text_of(document, "stopReason") or None
    return ChatResponse(
        parts=parts,
        finish_reason=finish_reason(native, has_calls=any(isinstance(part, ToolCall) for part in parts)),
        native_finish=native,
        stop_sequence=stop_sequence(document.get("additionalModelResponseFields")),
        usage=read_usage(document.get("usage")),
    )


def document_of(body: bytes) -> JSON:
    try:
        document = msgspec.json.decode(body)
    except UNREADABLE:
        raise UpstreamFault("protocol", "the answer is not JSON", status=200) from None
    if not isinstance(document, dict):
        raise UpstreamFault("protocol", "the answer is not an object", status=200)
    return document


def called(source: JSON, names: dict[str, str], arguments: str) -> ToolCall:
    """A toolUse. Raises UpstreamFault for one without id or name."""
    call_id, name = text_of(source, "toolUseId"), text_of(source, "name")
    if not call_id or not name:
        raise UpstreamFault("protocol", "a tool call without id or name", status=200)
    return ToolCall(call_id, names.get(name, name), arguments)


def _parts(block: JSON, names: dict[str, str]) -> list[Any]:
    """A block is an object with one member. Tools that AWS ran itself, and their results, are no call of ours."""
    if "text" in block:
        return [Text(text_of(block, "text"))]
    for kind, source in block.items():
        if kind == "toolResult" or not isinstance(source, dict):
            continue
        if kind == "toolUse":
            return [_call(source, names)] if is_for_caller(source, names) else []
        if kind == "reasoningContent":
            return _thinking(source)
        if kind == "citationsContent":
            texts = [text_of(entry, "text") for entry in objects_of(source.get("content"))]
            return [Text(text) for text in texts if text]
        return [Foreign(BEDROCK, kind[:60], block)]
    return []


def _call(source: JSON, names: dict[str, str]) -> ToolCall:
    return called(source, names, msgspec.json.encode(source.get("input") or {}).decode())


def _thinking(source: JSON) -> list[Thinking]:
    if redacted := text_of(source, "redactedContent"):
        return [Thinking(redacted=redacted)]
    inner = source.get("reasoningText")
    if not isinstance(inner, dict):
        return []
    return [Thinking(text=text_of(inner, "text"), signature=text_of(inner, "signature") or None)]


def _not_a_message(document: JSON, body: bytes) -> UpstreamFault:
    """An error with status 200, or something else."""
    if "__type" in document or "message" in document:
        return fault_of_exception("", body)
    return UpstreamFault("protocol", "the answer is not a message", status=200)
