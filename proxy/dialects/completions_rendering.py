"""Answers in OpenAI's legacy format: text_completion, whole and as chunks. Only text can be said in it."""

from __future__ import annotations

import time
import uuid
from typing import Any

import msgspec

from proxy.canonical import ChatResponse, Finished, RefusalDelta, StreamEvent, Text, TextDelta
from proxy.context import AnswerFacts, Call
from proxy.openai_format.shapes import usage_object
from proxy.sse import frame

JSON = dict[str, Any]

_encode = msgspec.json.encode


def text_completion(response: ChatResponse, facts: AnswerFacts) -> bytes:
    """A whole answer. A refusal is the text when there is no other; thinking is left out."""
    text = "".join(part.text for part in response.parts if isinstance(part, Text)) or response.refusal or ""
    document = _identity(facts.model) | {
        "choices": [_choice(text, response.finish_reason)],
        "usage": usage_object(facts.usage),
    }
    return _encode(document)


def _identity(model: str) -> JSON:
    return {
        "id": f"cmpl-{uuid.uuid4().hex}",
        "object": "text_completion",
        "created": int(time.time()),
        "model": model,
    }


def _choice(text: str, finish: str | None) -> JSON:
    """This format has no tool calls: a model that tried one has stopped."""
    finish = "stop" if finish == "tool_calls" else finish
    return {"text": text, "index": 0, "logprobs": None, "finish_reason": finish}


class TextStreamRenderer:
    """One stream of chunks. `model` is the target's name."""

    def __init__(self, call: Call, model: str) -> None:
        self._include_usage = call.include_usage
        self._identity = _identity(model)
        self._finish: str | None = None
        self._closed = False

    def render(self, events: list[StreamEvent]) -> bytes:
        if self._closed:
            return b""
        out = []
        for event in events:
            if isinstance(event, TextDelta | RefusalDelta):
                out.append(self._chunk([_choice(event.text, None)]))
            elif isinstance(event, Finished):
                self._finish = event.finish_reason
        return b"".join(out)

    def end(self, facts: AnswerFacts) -> bytes:
        if self._closed:
            return b""
        self._closed = True
        frames = [self._chunk([_choice("", self._finish or facts.finish_reason)])]
        if self._include_usage:
            frames.append(self._chunk([], usage_object(facts.usage)))
        return b"".join([*frames, frame(b"[DONE]")])

    def fail(self, message: str, code: str, type_: str, request_id: str) -> bytes:
        if self._closed:
            return b""
        self._closed = True
        error = {"message": message, "type": type_, "param": None, "code": code, "details": None}
        return frame(_encode({"error": error, "request_id": request_id}))

    def _chunk(self, choices: list[JSON], usage: JSON | None = None) -> bytes:
        chunk = self._identity | {"choices": choices}
        return frame(_encode(chunk | {"usage": usage} if self._include_usage else chunk))
