"""Shapes of OpenAI's chat format that both its client dialect and its provider adapters write or read.

Opaque signatures travel in `extra_content`, so that a client which sends messages back unchanged keeps them:
of a message `{"tollbar": {"thinking": [{"text", "signature", "redacted"}]}}`, of a tool call
`{"tollbar": {"signature"}}`. Google's own `{"google": {"thought_signature"}}` is read, too.
"""

from __future__ import annotations

from typing import Any

from proxy.canonical import FinishReason, Thinking, Usage

JSON = dict[str, Any]

#: finish_reason as providers that speak this format spell it -> ours. What is not listed counts as "stop".
FINISH_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",  # Mistral
    "insufficient_system_resource": "length",  # DeepSeek: broken off
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}


def finish_reason(native: str | None, *, has_calls: bool = False) -> FinishReason:
    """Our word for a provider's; some say "stop" although the model called a tool."""
    reason = FINISH_REASONS.get(native or "", "stop")
    return "tool_calls" if has_calls and reason == "stop" else reason


def usage_object(usage: Usage) -> JSON:
    """`usage` as a chat completion reports it: prompt tokens include cached ones, completion tokens reasoning."""
    prompt: JSON = {"cached_tokens": usage.cache_read_tokens}
    if usage.cache_write_tokens:
        prompt["cache_write_tokens"] = usage.cache_write_tokens
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": prompt,
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def thinking_extra(blocks: list[Thinking]) -> JSON | None:
    """extra_content of a message; None when no block has anything that must come back unchanged."""
    if not any(block.signature or block.redacted for block in blocks):
        return None
    return {"tollbar": {"thinking": [_thinking_entry(block) for block in blocks]}}


def _thinking_entry(block: Thinking) -> JSON:
    entry: JSON = {}
    if block.text or not block.redacted:
        entry["text"] = block.text
    if block.signature:
        entry["signature"] = block.signature
    if block.redacted:
        entry["redacted"] = block.redacted
    return entry


def read_thinking(message: JSON) -> list[Thinking]:
    """The thinking of an assistant message: the signed blocks when they are there, else its plain text."""
    entries = _member(message.get("extra_content"), "tollbar", "thinking")
    if isinstance(entries, list):
        return [
            Thinking(
                text=_text(entry.get("text")) or "",
                signature=_text(entry.get("signature")),
                redacted=_text(entry.get("redacted")),
            )
            for entry in entries
            if isinstance(entry, dict)
        ]
    text = _text(message.get("reasoning_content")) or _text(message.get("reasoning"))
    return [Thinking(text=text)] if text else []


def signature_extra(signature: str) -> JSON:
    """extra_content of a tool call."""
    return {"tollbar": {"signature": signature}}


def google_signature(signature: str) -> JSON:
    """The same as Google's own servers of this format send it and want it back."""
    return {"google": {"thought_signature": signature}}


def read_signature(tool_call: JSON) -> str | None:
    """The signature of a tool call, ours or Google's."""
    extra = tool_call.get("extra_content")
    return _text(_member(extra, "tollbar", "signature")) or _text(_member(extra, "google", "thought_signature"))


def _member(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
