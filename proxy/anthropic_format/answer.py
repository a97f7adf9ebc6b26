"""Reading Anthropic's answers: usage and whole messages."""

from __future__ import annotations

from typing import Any

import msgspec

from proxy.anthropic_format.errors import fault_of_error
from proxy.anthropic_format.shapes import UNREADABLE, finish_reason
from proxy.canonical import ChatResponse, Foreign, Text, Thinking, ToolCall, Usage
from proxy.context import ANTHROPIC, Answer
from proxy.errors import UpstreamFault
from proxy.providers.base import MAX_PLAUSIBLE_TOKENS, token_count

JSON = dict[str, Any]


class _Message(msgspec.Struct):
    """The members that metering needs; whatever else there is stays undecoded."""

    type: str | None = None
    content: msgspec.Raw = msgspec.Raw()
    stop_reason: str | None = None
    usage: Any = None
    error: Any = None


_decode = msgspec.json.Decoder(_Message).decode


class _Count(msgspec.Struct):
    input_tokens: int


_decode_count = msgspec.json.Decoder(_Count).decode


class UsageSoFar:
    """Usage of one answer. It is cumulative: what comes later replaces what came before, member by member."""

    def __init__(self) -> None:
        self._members: JSON = {}

    def see(self, source: Any) -> Usage | None:
        """What is known once `source` is taken in; None while nothing is, or when it makes no sense."""
        if isinstance(source, dict):
            self._members |= {name: value for name, value in source.items() if value is not None}
        return read_usage(self._members)


def read_usage(source: Any) -> Usage | None:
    """Token counts in one meaning; None when there are none or they are nonsense (negative, huge, texts)."""
    if not isinstance(source, dict):
        return None
    try:
        plain, output = token_count(source, "input_tokens"), token_count(source, "output_tokens")
        read = token_count(source, "cache_read_input_tokens") or 0
        write = token_count(source, "cache_creation_input_tokens") or 0
        hour = token_count(source.get("cache_creation"), "ephemeral_1h_input_tokens") or 0
        thinking = token_count(source.get("output_tokens_details"), "thinking_tokens") or 0
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
        reasoning_tokens=min(thinking, output or 0),
    )


def whole_answer(body: bytes) -> Answer:
    """A good answer that the client gets as it is. Raises UpstreamFault when it is none."""
    try:
        message = _decode(body)
    except UNREADABLE:
        raise _not_a_message(body) from None
    if message.type != "message" or bytes(memoryview(message.content)[:1]) != b"[":
        raise _not_a_message(body)
    usage = read_usage(message.usage)
    return Answer(
        body=body,
        usage=usage,
        finish_reason=finish_reason(message.stop_reason),
        produced_chars=_characters(msgspec.json.decode(message.content)) if usage is None else 0,
    )


def whole_count(body: bytes) -> Answer:
    """The answer of count_tokens, which the client gets as it is. It used nothing. Raises UpstreamFault for none."""
    try:
        counted = _decode_count(body).input_tokens
    except UNREADABLE:
        raise _not_a_message(body) from None
    if not 0 <= counted <= MAX_PLAUSIBLE_TOKENS:
        raise UpstreamFault("protocol", "no plausible count", status=200)
    return Answer(body=body, usage=None, finish_reason="stop")


def chat_response(body: bytes, names: dict[str, str]) -> ChatResponse:
    """A good answer in canonical form; `names` are those of tools that differ. Raises UpstreamFault when it is none."""
    try:
        message = msgspec.json.decode(body)
    except UNREADABLE:
        raise _not_a_message(body) from None
    blocks = message.get("content") if isinstance(message, dict) and message.get("type") == "message" else None
    if not isinstance(blocks, list):
        raise _not_a_message(body)
    parts = [part_of(block, names) for block in blocks if isinstance(block, dict)]
    native = _text(message.get("stop_reason")) or None
    return ChatResponse(
        id=_text(message.get("id")) or None,
        model=_text(message.get("model")) or None,
        parts=parts,
        finish_reason=finish_reason(native, has_calls=any(isinstance(part, ToolCall) for part in parts)),
        native_finish=native,
        stop_sequence=_text(message.get("stop_sequence")) or None,
        usage=read_usage(message.get("usage")),
    )


def part_of(block: JSON, names: dict[str, str]) -> Text | Thinking | ToolCall | Foreign:
    """A block of an answer. Raises UpstreamFault for one without a type, and for a tool call without id or name."""
    kind = block.get("type")
    if not isinstance(kind, str) or not kind:
        raise UpstreamFault("protocol", "a block without a type", status=200)
    if kind == "text":
        return Text(_text(block.get("text")))
    if kind == "thinking":
        return Thinking(text=_text(block.get("thinking")), signature=_text(block.get("signature")) or None)
    if kind == "redacted_thinking":
        return Thinking(redacted=_text(block.get("data")))
    if kind == "tool_use":
        call_id, name = _text(block.get("id")), _text(block.get("name"))
        if not call_id or not name:
            raise UpstreamFault("protocol", "a tool call without id or name", status=200)
        arguments = msgspec.json.encode(block.get("input") or {}).decode()
        return ToolCall(call_id, names.get(name, name), arguments)
    return Foreign(ANTHROPIC, kind[:60], block)


def _characters(blocks: list[Any]) -> int:
    """Of all texts and tool inputs of an answer without usage."""
    count = 0
    for block in blocks:
        part = part_of(block, {}) if isinstance(block, dict) else None
        if isinstance(part, Text | Thinking):
            count += len(part.text)
        elif isinstance(part, ToolCall):
            count += len(part.name) + len(part.arguments)
    return count


def _not_a_message(body: bytes) -> UpstreamFault:
    """An error with status 200, JSON that is cut or something else, or no JSON at all."""
    try:
        document = msgspec.json.decode(body)
    except UNREADABLE:
        return UpstreamFault("protocol", "the answer is not JSON", status=200)
    if isinstance(document, dict) and document.get("error"):
        return fault_of_error(document["error"])
    return UpstreamFault("protocol", "the answer is not a message", status=200)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
