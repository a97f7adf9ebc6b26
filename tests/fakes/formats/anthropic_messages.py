"""Anthropic's Messages API."""

from __future__ import annotations

from typing import Any

from proxy.canonical import ChatResponse, FinishReason, Text, Thinking
from tests.fakes.formats.style import JSON, Style, arguments_of, compact, cut, sse, usage_of

_PARTS = ("text", "thinking", "signature", "redacted", "calls", "mixed")
SAYS = frozenset((*_PARTS, "stop_sequence", "cache_read", "cache_write", "cache_write_1h", "reasoning"))

STOP_REASONS: dict[FinishReason, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}


def whole(answer: ChatResponse) -> bytes:
    blocks = [_block(part) for part in answer.parts]
    return compact(_message(blocks) | _ending(answer) | {"usage": _usage(answer)}).encode()


def stream(answer: ChatResponse, style: Style) -> bytes:
    used = _usage(answer)
    started = _message([]) | {"stop_reason": None, "stop_sequence": None, "usage": used | {"output_tokens": 1}}
    events: list[JSON] = [{"type": "message_start", "message": started}, {"type": "ping"}]
    for index, part in enumerate(answer.parts):
        start, deltas = _opened(part, style)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events += [{"type": "message_delta", "delta": _ending(answer), "usage": used}, {"type": "message_stop"}]
    return sse([(event["type"], event) for event in events], style)


def _message(blocks: list[JSON]) -> JSON:
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": blocks}


def _ending(answer: ChatResponse) -> JSON:
    reason = "stop_sequence" if answer.stop_sequence else STOP_REASONS[answer.finish_reason]
    return {"stop_reason": reason, "stop_sequence": answer.stop_sequence}


def _usage(answer: ChatResponse) -> JSON:
    used = usage_of(answer)
    hour = used.cache_write_1h_tokens
    return {
        "input_tokens": used.input_tokens - used.cache_read_tokens - used.cache_write_tokens,
        "cache_read_input_tokens": used.cache_read_tokens,
        "cache_creation_input_tokens": used.cache_write_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": used.cache_write_tokens - hour,
            "ephemeral_1h_input_tokens": hour,
        },
        "output_tokens": used.output_tokens,
        "output_tokens_details": {"thinking_tokens": used.reasoning_tokens},
    }


def _block(part: Any) -> JSON:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Thinking):
        if part.redacted is not None:
            return {"type": "redacted_thinking", "data": part.redacted}
        return {"type": "thinking", "thinking": part.text, "signature": part.signature or ""}
    return {"type": "tool_use", "id": part.id, "name": part.name, "input": arguments_of(part)}


def _opened(part: Any, style: Style) -> tuple[JSON, list[JSON]]:
    """The start of a block and what follows."""
    block = _block(part)
    if block["type"] == "text":
        return block | {"text": ""}, [{"type": "text_delta", "text": piece} for piece in cut(part.text, style.step)]
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in cut(part.text, style.step)]
        signature = {"type": "signature_delta", "signature": block["signature"]}
        return block | {"thinking": "", "signature": ""}, [*deltas, signature] if part.signature else deltas
    if block["type"] == "tool_use":
        pieces = ["", *cut(part.arguments, style.step)]
        return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return block, []
