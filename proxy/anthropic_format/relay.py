"""Handing an Anthropic stream on to a client that speaks the same format.

The provider's events pass as they are. From message_delta on they wait until `end`, so that a stream which breaks after
its stop_reason is never taken for a whole answer; an error of the provider is told in the gateway's words.
"""

from __future__ import annotations

import msgspec

from proxy.anthropic_format.answer import UsageSoFar
from proxy.anthropic_format.errors import fault_of_error
from proxy.anthropic_format.events import Delta, Event, document_of, read_event
from proxy.anthropic_format.shapes import error_frame, finish_reason, usage_object
from proxy.context import AnswerFacts, Relay
from proxy.errors import UpstreamFault
from proxy.sse import MAX_BYTES, SseParser, frame
from proxy.sse import Event as SseEvent

#: Blocks that say nothing yet when they start.
_EMPTY_AT_FIRST = ("text", "thinking")


class AnthropicRelay(Relay):
    """One stream."""

    def __init__(self) -> None:
        self._parser = SseParser()
        self._usage = UsageSoFar()
        self._begun = False
        self._has_calls = False
        self._size_before_content = self._size_held = 0  # bytes
        self._held: list[bytes] = []  # frames from the first message_delta on
        self._deltas = 0
        self._without_usage: dict[int, bytes] = {}  # message_delta events among them that lack it

    def feed(self, chunk: bytes) -> bytes:
        if self.done or self.fault is not None:
            return b""
        return self._hand_on(self._parser.feed(chunk))

    def eof(self) -> bytes:
        if self.done or self.fault is not None:
            return b""
        out = self._hand_on(self._parser.flush())
        if not self.done and self.fault is None:
            self.fault = UpstreamFault("protocol", "the stream ended before its end marker", status=200)
        return out

    def end(self, facts: AnswerFacts) -> bytes:
        """The frames held back, message_delta with usage also when the provider sent none (its SDKs rely on it)."""
        usage = usage_object(facts.usage)
        for number, data in self._without_usage.items():
            self._held[number] = frame(msgspec.json.encode(document_of(data) | {"usage": usage}), "message_delta")
        if not self._deltas:
            delta = {"stop_reason": "tool_use" if self._has_calls else "end_turn", "stop_sequence": None}
            made_up = msgspec.json.encode({"type": "message_delta", "delta": delta, "usage": usage})
            self._held.insert(0, frame(made_up, "message_delta"))
        return b"".join(self._held)

    def fail(self, message: str, code: str, type_: str, request_id: str) -> bytes:
        return error_frame(message, code, type_, request_id)

    def _hand_on(self, events: list[SseEvent]) -> bytes:
        out: list[bytes] = []
        try:
            for name, data in events:
                self._take(name, data, out)
                if self.done:
                    break
            else:
                self.fault = self._parser.fault
        except UpstreamFault as fault:
            self.fault = fault
        handed_on = b"".join(out)
        if not self.started:
            self._size_before_content += len(handed_on)
            if self._size_before_content > MAX_BYTES:
                self.fault = UpstreamFault("protocol", "a stream of too many events without content", status=200)
        return handed_on

    def _take(self, name: bytes | None, data: bytes, out: list[bytes]) -> None:
        """One event. The usual one, a piece of a block, passes unchanged and fast."""
        event = read_event(name, data)
        if event.type == "content_block_delta" and self._begun:
            self._count(event.delta)
        elif event.type == "error":
            raise fault_of_error(event.error)
        elif event.type:
            self._note(event, data)
        else:
            return
        written = b"event: %b\ndata: %b\n\n" % (event.type.encode(), data)
        if b"\n" in data:
            written = frame(data, event.type)
        if self._deltas or self.done:
            self._hold(written)
        else:
            out.append(written)

    def _hold(self, written: bytes) -> None:
        self._held.append(written)
        self._size_held += len(written)
        if self._size_held > MAX_BYTES:
            raise UpstreamFault("protocol", "a stream of too many events behind its end", status=200)

    def _count(self, delta: Delta | None) -> None:
        if delta is None:
            return
        text = delta.text or delta.thinking or delta.partial_json
        if text:
            self.produced_chars += len(text)
            self.started = True

    def _note(self, event: Event, data: bytes) -> None:
        kind = event.type
        if kind == "message_start":
            self._begun = True
            self.usage = self._usage.see(event.message.usage if event.message else None)
        elif kind[:7] in ("message", "content") and not self._begun:
            raise UpstreamFault("protocol", f"{kind} before message_start", status=200)
        elif kind == "content_block_start":
            self._start_block(event)
        elif kind == "message_delta":
            self._read_message_delta(event, data)
        elif kind == "message_stop":
            self.done = True

    def _start_block(self, event: Event) -> None:
        block = event.content_block or {}
        kind = block.get("type")
        if kind not in _EMPTY_AT_FIRST:
            self.started = True
        else:
            self._count(Delta(text=str(block.get(kind) or "")))
        if kind == "tool_use":
            self._has_calls = True
            self.produced_chars += len(str(block.get("name") or ""))

    def _read_message_delta(self, event: Event, data: bytes) -> None:
        if event.usage is None:
            self._without_usage[len(self._held)] = data
        else:
            self.usage = self._usage.see(event.usage)
            self.usage_final = self.usage is not None
        self._deltas += 1
        if event.delta is not None and event.delta.stop_reason:
            self.finish_reason = finish_reason(event.delta.stop_reason)
