"""Answers in OpenAI's chat format: chat.completion and chat.completion.chunk."""

from __future__ import annotations

import time
import uuid
from typing import Any

import msgspec

from proxy.canonical import (
    ChatResponse,
    Finished,
    RedactedThinking,
    RefusalDelta,
    SignatureDelta,
    StreamEvent,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
)
from proxy.context import AnswerFacts, Call
from proxy.openai_format.shapes import signature_extra, thinking_extra, usage_object
from proxy.sse import frame

JSON = dict[str, Any]

_encode = msgspec.json.encode


def is_legacy(call: Call) -> bool:
    """Whether the client declared functions in the way before tools: it reads function_call only."""
    return bool(call.body.get("functions")) and not call.body.get("tools")


def tool_call_object(call: ToolCall) -> JSON:
    written: JSON = {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments or "{}"},
    }
    if call.signature:
        written["extra_content"] = signature_extra(call.signature)
    return written


def completion(call: Call, response: ChatResponse, facts: AnswerFacts) -> bytes:
    """A whole answer."""
    message = _message(response)
    finish: str = response.finish_reason
    if is_legacy(call) and "tool_calls" in message:
        message["function_call"] = message.pop("tool_calls")[0]["function"]
        finish = "function_call" if finish == "tool_calls" else finish
    document = {
        "id": _completion_id(),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": facts.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": usage_object(facts.usage),
    }
    return _encode(document)


def _completion_id() -> str:
    return f"chatcmpl-{uuid.uuid4().hex}"


def _message(response: ChatResponse) -> JSON:
    texts = [part.text for part in response.parts if isinstance(part, Text)]
    thinking = [part for part in response.parts if isinstance(part, Thinking)]
    calls = [tool_call_object(part) for part in response.parts if isinstance(part, ToolCall)]
    content = "".join(texts)
    empty = None if calls or response.refusal else ""
    message: JSON = {"role": "assistant", "content": content or empty, "refusal": response.refusal}
    reasoning = "".join(block.text for block in thinking)
    if reasoning:
        message["reasoning_content"] = reasoning
    extra = thinking_extra(thinking)
    if extra is not None:
        message["extra_content"] = extra
    if calls:
        message["tool_calls"] = calls
    return message


class _Block(msgspec.Struct):
    """A thinking block as it comes in."""

    texts: list[str] = []
    signature: str | None = None
    redacted: str | None = None


class OpenAIStreamRenderer:
    """One stream of chunks. `model` is the target's name."""

    def __init__(self, call: Call, model: str) -> None:
        self.model = model
        self._include_usage = call.include_usage
        self._legacy = is_legacy(call)
        self._begun = False
        self._closed = False
        self._head = b""  # of every chunk up to the delta
        self._tail = b""  # … and behind it
        self._identity: JSON = {}
        self._finish: str | None = None
        self._calls: set[int] = set()
        self._thinking: list[_Block] = []
        self._open: _Block | None = None  # the thinking block that goes on

    def render(self, events: list[StreamEvent]) -> bytes:
        if self._closed:
            return b""
        return b"".join([self._frame_of(event) for event in events])

    def end(self, facts: AnswerFacts) -> bytes:
        if self._closed:
            return b""
        frames = []
        if not self._begun:
            frames.append(self._begin())
        blocks = [Thinking("".join(block.texts), block.signature, block.redacted) for block in self._thinking]
        extra = thinking_extra(blocks)
        if extra is not None:  # once and whole: clients add up deltas member by member
            frames.append(self._delta({"extra_content": extra}))
        finish = self._finish or facts.finish_reason
        if self._legacy and finish == "tool_calls":
            finish = "function_call"
        choice = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": finish}
        closing = self._identity | {"choices": [choice]}
        frames.append(frame(_encode(closing | {"usage": None} if self._include_usage else closing)))
        if self._include_usage:
            frames.append(frame(_encode(self._identity | {"choices": [], "usage": usage_object(facts.usage)})))
        frames.append(frame(b"[DONE]"))
        self._closed = True
        return b"".join(frames)

    def fail(self, message: str, code: str, type_: str, request_id: str) -> bytes:
        if self._closed:
            return b""
        self._closed = True
        error = {"message": message, "type": type_, "param": None, "code": code, "details": None}
        return frame(_encode({"error": error, "request_id": request_id}))

    def _frame_of(self, event: StreamEvent) -> bytes:
        delta = self._delta_of(event)
        if delta is None:
            return b""
        return self._delta(delta) if self._begun else self._begin() + self._delta(delta)

    def _delta_of(self, event: StreamEvent) -> JSON | None:
        if isinstance(event, ThinkingDelta | SignatureDelta | RedactedThinking):
            return self._think(event)
        if isinstance(event, ToolCallDelta):
            return self._call_delta(event)
        delta: JSON | None = None
        if isinstance(event, TextDelta):
            delta = {"content": event.text}
        elif isinstance(event, RefusalDelta):
            delta = {"refusal": event.text}
        elif isinstance(event, ToolCallStart):
            delta = self._call_start(event)
        elif isinstance(event, Finished):
            self._finish = event.finish_reason
        if delta is not None:
            self._open = None
        return delta

    def _think(self, event: ThinkingDelta | SignatureDelta | RedactedThinking) -> JSON | None:
        if isinstance(event, RedactedThinking):
            self._thinking.append(_Block(redacted=event.data))
            self._open = None
            return None
        if self._open is None:
            self._open = _Block()
            self._thinking.append(self._open)
        if isinstance(event, ThinkingDelta):
            self._open.texts.append(event.text)
            return {"reasoning_content": event.text}
        self._open.signature = event.signature
        self._open = None
        return None

    def _call_start(self, event: ToolCallStart) -> JSON | None:
        if event.index in self._calls:
            return None
        self._calls.add(event.index)
        if self._legacy:
            return {"function_call": {"name": event.name, "arguments": ""}} if event.index == 0 else None
        call: JSON = {
            "index": event.index,
            "id": event.id,
            "type": "function",
            "function": {"name": event.name, "arguments": ""},
        }
        if event.signature:
            call["extra_content"] = signature_extra(event.signature)
        return {"tool_calls": [call]}

    def _call_delta(self, event: ToolCallDelta) -> JSON | None:
        if event.index not in self._calls:
            return None
        if self._legacy:
            return {"function_call": {"arguments": event.arguments}} if event.index == 0 else None
        return {"tool_calls": [{"index": event.index, "function": {"arguments": event.arguments}}]}

    def _begin(self) -> bytes:
        """The first chunk; id, time and model are the same in all that follow."""
        self._begun = True
        self._identity = {
            "id": _completion_id(),
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": self.model,
        }
        self._head = b'data: %b,"choices":[{"index":0,"delta":' % _encode(self._identity)[:-1]
        usage = b',"usage":null' if self._include_usage else b""
        self._tail = b',"logprobs":null,"finish_reason":null}]%b}\n\n' % usage
        return self._delta({"role": "assistant", "content": ""})

    def _delta(self, delta: JSON) -> bytes:
        return b"%b%b%b" % (self._head, _encode(delta), self._tail)
