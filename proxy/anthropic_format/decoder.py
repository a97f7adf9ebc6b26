"""An Anthropic stream as canonical events."""

from __future__ import annotations

from typing import Any

import msgspec

from proxy.anthropic_format.answer import UsageSoFar, part_of
from proxy.anthropic_format.errors import fault_of_error
from proxy.anthropic_format.events import Delta, Event, read_event
from proxy.anthropic_format.shapes import finish_reason, tool_input
from proxy.canonical import (
    Finished,
    Foreign,
    ForeignDelta,
    RedactedThinking,
    SignatureDelta,
    StreamEvent,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    UsageSeen,
)
from proxy.context import ANTHROPIC
from proxy.errors import UpstreamFault
from proxy.sse import Event as SseEvent
from proxy.sse import SseParser

JSON = dict[str, Any]


class _Block(msgspec.Struct):
    """A block that is open. `call` is the number of its tool call; a `foreign` one is kept until it is whole."""

    call: int | None = None
    foreign: JSON | None = None
    given: str = ""  # the call's input as its start had it, until fragments come
    fragments: list[str] = msgspec.field(default_factory=list)  # of a foreign block's input


class AnthropicStreamDecoder:
    """StreamDecoder of this format. `names` are those of tools that the provider knows otherwise."""

    def __init__(self, names: dict[str, str]) -> None:
        self.fault: UpstreamFault | None = None
        self.done = False
        self._names = names
        self._parser = SseParser()
        self._usage = UsageSoFar()
        self._begun = False
        self._blocks: dict[int, _Block] = {}
        self._calls = 0
        self._stop_reason: str | None = None
        self._stop_sequence: str | None = None

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        return self._events(self._parser.feed(chunk))

    def eof(self) -> list[StreamEvent]:
        events = self._events(self._parser.flush())
        if not self.done and self.fault is None:
            self.fault = UpstreamFault("protocol", "the stream ended before its end marker", status=200)
        return events

    def _events(self, received: list[SseEvent]) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for name, data in received:
            if self.done or self.fault is not None:
                return events
            try:
                self._take(read_event(name, data), events)
            except UpstreamFault as fault:
                self.fault = fault
        if self.fault is None and not self.done:
            self.fault = self._parser.fault
        return events

    def _take(self, event: Event, events: list[StreamEvent]) -> None:
        kind = event.type
        if kind == "error":
            raise fault_of_error(event.error)
        if kind == "message_start":
            self._begun = True
            self._see_usage(event.message.usage if event.message else None, events)
        elif kind in _READERS:
            if not self._begun:
                raise UpstreamFault("protocol", f"{kind} before message_start", status=200)
            _READERS[kind](self, event, events)

    def _start_block(self, event: Event, events: list[StreamEvent]) -> None:
        source = event.content_block or {}
        part = part_of(source, self._names)
        self._stop_block(event, events)  # one of the same number that nothing stopped
        block = self._blocks[event.index or 0] = _Block()
        if isinstance(part, Text):
            if part.text:
                events.append(TextDelta(part.text))
        elif isinstance(part, ToolCall):
            block.call, block.given = self._calls, part.arguments
            self._calls += 1
            events.append(ToolCallStart(block.call, part.id, part.name))
        elif isinstance(part, Foreign):
            block.foreign = part.block
        elif part.redacted is not None:
            events.append(RedactedThinking(part.redacted))
        else:
            self._start_thinking(part, events)

    @staticmethod
    def _start_thinking(part: Thinking, events: list[StreamEvent]) -> None:
        if part.text:
            events.append(ThinkingDelta(part.text))
        if part.signature:
            events.append(SignatureDelta(part.signature))

    def _read_delta(self, event: Event, events: list[StreamEvent]) -> None:
        delta, block = event.delta or Delta(), self._blocks.get(event.index or 0)
        if block is None:
            raise UpstreamFault("protocol", "a delta outside a block", status=200)
        if delta.text:
            events.append(TextDelta(delta.text))
        elif delta.thinking:
            events.append(ThinkingDelta(delta.thinking))
        elif delta.signature:
            events.append(SignatureDelta(delta.signature))
        elif delta.partial_json and block.call is not None:
            block.given = ""
            events.append(ToolCallDelta(block.call, delta.partial_json))
        elif delta.partial_json:
            block.fragments.append(delta.partial_json)

    def _stop_block(self, event: Event, events: list[StreamEvent]) -> None:
        block = self._blocks.pop(event.index or 0, None)
        if block is not None:
            self._close(block, events)

    @staticmethod
    def _close(block: _Block, events: list[StreamEvent]) -> None:
        if block.call is not None and block.given:
            events.append(ToolCallDelta(block.call, block.given))
        elif block.foreign is not None:
            if block.fragments:
                block.foreign = block.foreign | {"input": tool_input("".join(block.fragments))}
            events.append(ForeignDelta(ANTHROPIC, block.foreign))

    def _read_message_delta(self, event: Event, events: list[StreamEvent]) -> None:
        delta = event.delta or Delta()
        self._stop_reason = delta.stop_reason or self._stop_reason
        self._stop_sequence = delta.stop_sequence or self._stop_sequence
        self._see_usage(event.usage, events)

    def _stop_message(self, event: Event, events: list[StreamEvent]) -> None:
        self.done = True
        for block in self._blocks.values():  # those that nothing stopped
            self._close(block, events)
        reason = finish_reason(self._stop_reason, has_calls=self._calls > 0)
        events.append(Finished(reason, native_finish=self._stop_reason, stop_sequence=self._stop_sequence))

    def _see_usage(self, source: Any, events: list[StreamEvent]) -> None:
        usage = self._usage.see(source)
        if source is not None and usage is not None:
            events.append(UsageSeen(usage))


_READERS = {
    "content_block_start": AnthropicStreamDecoder._start_block,
    "content_block_delta": AnthropicStreamDecoder._read_delta,
    "content_block_stop": AnthropicStreamDecoder._stop_block,
    "message_delta": AnthropicStreamDecoder._read_message_delta,
    "message_stop": AnthropicStreamDecoder._stop_message,
}
