"""Shapes of Anthropic's Messages format that both its client dialect and its provider adapter write or read.

The signature of a tool call (other providers' opaque reasoning) travels in `extra_content` of its tool_use block, as it
does in OpenAI's format; Anthropic itself never sees that member.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import msgspec

from proxy.canonical import GEMINI_SIGNED, FinishReason, Foreign, Text, Thinking, ToolCall, Usage
from proxy.context import ANTHROPIC
from proxy.openai_format.shapes import signature_extra
from proxy.sse import frame

JSON = dict[str, Any]

#: The longest name of a tool (characters).
MAX_TOOL_NAME = 128

#: stop_reason as Anthropic spells it -> ours. What is not listed counts as "stop".
FINISH_REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}

_STOP_REASONS: dict[FinishReason, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}

#: What decoding JSON of others may raise.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_-]")


def finish_reason(native: str | None, *, has_calls: bool = False) -> FinishReason:
    """Our word for a stop_reason; without one, what the answer holds decides."""
    if native is None and has_calls:
        return "tool_calls"
    return FINISH_REASONS.get(native or "", "stop")


def stop_reason(finish: FinishReason, *, has_calls: bool, refused: bool, stop_sequence: str | None) -> str:
    """The stop_reason of an answer that another provider gave. Clients run tools by it, so calls decide."""
    if refused:
        return "refusal"
    if finish == "stop" and stop_sequence is not None:
        return "stop_sequence"
    if finish in ("stop", "tool_calls"):
        finish = "tool_calls" if has_calls else "stop"
    return _STOP_REASONS[finish]


def usage_object(usage: Usage) -> JSON:
    """`usage` as a message reports it: input_tokens leave out what was read from or written to the cache."""
    written: JSON = {
        "input_tokens": max(usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens, 0),
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
    }
    if usage.cache_write_1h_tokens:  # they have a price of their own
        written["cache_creation"] = {
            "ephemeral_5m_input_tokens": usage.cache_write_tokens - usage.cache_write_1h_tokens,
            "ephemeral_1h_input_tokens": usage.cache_write_1h_tokens,
        }
    if usage.reasoning_tokens:
        written["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return written


def error_object(message: str, code: str, type_: str, request_id: str, **members: Any) -> JSON:
    """An error as this format tells it. `code` and `members` are the gateway's own: refusals explain themselves."""
    error = {"type": type_, "message": message, "code": code} | members
    return {"type": "error", "error": error, "request_id": request_id}


def error_frame(message: str, code: str, type_: str, request_id: str) -> bytes:
    """The last event of a stream that failed."""
    return frame(msgspec.json.encode(error_object(message, code, type_, request_id)), "error")


def allowed_name(name: str, longest: int = 512) -> str:
    """`name` in the letters Anthropic takes for ids and tools. The same name always gives the same, others differ."""
    clean = _NOT_ALLOWED.sub("_", name)
    if clean == name and 0 < len(name) <= longest:
        return name
    return f"{clean[: longest - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def is_signed(signature: Any) -> bool:
    """Whether thinking with this signature may go back to Claude, which refuses those of others."""
    return isinstance(signature, str) and bool(signature) and not signature.startswith(GEMINI_SIGNED)


def answer_block(part: Any) -> JSON | None:
    """A block of an answer; None for what this format cannot say."""
    if isinstance(part, Text):
        return {"type": "text", "text": part.text} if part.text else None
    if isinstance(part, Thinking):
        return thinking_block(part)
    if isinstance(part, ToolCall):
        return opened_call(part) | {"input": tool_input(part.arguments)}
    if isinstance(part, Foreign) and part.dialect == ANTHROPIC:
        return part.block
    return None


def thinking_block(part: Thinking) -> JSON:
    if part.redacted is not None:
        return {"type": "redacted_thinking", "data": part.redacted}
    return {"type": "thinking", "thinking": part.text, "signature": part.signature or ""}


def opened_call(call: ToolCall) -> JSON:
    """A tool_use block whose input is yet to come."""
    block: JSON = {"type": "tool_use", "id": allowed_name(call.id), "name": call.name, "input": {}}
    if call.signature:
        block["extra_content"] = signature_extra(call.signature)
    return block


def tool_input(arguments: str) -> JSON:
    """Arguments as the object that `input` must be. What a model wrote that is none stays readable under `_raw`."""
    if not arguments.strip():
        return {}
    try:
        value = msgspec.json.decode(arguments)
    except UNREADABLE:
        return {"_raw": arguments}
    return value if isinstance(value, dict) else {"_raw": arguments}
