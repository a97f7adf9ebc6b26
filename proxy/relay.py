"""A provider's stream for a client of another dialect: decoded to canonical events, rendered in the client's frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.canonical import (
    Finished,
    RefusalDelta,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    UsageSeen,
)
from proxy.context import AnswerFacts, Relay
from proxy.errors import UpstreamFault

if TYPE_CHECKING:
    from proxy.dialects.base import StreamRenderer
    from proxy.providers.base import StreamDecoder


#: The most a stream may tell (characters, and 64 an event): some renderers keep what they must tell again at the end.
MAX_TOLD = 64 << 20
EVENT_WEIGHT = 64


class TranslatingRelay(Relay):
    """Nothing is handed out before the first content, so that another provider may still answer."""

    def __init__(self, decoder: StreamDecoder, renderer: StreamRenderer) -> None:
        self._decoder = decoder
        self._renderer = renderer
        self._waiting = b""  # frames that came before the first content
        self._events = 0

    def feed(self, chunk: bytes) -> bytes:
        if self.done or self.fault is not None:
            return b""
        return self._hand_on(self._decoder.feed(chunk))

    def eof(self) -> bytes:
        if self.done or self.fault is not None:
            return b""
        return self._hand_on(self._decoder.eof())

    def end(self, facts: AnswerFacts) -> bytes:
        return self._waiting + self._renderer.end(facts)

    def fail(self, message: str, code: str, type_: str, request_id: str) -> bytes:
        return self._renderer.fail(message, code, type_, request_id)

    def _hand_on(self, events: list[StreamEvent]) -> bytes:
        out = b""
        if events:
            self._events += len(events)
            self._note(events)
            out = self._renderer.render(events)
        self.done = self._decoder.done
        self.fault = self._decoder.fault or self._too_much()
        self.usage_final = self.done and self.usage is not None
        if not self.started:
            self._waiting += out
            return b""
        if self._waiting:
            out, self._waiting = self._waiting + out, b""
        return out

    def _too_much(self) -> UpstreamFault | None:
        if self.done or self.produced_chars + self._events * EVENT_WEIGHT <= MAX_TOLD:
            return None
        return UpstreamFault("protocol", "a stream that does not end", status=200)

    def _note(self, events: list[StreamEvent]) -> None:
        for event in events:
            if isinstance(event, TextDelta | ThinkingDelta | RefusalDelta):
                self._produced(len(event.text))
            elif isinstance(event, ToolCallDelta):
                self._produced(len(event.arguments))
            elif isinstance(event, ToolCallStart):
                self._produced(len(event.name))
                self.started = True
            elif isinstance(event, UsageSeen):
                self.usage = event.usage
            elif isinstance(event, Finished):
                self.finish_reason = event.finish_reason
            else:  # SignatureDelta, RedactedThinking, ForeignDelta
                self.started = True

    def _produced(self, characters: int) -> None:
        self.produced_chars += characters
        if characters:
            self.started = True
