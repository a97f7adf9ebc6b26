"""Answers in Anthropic's Messages format: a message, and the events of its stream.

Blocks of a stream come strictly one after the other, but fragments of tool calls may interleave where they come from.
So a block waits, with all it gets, until the one before it is complete: a tool call is when its arguments are a whole
JSON object, any other block as soon as the next begins.
"""

from __future__ import annotations

import uuid
from typing import Any

import msgspec

from proxy.anthropic_format.shapes import (
    UNREADABLE,
    answer_block,
    error_frame,
    opened_call,
    stop_reason,
    thinking_block,
    usage_object,
)
from proxy.canonical import (
    ChatResponse,
    Finished,
    ForeignDelta,
    RedactedThinking,
    RefusalDelta,
    SignatureDelta,
    StreamEvent,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    Usage,
    UsageSeen,
)
from proxy.context import ANTHROPIC, AnswerFacts
from proxy.sse import frame

JSON = dict[str, Any]

#: How often arguments are tried for completeness while another block waits.
MAX_TRIALS = 64

_encode = msgspec.json.encode


def message(response: ChatResponse, facts: AnswerFacts) -> bytes:
    """A whole answer."""
    content = [block for part in response.parts if (block := answer_block(part)) is not None]
    if response.refusal:
        content.append({"type": "text", "text": response.refusal})
    reason = stop_reason(
        response.finish_reason,
        has_calls=any(block["type"] == "tool_use" for block in content),
        refused=bool(response.refusal),
        stop_sequence=response.stop_sequence,
    )
    sequence = response.stop_sequence if reason == "stop_sequence" else None
    return _encode(_message(facts.model, content, reason, sequence, facts.usage))


def _message(model: str, content: list[JSON], reason: str | None, sequence: str | None, usage: Usage) -> JSON:
    return {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": sequence,
        "usage": usage_object(usage),
    }


def _frame(kind: str, **members: Any) -> bytes:
    return frame(_encode({"type": kind} | members), kind)


class _Block:
    """A block from its first event on. `kind` tells which events go on with it."""

    def __init__(self, kind: str, start: JSON) -> None:
        self.kind = kind
        self.start = start
        self.waiting: list[bytes] = []  # deltas that came before its turn: type and value as JSON
        self.arguments: list[str] = []
        self.trials = 0
        self.ended = False  # nothing more belongs to it

    def is_complete(self) -> bool:
        if self.kind != "tool_use":
            return True
        self.trials += 1
        if self.trials > MAX_TRIALS:
            return False
        try:
            return isinstance(msgspec.json.decode("".join(self.arguments)), dict)
        except UNREADABLE:
            return False


class AnthropicStreamRenderer:
    """One stream. `model` is the target's name, as the answer tells it."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._usage = Usage()
        self._begun = False
        self._closed = False
        self._finish: Finished | None = None
        self._refused = False
        self._blocks: list[_Block] = []  # the first is open at the client, the others wait
        self._calls: dict[int, _Block] = {}
        self._index = 0  # of the open block

    def render(self, events: list[StreamEvent]) -> bytes:
        if self._closed:
            return b""
        return b"".join([self._frames_of(event) for event in events])

    def end(self, facts: AnswerFacts) -> bytes:
        if self._closed:
            return b""
        self._closed = True
        frames = [] if self._begun else [self._begin()]
        while self._blocks:
            frames.append(self._close_first())
        told = self._finish
        finish = told.finish_reason if told else facts.finish_reason
        sequence = told.stop_sequence if told else None
        reason = stop_reason(finish, has_calls=bool(self._calls), refused=self._refused, stop_sequence=sequence)
        delta = {"stop_reason": reason, "stop_sequence": sequence if reason == "stop_sequence" else None}
        frames.append(_frame("message_delta", delta=delta, usage=usage_object(facts.usage)))
        frames.append(_frame("message_stop"))
        return b"".join(frames)

    def fail(self, message: str, code: str, type_: str, request_id: str) -> bytes:
        if self._closed:
            return b""
        self._closed = True
        return error_frame(message, code, type_, request_id)

    # ---------------------------------------------------------------- events

    def _frames_of(self, event: StreamEvent) -> bytes:
        if isinstance(event, TextDelta):
            return self._add("text", b'"text_delta","text"', event.text)
        if isinstance(event, ToolCallDelta):
            return self._add_arguments(event)
        if isinstance(event, ToolCallStart):
            return self._start_call(event)
        if isinstance(event, ThinkingDelta | SignatureDelta | RedactedThinking):
            return self._think(event)
        if isinstance(event, RefusalDelta):
            self._refused = True
            return self._add("text", b'"text_delta","text"', event.text)
        if isinstance(event, ForeignDelta):
            return self._start("foreign", event.block) if event.dialect == ANTHROPIC else b""
        if isinstance(event, UsageSeen):
            self._usage = event.usage
        else:
            self._finish = event
        return b""

    def _think(self, event: ThinkingDelta | SignatureDelta | RedactedThinking) -> bytes:
        if isinstance(event, RedactedThinking):
            return self._start("redacted_thinking", thinking_block(Thinking(redacted=event.data)))
        if isinstance(event, ThinkingDelta):
            return self._add("thinking", b'"thinking_delta","thinking"', event.text)
        frames = self._add("thinking", b'"signature_delta","signature"', event.signature)
        if self._blocks:
            self._blocks[-1].ended = True
        return frames

    def _add(self, kind: str, name: bytes, value: str) -> bytes:
        """More of the latest block when it is of this kind, else a new one."""
        if not value:
            return b""
        frames = b""
        if not self._blocks or self._blocks[-1].kind != kind or self._blocks[-1].ended:
            start = {"type": kind, "text": ""} if kind == "text" else thinking_block(Thinking())
            frames = self._start(kind, start)
        return frames + self._pass(self._blocks[-1], name, value)

    def _start_call(self, event: ToolCallStart) -> bytes:
        if event.index in self._calls:
            return b""
        frames = self._start("tool_use", opened_call(ToolCall(event.id, event.name, "", event.signature)))
        self._calls[event.index] = self._blocks[-1]
        return frames

    def _add_arguments(self, event: ToolCallDelta) -> bytes:
        block = self._calls.get(event.index)
        if block is None or block.ended or not event.arguments:
            return b""
        block.arguments.append(event.arguments)
        frames = self._pass(block, b'"input_json_delta","partial_json"', event.arguments)
        if len(self._blocks) > 1 and block is self._blocks[0] and event.arguments.rstrip().endswith("}"):
            frames += self._move_on()
        return frames

    # ---------------------------------------------------------------- frames

    def _start(self, kind: str, start: JSON) -> bytes:
        frames = b"" if self._begun else self._begin()
        self._blocks.append(_Block(kind, start))
        if len(self._blocks) == 1:
            return frames + self._open_first()
        return frames + self._move_on()

    def _begin(self) -> bytes:
        self._begun = True
        return _frame("message_start", message=_message(self._model, [], None, None, self._usage))

    def _move_on(self) -> bytes:
        """Close blocks that are complete while others wait, so that these get their turn."""
        frames = []
        while len(self._blocks) > 1 and self._blocks[0].is_complete():
            frames.append(self._close_first())
        return b"".join(frames)

    def _open_first(self) -> bytes:
        block = self._blocks[0]
        frames = [_frame("content_block_start", index=self._index, content_block=block.start)]
        frames += [self._delta(delta) for delta in block.waiting]
        block.waiting = []
        return b"".join(frames)

    def _close_first(self) -> bytes:
        """Close the open block and open the next, if there is one."""
        self._blocks.pop(0).ended = True
        frames = _frame("content_block_stop", index=self._index)
        self._index += 1
        return frames + self._open_first() if self._blocks else frames

    def _pass(self, block: _Block, name: bytes, value: str) -> bytes:
        delta = b"%b:%b" % (name, _encode(value))
        if block is self._blocks[0]:
            return self._delta(delta)
        block.waiting.append(delta)
        return b""

    def _delta(self, delta: bytes) -> bytes:
        return (
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":%b}}\n\n'
            % (self._index, delta)
        )
