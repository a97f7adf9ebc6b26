"""A Gemini stream as canonical events.

Every document is a whole answer with what is new. A finishReason (or the reason why a prompt was blocked) must come,
but it may come more than once, with more text after it: the answer is whole when the stream ends after one.
"""

from __future__ import annotations

from proxy.canonical import (
    Finished,
    Foreign,
    ForeignDelta,
    SignatureDelta,
    StreamEvent,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    Usage,
    UsageSeen,
)
from proxy.errors import UpstreamFault
from proxy.gemini_format.answer import Part, PartReader, blocked, first_candidate, read_document, read_usage
from proxy.gemini_format.frames import DocumentParser
from proxy.gemini_format.shapes import GEMINI, finish_reason, reason


class GeminiStreamDecoder:
    """StreamDecoder of this format. `names` are those of functions that Gemini knows otherwise."""

    def __init__(self, names: dict[str, str]) -> None:
        self.fault: UpstreamFault | None = None
        self.done = False
        self._documents = DocumentParser()
        self._reader = PartReader(names)
        self._calls = 0
        self._native: str | None = None
        self._blocked = False
        self._usage: Usage | None = None

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        if not self.done:
            self._take_all(self._documents.feed(chunk), events)
        return events

    def eof(self) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        if self.done:
            return events
        self._take_all(self._documents.flush(), events)
        if self.fault is not None:
            return events
        if self._native is None:
            self.fault = UpstreamFault("protocol", "the stream ended without a finishReason", status=200)
            return events
        finish = "content_filter" if self._blocked else finish_reason(self._native, has_calls=self._calls > 0)
        events.append(Finished(finish, self._native))
        self.done = True
        return events

    def _take_all(self, documents: list[bytes], events: list[StreamEvent]) -> None:
        for document in documents:
            if self.fault is not None:
                return
            try:
                self._take(document, events)
            except UpstreamFault as fault:
                self.fault = fault
        if self.fault is None:
            self.fault = self._documents.fault

    def _take(self, raw: bytes, events: list[StreamEvent]) -> None:
        document = read_document(raw)
        candidate = first_candidate(document)
        for part in self._reader.read(candidate):
            self._add(part, events)
        usage = read_usage(document.get("usageMetadata"))
        if usage is not None and usage != self._usage:
            self._usage = usage
            events.append(UsageSeen(usage))
        native = reason(candidate.get("finishReason")) if candidate else None
        block = blocked(document)
        if native is not None:
            self._native, self._blocked = native, False
        elif block is not None:
            self._native, self._blocked = block, True

    def _add(self, part: Part, events: list[StreamEvent]) -> None:
        if isinstance(part, Text):
            events.append(TextDelta(part.text))
        elif isinstance(part, ToolCall):
            start = ToolCallStart(self._calls, part.id, part.name, part.signature)
            events += [start, ToolCallDelta(self._calls, part.arguments)]
            self._calls += 1
        elif isinstance(part, Foreign):
            events.append(ForeignDelta(GEMINI, part.block))
        else:
            if part.text:
                events.append(ThinkingDelta(part.text))
            if part.signature:
                events.append(SignatureDelta(part.signature))
