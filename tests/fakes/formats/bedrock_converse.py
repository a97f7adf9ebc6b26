"""Bedrock's Converse, and ConverseStream in AWS's event stream encoding."""

from __future__ import annotations

import struct
import zlib
from typing import Any

from proxy.canonical import ChatResponse, FinishReason, Text, Thinking
from tests.fakes.formats.style import JSON, Style, arguments_of, compact, cut, usage_of

SAYS = frozenset(
    ("text", "thinking", "signature", "redacted", "calls", "stop_sequence", "mixed", "cache_read", "cache_write")
)

STOP_REASONS: dict[FinishReason, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "guardrail_intervened",
}


def whole(answer: ChatResponse) -> bytes:
    message = {"role": "assistant", "content": [_block(part) for part in answer.parts]}
    document = {"output": {"message": message}, "usage": _usage(answer), "metrics": {"latencyMs": 5}}
    return compact(document | _ending(answer)).encode()


def stream(answer: ChatResponse, style: Style) -> bytes:
    out = [message("messageStart", {"role": "assistant"})]
    for index, part in enumerate(answer.parts):
        at = {"contentBlockIndex": index}
        block = _block(part)
        if "toolUse" in block:
            start = {name: block["toolUse"][name] for name in ("toolUseId", "name")}
            out.append(message("contentBlockStart", at | {"start": {"toolUse": start}}))
        out += [message("contentBlockDelta", at | {"delta": delta}) for delta in _deltas(part, style.step)]
        out.append(message("contentBlockStop", at))
    out += [message("messageStop", _ending(answer))]
    out += [message("metadata", {"usage": _usage(answer), "metrics": {"latencyMs": 5}})]
    return b"".join(out)


def message(event: str, document: JSON) -> bytes:
    """One message of the encoding."""
    named = {b":event-type": event.encode(), b":content-type": b"application/json", b":message-type": b"event"}
    headers = b"".join(
        struct.pack(">B", len(name)) + name + struct.pack(">BH", 7, len(value)) + value for name, value in named.items()
    )
    payload = compact(document | {"p": "abcdefgh"}).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    head = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return head + struct.pack(">I", zlib.crc32(head))


def _ending(answer: ChatResponse) -> JSON:
    if answer.stop_sequence:
        fields = {"stop_sequence": answer.stop_sequence}
        return {"stopReason": "stop_sequence", "additionalModelResponseFields": fields}
    return {"stopReason": STOP_REASONS[answer.finish_reason]}


def _usage(answer: ChatResponse) -> JSON:
    used = usage_of(answer)
    return {
        "inputTokens": used.input_tokens - used.cache_read_tokens - used.cache_write_tokens,
        "outputTokens": used.output_tokens,
        "totalTokens": used.input_tokens + used.output_tokens,
        "cacheReadInputTokens": used.cache_read_tokens,
        "cacheWriteInputTokens": used.cache_write_tokens,
    }


def _block(part: Any) -> JSON:
    if isinstance(part, Text):
        return {"text": part.text}
    if isinstance(part, Thinking):
        if part.redacted is not None:
            return {"reasoningContent": {"redactedContent": part.redacted}}
        text: JSON = {"text": part.text}
        return {"reasoningContent": {"reasoningText": text | ({"signature": part.signature} if part.signature else {})}}
    return {"toolUse": {"toolUseId": part.id, "name": part.name, "input": arguments_of(part)}}


def _deltas(part: Any, step: int) -> list[JSON]:
    if isinstance(part, Text):
        return [{"text": piece} for piece in cut(part.text, step)]
    if isinstance(part, Thinking):
        if part.redacted is not None:
            return [{"reasoningContent": {"redactedContent": part.redacted}}]
        deltas: list[JSON] = [{"reasoningContent": {"text": piece}} for piece in cut(part.text, step)]
        return [*deltas, {"reasoningContent": {"signature": part.signature}}] if part.signature else deltas
    return [{"toolUse": {"input": piece}} for piece in cut(part.arguments, step)]
