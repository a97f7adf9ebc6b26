"""Gemini's generateContent. A signature of thinking sits on the part that ends it, or on a call."""

from __future__ import annotations

from typing import Any

from proxy.canonical import ChatResponse, FinishReason, Text, Thinking
from tests.fakes.formats.style import JSON, Style, arguments_of, compact, cut, sse, usage_of

SAYS = frozenset(("text", "thinking", "signature", "calls", "call_signature", "mixed", "cache_read", "reasoning"))

REASONS: dict[FinishReason, str] = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "tool_calls": "STOP",
    "content_filter": "SAFETY",
}


def whole(answer: ChatResponse) -> bytes:
    parts = [piece for part in answer.parts for piece in _parts(part, 1 << 30)]
    return compact(_document(parts, answer, last=True)).encode()


def stream(answer: ChatResponse, style: Style) -> bytes:
    pieces = [piece for part in answer.parts for piece in _parts(part, style.step)]
    documents = [_document([piece], answer, last=False) for piece in pieces]
    documents.append(_document([], answer, last=True))
    return sse([(None, document) for document in documents], style)


def _parts(part: Any, step: int) -> list[JSON]:
    if isinstance(part, Text):
        return [{"text": piece} for piece in cut(part.text, step)]
    if isinstance(part, Thinking):
        pieces: list[JSON] = [{"text": piece, "thought": True} for piece in cut(part.text, step)]
        if part.signature:
            pieces[-1]["thoughtSignature"] = part.signature
        return pieces
    call: JSON = {"functionCall": {"id": part.id, "name": part.name, "args": arguments_of(part)}}
    return [call | {"thoughtSignature": part.signature} if part.signature else call]


def _document(parts: list[JSON], answer: ChatResponse, *, last: bool) -> JSON:
    candidate: JSON = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if last:
        candidate["finishReason"] = REASONS[answer.finish_reason]
    document: JSON = {"candidates": [candidate], "modelVersion": "gemini-x", "responseId": "r1"}
    if answer.usage is None:
        return document
    used = usage_of(answer)
    counts = {
        "promptTokenCount": used.input_tokens,
        "candidatesTokenCount": used.output_tokens - used.reasoning_tokens,
        "thoughtsTokenCount": used.reasoning_tokens,
        "cachedContentTokenCount": used.cache_read_tokens,
        "totalTokenCount": used.input_tokens + used.output_tokens,
    }
    return document | {"usageMetadata": counts}
