"""Words and counts of the Converse API that its answers and its streams share."""

from __future__ import annotations

from typing import Any

import msgspec

from proxy.canonical import FinishReason, Usage
from proxy.providers.base import token_count

JSON = dict[str, Any]

#: The longest name of a tool and the longest id of its use (characters).
MAX_NAME = 64

#: stopReason -> our word. What is not listed (malformed_tool_use, say) counts as "stop".
FINISH_REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}

#: What decoding JSON of others may raise.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def finish_reason(native: str | None, *, has_calls: bool) -> FinishReason:
    """Some models end their turn with calls in it, and `tool_use` may be about AWS's own tools: the calls decide."""
    reason = FINISH_REASONS.get(native or "", "stop")
    if reason in ("stop", "tool_calls"):
        return "tool_calls" if has_calls else "stop"
    return reason


def is_for_caller(use: JSON, names: dict[str, str]) -> bool:
    """Whether a toolUse is the caller's to run. AWS runs tools of its own itself; the gateway never offers any."""
    return use.get("type") != "server_tool_use" or text_of(use, "name") in names


def stop_sequence(fields: Any) -> str | None:
    """The stop sequence that ended an answer, out of additionalModelResponseFields."""
    return text_of(fields, "stop_sequence") or None if isinstance(fields, dict) else None


def read_usage(source: Any) -> Usage | None:
    """Token counts in one meaning; None when there are none or they are nonsense. inputTokens leave the cache out."""
    if not isinstance(source, dict):
        return None
    details = objects_of(source.get("cacheDetails"))
    try:
        plain, output = token_count(source, "inputTokens"), token_count(source, "outputTokens")
        read, write = _cached(source, "cacheRead"), _cached(source, "cacheWrite")
        hour = sum(token_count(entry, "inputTokens") or 0 for entry in details if entry.get("ttl") == "1h")
    except ValueError:
        return None
    if plain is None and output is None:
        return None
    return Usage(
        input_tokens=(plain or 0) + read + write,
        output_tokens=output or 0,
        cache_read_tokens=read,
        cache_write_tokens=write,
        cache_write_1h_tokens=min(hour, write),
    )


def _cached(source: JSON, name: str) -> int:
    """Under its name of today, or the one of before."""
    return token_count(source, f"{name}InputTokens") or token_count(source, f"{name}InputTokenCount") or 0


def text_of(source: JSON, name: str) -> str:
    value = source.get(name)
    return value if isinstance(value, str) else ""


def objects_of(value: Any) -> list[JSON]:
    """The objects of what should be a list of them."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
