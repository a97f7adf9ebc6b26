"""Handing an OpenAI-style stream on to a client that speaks the same format.

The provider's own events pass as they are, but for what a client must not see or cannot read: usage it did not ask for,
more than one usage, badly numbered tool calls, a second finish reason, a wrong `object`. Finish reasons wait until
`end`, so that a stream which breaks after one is never taken for a whole answer.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from proxy.context import AnswerFacts, Call, Relay
from proxy.errors import UpstreamFault
from proxy.openai_format.answer import content_parts, read_usage
from proxy.openai_format.calls import CallJoiner, merged_fragments
from proxy.openai_format.chunks import (
    OBJECT,
    Choice,
    Chunk,
    Delta,
    OddChunk,
    document_of,
    encode,
    error_in,
    is_end,
    read_chunk,
)
from proxy.openai_format.errors import fault_of_error
from proxy.openai_format.shapes import finish_reason, usage_object
from proxy.sse import MAX_BYTES, Event, SseParser, frame

JSON = dict[str, Any]

#: The most choices one call may ask for.
MAX_CHOICES = 128

_NO_USAGE = (b',"usage":null', b', "usage": null')


class _ChoiceState(msgspec.Struct):
    joiner: CallJoiner
    finished: bool = False


class OpenAIRelay(Relay):
    """One stream. Nothing is handed out before the first content, so that another provider may still answer."""

    #: What every chunk of this format is called.
    object_name: ClassVar[str] = OBJECT

    def __init__(self, call: Call) -> None:
        self._asked = call.include_usage
        self._parser = SseParser()
        self._states: dict[int, _ChoiceState] = {}
        self._any_finished = False
        self._waiting: list[bytes] = []  # frames that came before the first content
        self._waiting_size = 0
        self._held: list[bytes] = []  # frames with a finish reason
        self._usage: JSON | None = None  # as the provider sent it
        self._usage_frame: bytes | None = None  # its own chunk of usage and nothing else
        self._latest = b"{}"  # the latest chunk: made-up ones take its id, model and time

    def feed(self, chunk: bytes) -> bytes:
        if self.done or self.fault is not None:
            return b""
        return self._hand_on(self._parser.feed(chunk))

    def eof(self) -> bytes:
        """Some providers send no [DONE]: then finish reasons of all choices count as the end."""
        if self.done or self.fault is not None:
            return b""
        out = self._hand_on(self._parser.flush())
        if not self.done and self.fault is None:
            if self._has_finished():
                self._finish()
            else:
                self.fault = UpstreamFault("protocol", "the stream ended before its end marker", status=200)
        return out

    def end(self, facts: AnswerFacts) -> bytes:
        frames = [*self._waiting, *self._held]
        frames += [self._made_up([choice]) for choice in self._closings()]
        if self._asked:
            frames.append(self._usage_frame or self._made_up([], self._usage or usage_object(facts.usage)))
        frames.append(frame(b"[DONE]"))
        return b"".join(frames)

    def fail(self, message: str, code: str, type_: str, request_id: str) -> bytes:
        error = {"message": message, "type": type_, "param": None, "code": code, "details": None}
        return frame(msgspec.json.encode({"error": error, "request_id": request_id}))

    def _hand_on(self, events: list[Event]) -> bytes:
        out: list[bytes] = []
        try:
            for name, data in events:
                if is_end(data):
                    self._finish()
                    break
                self._take(name, data, out)
            else:
                self.fault = self._parser.fault
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
        if self._waiting_size > MAX_BYTES:
            self._waiting = []
            self.fault = UpstreamFault("protocol", "a stream of too many events without content", status=200)

    def _finish(self) -> None:
        if not self._has_answered():
            raise UpstreamFault("protocol", "a stream without an answer", status=200)
        self.done = True
        self.usage_final = self.usage is not None

    def _has_answered(self) -> bool:
        return bool(self._states)

    def _has_finished(self) -> bool:
        """Whether every choice that began has its finish reason."""
        return bool(self._states) and all(state.finished for state in self._states.values())

    def _closings(self) -> list[JSON]:
        """Last chunks of choices that the provider's end marker left without a finish reason."""
        found: list[JSON] = []
        for index, state in sorted(self._states.items()):
            if not state.finished:
                reason = "tool_calls" if state.joiner.calls else "stop"
                found.append({"index": index, "delta": {}, "logprobs": None, "finish_reason": reason})
        return found

    def _take(self, name: bytes | None, data: bytes, out: list[bytes]) -> None:
        """One event. The usual one, a piece of an only choice, passes unchanged and fast."""
        chunk = read_chunk(data)
        choices = chunk.choices
        if choices is not None and len(choices) == 1 and name is None and chunk.usage is None and chunk.error is None:
            choice = choices[0]
            if not choice.finish_reason and chunk.object == OBJECT and self._passes(choice, chunk):
                self._latest = data
                if not self._asked and b'"usage"' in data:
                    data = _without_usage(data)
                out.append(b"data: %b\n\n" % data if b"\n" not in data else frame(data))
                return
        self._take_unusual(name, data, chunk, out)

    def _passes(self, choice: Choice, chunk: Chunk) -> bool:
        """Whether a client may get this choice as it is; then it is noted, too."""
        delta = choice.delta
        if delta is None or choice.index is None or self._any_finished:
            return False
        state = self._states.get(choice.index) or self._new_state(choice.index)
        fragments = delta.tool_calls
        if fragments:
            if isinstance(chunk, OddChunk) or not state.joiner.is_orderly(fragments):
                return False
            state.joiner.join(fragments)
        content = delta.content
        if content and isinstance(content, str) and not (fragments or delta.reasoning_content or delta.reasoning):
            self.produced_chars += len(content)
            self.started = True
        else:
            self._count(delta)
        return True

    def _take_unusual(self, name: bytes | None, data: bytes, chunk: Chunk, out: list[bytes]) -> None:
        error = error_in(name, data, chunk)
        if error:
            raise fault_of_error(error)
        if chunk.usage is not None:
            self._note_usage(chunk.usage, data, alone=not chunk.choices, known=chunk.object == OBJECT)
        if chunk.choices is None:
            return
        self._latest = data
        document = document_of(data)
        document["object"] = OBJECT
        if chunk.usage is not None or not self._asked:
            document.pop("usage", None)
        if not chunk.choices:
            if chunk.usage is None:  # Azure's verdict on the prompt
                out.append(frame(encode(document)))
            return
        sources = [source for source in document["choices"] if isinstance(source, dict)]
        for choice, source in zip(chunk.choices, sources, strict=True):
            if self._take_choice(choice, source, mend=isinstance(chunk, OddChunk)):
                mended = document | {"choices": [source]}
                written = frame(data if mended == document_of(data) else encode(mended))
                (self._held if choice.finish_reason else out).append(written)

    def _new_state(self, index: int) -> _ChoiceState:
        if len(self._states) >= MAX_CHOICES:
            raise UpstreamFault("protocol", "a stream of too many choices", status=200)
        state = self._states[index] = _ChoiceState(CallJoiner())
        return state

    def _take_choice(self, choice: Choice, source: JSON, *, mend: bool) -> bool:
        """Note what a choice says and mend `source` where it must be; False when nothing of it may be handed on."""
        if choice.index is None:
            choice.index = source["index"] = 0
        state = self._states.get(choice.index) or self._new_state(choice.index)
        if state.finished:
            return False
        if choice.finish_reason == "error":
            raise UpstreamFault("server", "the provider broke the answer off", status=200)
        delta = choice.delta
        if delta is None:
            source["delta"] = {}
        elif delta.tool_calls:
            orderly = state.joiner.is_orderly(delta.tool_calls)
            pieces = state.joiner.join(delta.tool_calls)
            if mend or not orderly:
                source["delta"]["tool_calls"] = merged_fragments(pieces)
        if choice.finish_reason:
            state.finished = self._any_finished = True
            if choice.index == 0:
                self.finish_reason = finish_reason(choice.finish_reason, has_calls=bool(state.joiner.calls))
        if delta is not None:
            self._count(delta, held=bool(choice.finish_reason))
        return True

    def _count(self, delta: Delta, *, held: bool = False) -> None:
        """Characters for an estimate; `started` with the first content that is handed out."""
        content = delta.content
        if content is None or isinstance(content, str):
            count = len(content) if content else 0
        else:
            count = sum(len(part.text) for part in content_parts(content))
        thinking = delta.reasoning_content or delta.reasoning
        if thinking:
            count += len(thinking)
        if delta.refusal:
            count += len(delta.refusal)
        for fragment in delta.tool_calls or ():
            function = fragment.function or fragment.custom
            if function is not None:
                count += len(function.name or "") + len(function.arguments or function.input or "")
        if delta.function_call is not None:
            count += len(delta.function_call.name or "") + len(delta.function_call.arguments or "")
        self.produced_chars += count
        if not held and not self.started and (count or delta.tool_calls or delta.audio):
            self.started = True

    def _note_usage(self, source: Any, data: bytes, *, alone: bool, known: bool) -> None:
        """Usage is cumulative: the latest counts. One that makes no sense counts as none.

        `alone`: its chunk has no choices; `known`: the chunk is called what it is.
        """
        usage = read_usage(source)
        if usage is None:
            return
        self.usage, self._usage = usage, source
        self.usage_final = self._any_finished or alone
        self._usage_frame = frame(data) if alone and known else None

    def _made_up(self, choices: list[JSON], usage: JSON | None = None) -> bytes:
        """A chunk that the provider did not send, with the id, time and model of those it did."""
        latest = document_of(self._latest)
        chunk: JSON = {name: latest[name] for name in ("id", "created", "model") if name in latest}
        chunk |= {"object": self.object_name, "choices": choices}
        if usage is not None:
            chunk["usage"] = usage
        return frame(encode(chunk))


def _without_usage(data: bytes) -> bytes:
    """The chunk without the null that announces usage to come. Quotes inside texts are escaped: only members match."""
    for member in _NO_USAGE:
        data = data.replace(member, b"")
    if b'"usage"' in data:
        document = document_of(data)
        document.pop("usage", None)
        return encode(document)
    return data
