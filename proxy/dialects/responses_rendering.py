"""A stream in the events of OpenAI's Responses API.

Items come one after the other, but fragments of tool calls may interleave where they come from: a call stays open
beside the items that begin after it until its arguments are a whole JSON object. All are closed before the end.
"""

from __future__ import annotations

from proxy.canonical import (
    Finished,
    RedactedThinking,
    RefusalDelta,
    SignatureDelta,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
)
from proxy.context import AnswerFacts, Call
from proxy.dialects.responses_items import Shell, is_incomplete
from proxy.dialects.responses_open_items import Events, OpenCall, OpenItem, OpenMessage, OpenReasoning
from proxy.openai_format.responses_shapes import error_frame


class ResponsesStreamRenderer:
    """One stream. `model` is the target's name, as the answer tells it."""

    def __init__(self, call: Call, model: str) -> None:
        self._shell = Shell(call, model)
        self._events = Events()
        self._begun = False
        self._closed = False
        self._finish: Finished | None = None
        self._items: list[OpenItem] = []
        self._current: OpenMessage | OpenReasoning | None = None  # the item that goes on
        self._calls: dict[int, OpenCall] = {}

    def render(self, events: list[StreamEvent]) -> bytes:
        if self._closed:
            return b""
        return b"".join([self._frames_of(event) for event in events])

    def end(self, facts: AnswerFacts) -> bytes:
        if self._closed:
            return b""
        self._closed = True
        finish = self._finish.finish_reason if self._finish else facts.finish_reason
        frames = [] if self._begun else [self._begin()]
        for item in self._items:
            if item.document is None:
                cut = is_incomplete(finish) and item is self._items[-1]
                frames.append(item.close("incomplete" if cut else "completed"))
        output = [item.document for item in self._items if item.document is not None]
        response = self._shell.ended(output, facts.usage, finish)
        frames.append(self._events.frame(f"response.{response['status']}", response=response))
        return b"".join(frames)

    def fail(self, message: str, code: str, type_: str, request_id: str) -> bytes:
        if self._closed:
            return b""
        self._closed = True
        return error_frame(message, code, type_, request_id, self._events.number)

    def _frames_of(self, event: StreamEvent) -> bytes:
        if isinstance(event, TextDelta | RefusalDelta):
            return self._say(event)
        if isinstance(event, ToolCallDelta):
            return self._add_arguments(event)
        if isinstance(event, ToolCallStart):
            return self._start_call(event)
        if isinstance(event, ThinkingDelta | SignatureDelta | RedactedThinking):
            return self._think(event)
        if isinstance(event, Finished):
            self._finish = event
        return b""

    def _say(self, event: TextDelta | RefusalDelta) -> bytes:
        if not event.text:
            return b""
        frames, message = b"", self._current
        if not isinstance(message, OpenMessage):
            message = OpenMessage(self._events, len(self._items))
            frames = self._open(message)
            self._current = message
        said = message.add_text(event.text) if isinstance(event, TextDelta) else message.add_refusal(event.text)
        return frames + said

    def _think(self, event: ThinkingDelta | SignatureDelta | RedactedThinking) -> bytes:
        if isinstance(event, ThinkingDelta) and not event.text:
            return b""
        frames, item = b"", self._current
        if not isinstance(item, OpenReasoning) or isinstance(event, RedactedThinking):
            item = OpenReasoning(self._events, len(self._items))
            frames = self._open(item)
            self._current = item
        if isinstance(event, ThinkingDelta):
            return frames + item.add(event.text)
        if isinstance(event, RedactedThinking):
            item.block.redacted = event.data
        else:
            item.block.signature = event.signature
        return frames + self._close_current()

    def _start_call(self, event: ToolCallStart) -> bytes:
        if event.index in self._calls:
            return b""
        frames = b""
        call = ToolCall(event.id, event.name, "", event.signature)
        if call.signature:
            carrier = OpenReasoning(self._events, len(self._items))
            carrier.call = call
            frames = self._open(carrier) + carrier.close("completed")
        item = self._calls[event.index] = OpenCall(self._events, len(self._items), call)
        return frames + self._open(item)

    def _add_arguments(self, event: ToolCallDelta) -> bytes:
        item = self._calls.get(event.index)
        if item is None or item.document is not None or not event.arguments:
            return b""
        return item.add(event.arguments)

    def _open(self, item: OpenItem) -> bytes:
        """Begin an item; what was open and is complete ends."""
        frames = [self._close_current() if self._begun else self._begin()]
        frames += [c.close("completed") for c in self._calls.values() if c.document is None and c.is_complete()]
        self._items.append(item)
        frames.append(item.begin())
        return b"".join(frames)

    def _close_current(self) -> bytes:
        item, self._current = self._current, None
        return b"" if item is None else item.close("completed")

    def _begin(self) -> bytes:
        self._begun = True
        response = self._shell.begun()
        created = self._events.frame("response.created", response=response)
        return created + self._events.frame("response.in_progress", response=response)
