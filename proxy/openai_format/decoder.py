"""An OpenAI-style stream as canonical events. The first choice only: other dialects have no second."""

from __future__ import annotations

from proxy.canonical import (
    Finished,
    RefusalDelta,
    StreamEvent,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    UsageSeen,
)
from proxy.errors import UpstreamFault
from proxy.openai_format.answer import content_parts, read_usage
from proxy.openai_format.calls import CallJoiner, Fragment
from proxy.openai_format.chunks import Chunk, Delta, error_in, is_end, read_chunk
from proxy.openai_format.errors import fault_of_error
from proxy.openai_format.shapes import finish_reason, read_signature
from proxy.sse import SseParser


class OpenAIStreamDecoder:
    """StreamDecoder of this format. The finish reason is told when the end marker (or the end itself) comes."""

    def __init__(self) -> None:
        self.fault: UpstreamFault | None = None
        self.done = False
        self._parser = SseParser()
        self._calls = CallJoiner()
        self._answered = False  # a choice was seen
        self._finish: str | None = None

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        return self._events(self._parser.feed(chunk))

    def eof(self) -> list[StreamEvent]:
        """Some providers send no [DONE]: then a finish reason counts as the end."""
        events = self._events(self._parser.flush())
        if not self.done and self.fault is None:
            if self._finish is None:
                self.fault = UpstreamFault("protocol", "the stream ended before its end marker", status=200)
            else:
                self._end(events)
        return events

    def _events(self, received: list[tuple[bytes | None, bytes]]) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for name, data in received:
            if self.done or self.fault is not None:
                return events
            try:
                self._take(name, data, events)
            except UpstreamFault as fault:
                self.fault = fault
        if self.fault is None and not self.done:
            self.fault = self._parser.fault
        return events

    def _take(self, name: bytes | None, data: bytes, events: list[StreamEvent]) -> None:
        if is_end(data):
            self._end(events)
            return
        chunk = read_chunk(data)
        error = error_in(name, data, chunk)
        if error:
            raise fault_of_error(error)
        self._read_usage(chunk, events)
        for choice in chunk.choices or ():
            if choice.index not in (None, 0) or self._finish is not None:
                continue
            self._answered = True
            if choice.delta is not None:
                self._read_delta(choice.delta, events)
            if choice.finish_reason == "error":
                raise UpstreamFault("server", "the provider broke the answer off", status=200)
            self._finish = choice.finish_reason or None

    def _read_usage(self, chunk: Chunk, events: list[StreamEvent]) -> None:
        usage = read_usage(chunk.usage) if chunk.usage is not None else None
        if usage is not None:
            events.append(UsageSeen(usage))

    def _read_delta(self, delta: Delta, events: list[StreamEvent]) -> None:
        thinking = delta.reasoning_content or delta.reasoning
        if thinking:
            events.append(ThinkingDelta(thinking))
        if isinstance(delta.content, list):
            parts = content_parts(delta.content)
            events += [ThinkingDelta(p.text) if isinstance(p, Thinking) else TextDelta(p.text) for p in parts]
        elif delta.content:
            events.append(TextDelta(delta.content))
        if delta.refusal:
            events.append(RefusalDelta(delta.refusal))
        if delta.tool_calls:
            self._read_calls(delta.tool_calls, events)
        if delta.function_call is not None:
            self._read_calls([Fragment(index=0, function=delta.function_call)], events)

    def _read_calls(self, fragments: list[Fragment], events: list[StreamEvent]) -> None:
        for piece in self._calls.join(fragments):
            if piece.name is not None:
                signature = read_signature({"extra_content": piece.extra_content})
                events.append(ToolCallStart(piece.number, piece.id, piece.name, signature))
            if piece.arguments:
                events.append(ToolCallDelta(piece.number, piece.arguments))

    def _end(self, events: list[StreamEvent]) -> None:
        if not self._answered:
            raise UpstreamFault("protocol", "a stream without an answer", status=200)
        self.done = True
        calls = self._calls.calls
        events += [ToolCallDelta(number, "{}") for number, call in enumerate(calls) if not call.begun]
        reason = finish_reason(self._finish, has_calls=bool(calls))
        events.append(Finished(reason, native_finish=self._finish))
