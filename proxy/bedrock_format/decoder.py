"""A ConverseStream answer as canonical events.

messageStop is the terminal marker; the usage comes after it, in metadata, and is waited for. Blocks of text and
thinking are not opened, only closed; what tools of AWS's own do is passed over.
"""

from __future__ import annotations

from typing import Any

import msgspec

from proxy.bedrock_format.answer import called
from proxy.bedrock_format.errors import fault_of_exception
from proxy.bedrock_format.shapes import (
    UNREADABLE,
    finish_reason,
    is_for_caller,
    read_usage,
    stop_sequence,
    text_of,
)
from proxy.canonical import (
    Finished,
    RedactedThinking,
    SignatureDelta,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    UsageSeen,
)
from proxy.errors import UpstreamFault
from proxy.eventstream import EventStreamParser, Message

JSON = dict[str, Any]


class _Call(msgspec.Struct):
    """A tool call that is open: its number, and whether any of its input came."""

    number: int
    begun: bool = False


class ConverseStreamDecoder:
    """StreamDecoder of this format. `names` are the caller's tools."""

    def __init__(self, names: dict[str, str]) -> None:
        self.fault: UpstreamFault | None = None
        self.done = False
        self._names = names
        self._parser = EventStreamParser()
        self._open: dict[int, _Call] = {}
        self._calls = 0
        self._finished = False

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for message in self._parser.feed(chunk):
            if self.done or self.fault is not None:
                return events
            try:
                self._take(message, events)
            except UpstreamFault as fault:
                self.fault = fault
        if self.fault is None and not self.done:
            self.fault = self._parser.fault
        return events

    def eof(self) -> list[StreamEvent]:
        """Nothing more comes: after messageStop the answer is whole, though its usage may be missing."""
        if self._finished and self.fault is None:
            self.done = True
        elif not self.done and self.fault is None:
            self.fault = UpstreamFault("protocol", "the stream ended before its end marker", status=200)
        return []

    def _take(self, message: Message, events: list[StreamEvent]) -> None:
        kind = message.text(":message-type")
        if kind == "exception":
            raise fault_of_exception(message.text(":exception-type"), message.payload)
        if kind == "error":
            raise fault_of_exception(message.text(":error-code"), message.payload, message.text(":error-message"))
        reader = _READERS.get(message.text(":event-type"))
        if reader is not None:
            reader(self, _document(message.payload), events)

    def _start_block(self, event: JSON, events: list[StreamEvent]) -> None:
        source = _member(_member(event, "start"), "toolUse")
        if not source or not is_for_caller(source, self._names):
            return
        call = called(source, self._names, "")
        self._open[_index(event)] = _Call(self._calls)
        events.append(ToolCallStart(self._calls, call.id, call.name))
        self._calls += 1

    def _read_delta(self, event: JSON, events: list[StreamEvent]) -> None:
        delta = _member(event, "delta")
        if text := text_of(delta, "text"):
            events.append(TextDelta(text))
        elif "toolUse" in delta:
            call, fragment = self._open.get(_index(event)), text_of(_member(delta, "toolUse"), "input")
            if call is not None and fragment:
                call.begun = True
                events.append(ToolCallDelta(call.number, fragment))
        elif "reasoningContent" in delta:
            _read_reasoning(_member(delta, "reasoningContent"), events)

    def _stop_block(self, event: JSON, events: list[StreamEvent]) -> None:
        call = self._open.pop(_index(event), None)
        if call is not None and not call.begun:
            events.append(ToolCallDelta(call.number, "{}"))

    def _stop_message(self, event: JSON, events: list[StreamEvent]) -> None:
        if self._finished:
            return
        self._finished = True
        native = text_of(event, "stopReason") or None
        reason = finish_reason(native, has_calls=self._calls > 0)
        ended_by = stop_sequence(event.get("additionalModelResponseFields"))
        events.append(Finished(reason, native_finish=native, stop_sequence=ended_by))

    def _read_metadata(self, event: JSON, events: list[StreamEvent]) -> None:
        usage = read_usage(event.get("usage"))
        if usage is not None:
            events.append(UsageSeen(usage))
        self.done = self._finished


def _read_reasoning(delta: JSON, events: list[StreamEvent]) -> None:
    if text := text_of(delta, "text"):
        events.append(ThinkingDelta(text))
    elif signature := text_of(delta, "signature"):
        events.append(SignatureDelta(signature))
    elif redacted := text_of(delta, "redactedContent"):
        events.append(RedactedThinking(redacted))


def _document(payload: bytes) -> JSON:
    try:
        document = msgspec.json.decode(payload)
    except UNREADABLE:
        raise UpstreamFault("protocol", "an event that is not JSON", status=200) from None
    if not isinstance(document, dict):
        raise UpstreamFault("protocol", "an event that is not an object", status=200)
    return document


def _member(source: JSON, name: str) -> JSON:
    value = source.get(name)
    return value if isinstance(value, dict) else {}


def _index(event: JSON) -> int:
    index = event.get("contentBlockIndex")
    return index if isinstance(index, int) else 0


_READERS = {
    "contentBlockStart": ConverseStreamDecoder._start_block,
    "contentBlockDelta": ConverseStreamDecoder._read_delta,
    "contentBlockStop": ConverseStreamDecoder._stop_block,
    "messageStop": ConverseStreamDecoder._stop_message,
    "metadata": ConverseStreamDecoder._read_metadata,
}
