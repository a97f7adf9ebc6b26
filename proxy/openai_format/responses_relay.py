"""Handing a stream of OpenAI's Responses API on to a client that speaks it.

The provider's own events pass as they are. Its last one, response.completed or .incomplete, waits until `end`, so that
a client never takes an answer for whole which was not settled. response.failed and error events are faults.
"""

from __future__ import annotations

from typing import Any

import msgspec

from proxy.context import AnswerFacts, Call, Relay
from proxy.errors import UpstreamFault
from proxy.openai_format.chunks import is_end
from proxy.openai_format.errors import fault_of_error
from proxy.openai_format.responses_answer import Response, fault_of_failure, finish_of
from proxy.openai_format.responses_shapes import error_frame, read_usage
from proxy.sse import MAX_BYTES, Event, SseParser, frame

JSON = dict[str, Any]

#: The most that may come before the first content: the first events repeat instructions and tools of the request.
MAX_WAITING = 8 * MAX_BYTES

_LAST = ("response.completed", "response.incomplete")
#: Items that hold no content when they open; any other is a call or what a tool of the provider does.
_EMPTY_ITEMS = ("message", "reasoning")


class _Item(msgspec.Struct):
    type: str | None = None
    name: str | None = None


class _Event(msgspec.Struct):
    """The members of any event that are looked at."""

    type: str | None = None
    delta: Any = None
    item: _Item | None = None
    sequence_number: Any = None


class _Broken(msgspec.Struct):
    """What an error event may hold: flat as documented, or nested as it is sent, too."""

    error: Any = None
    code: Any = None
    message: Any = None
    param: Any = None


class _Ended(msgspec.Struct):
    response: Response


_read = msgspec.json.Decoder(_Event).decode
_read_broken = msgspec.json.Decoder(_Broken).decode
_read_ended = msgspec.json.Decoder(_Ended).decode


class ResponsesRelay(Relay):
    """One stream. Nothing is handed out before the first content, so that another provider may still answer."""

    def __init__(self, call: Call) -> None:
        self._parser = SseParser()
        self._waiting: list[bytes] = []  # frames that came before the first content
        self._waiting_size = 0
        self._last = b""  # the provider's last frame
        self._number = 0  # of the next event

    def feed(self, chunk: bytes) -> bytes:
        if self.done or self.fault is not None:
            return b""
        return self._hand_on(self._parser.feed(chunk))

    def eof(self) -> bytes:
        if self.done or self.fault is not None:
            return b""
        out = self._hand_on(self._parser.flush())
        if not self.done and self.fault is None:
            self.fault = UpstreamFault("protocol", "the stream ended before its last event", status=200)
        return out

    def end(self, facts: AnswerFacts) -> bytes:
        return b"".join([*self._waiting, self._last])

    def fail(self, message: str, code: str, type_: str, request_id: str) -> bytes:
        return error_frame(message, code, type_, request_id, self._number)

    def _hand_on(self, events: list[Event]) -> bytes:
        out: list[bytes] = []
        try:
            for name, data in events:
                self._take(name, data, out)
                if self.done:
                    break
            else:
                self.fault = self._parser.fault
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.fault = UpstreamFault("protocol", "an event of the stream is not understood", status=200)
        except UpstreamFault as fault:
            self.fault = fault
        if not self.started:
            self._wait(out)
            return b""
        if self._waiting:
            out = self._waiting + out
            self._waiting = []
        return b"".join(out)

    def _wait(self, frames: list[bytes]) -> None:
        self._waiting += frames
        self._waiting_size += sum(map(len, frames))
        if self._waiting_size > MAX_WAITING:
            self._waiting = []
            self.fault = UpstreamFault("protocol", "a stream of too many events without content", status=200)

    def _take(self, name: bytes | None, data: bytes, out: list[bytes]) -> None:
        """One event. Its type is told by its data: the name before it is only the same again."""
        if is_end(data):  # not OpenAI's, but usual where its formats are spoken
            return
        event = _read(data)
        if isinstance(event.sequence_number, int):
            self._number = event.sequence_number + 1
        kind = event.type
        if event.delta is not None:
            self._count(event.delta)
        elif kind in _LAST:
            self._finish(data)
            self._last = frame(data, _text(name))
            return
        elif kind is None or kind in ("error", "response.failed", "response.cancelled") or name == b"error":
            raise _fault_in(kind, data)
        elif event.item is not None and kind == "response.output_item.added":
            self._count(event.item.name or "")
            self.started = self.started or event.item.type not in _EMPTY_ITEMS
        out.append(frame(data, _text(name)))

    def _count(self, delta: Any) -> None:
        """Characters for an estimate; `started` with the first of them."""
        if isinstance(delta, str) and delta:
            self.produced_chars += len(delta)
            self.started = True

    def _finish(self, data: bytes) -> None:
        response = _read_ended(data).response
        self.finish_reason = finish_of(response)
        self.usage = read_usage(response.usage)
        self.usage_final = self.usage is not None
        self.done = True


def _text(name: bytes | None) -> str | None:
    return None if name is None else name.decode("utf-8", "replace")


def _fault_in(kind: str | None, data: bytes) -> UpstreamFault:
    """What an event means that says the answer failed, or that has no type at all."""
    if kind in ("response.failed", "response.cancelled"):
        return fault_of_failure(_read_ended(data).response.error)
    broken = _read_broken(data)
    if broken.error:
        return fault_of_failure(broken.error)
    if kind is None and broken.message is None:
        return UpstreamFault("protocol", "an event without a type", status=200)
    return fault_of_error({"code": broken.code, "message": broken.message, "param": broken.param})
