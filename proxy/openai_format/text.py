"""OpenAI's legacy completions between providers and clients that speak them: bodies, whole answers, streams."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from proxy.context import Answer, Call
from proxy.errors import UpstreamFault
from proxy.openai_format.answer import read_usage
from proxy.openai_format.chunks import document_of, encode
from proxy.openai_format.errors import fault_of_error
from proxy.openai_format.relay import OpenAIRelay
from proxy.openai_format.shapes import finish_reason
from proxy.sse import frame

JSON = dict[str, Any]

OBJECT = "text_completion"


class _Choice(msgspec.Struct):
    text: str | None = None
    finish_reason: str | None = None


class _Completion(msgspec.Struct):
    """The members that metering needs."""

    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None


_decode = msgspec.json.Decoder(_Completion).decode


def text_body(call: Call) -> JSON:
    """The client's own body. The limit is always named: providers differ in what they do without one."""
    body = dict(call.body)
    if body.get("max_tokens") is None:
        body["max_tokens"] = call.max_tokens
    if call.stream:
        options = body.get("stream_options")
        body["stream_options"] = {**(options if isinstance(options, dict) else {}), "include_usage": True}
    return body


def whole_text(body: bytes) -> Answer:
    """A good answer that the client gets as it is. Raises UpstreamFault when it is none."""
    try:
        completion = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise UpstreamFault("protocol", "the answer is not a text completion", status=200) from None
    if not completion.choices:
        if completion.error:
            raise fault_of_error(completion.error)
        raise UpstreamFault("protocol", "an answer without choices", status=200)
    usage = read_usage(completion.usage)
    return Answer(
        body=body,
        usage=usage,
        finish_reason=finish_reason(completion.choices[0].finish_reason),
        produced_chars=sum(len(choice.text or "") for choice in completion.choices) if usage is None else 0,
    )


class TextRelay(OpenAIRelay):
    """One stream of text_completion chunks, by the rules of OpenAIRelay."""

    object_name: ClassVar[str] = OBJECT

    def __init__(self, call: Call) -> None:
        super().__init__(call)
        self._max_choices = call.choices
        self._finished: dict[int, bool] = {}

    def _take(self, name: bytes | None, data: bytes, out: list[bytes]) -> None:
        document = document_of(data)
        self._raise_error(name, document)
        usage, choices = document.get("usage"), document.get("choices")
        if usage is not None:
            self._note_usage(usage, data, alone=not choices, known=document.get("object") == OBJECT)
        if not isinstance(choices, list):
            return
        self._latest = data
        written = document | {"object": OBJECT}
        if usage is not None or not self._asked:
            written.pop("usage", None)
        if not choices and usage is None:  # Azure's verdict on the prompt
            out.append(frame(encode(written)))
        for choice in choices:
            if isinstance(choice, dict) and self._take_text(choice):
                mended = written | {"choices": [choice]}
                piece = frame(data if mended == document else encode(mended))
                (self._held if choice.get("finish_reason") else out).append(piece)

    def _raise_error(self, name: bytes | None, document: JSON) -> None:
        error = document.get("error")
        if error or name == b"error" or document.get("object") == "error":
            raise fault_of_error(error or document)

    def _take_text(self, choice: JSON) -> bool:
        """Note what a choice says; False when nothing of it may be handed on."""
        index = choice.setdefault("index", 0)
        if not isinstance(index, int) or (index not in self._finished and len(self._finished) >= self._max_choices):
            raise UpstreamFault("protocol", "a stream of too many choices", status=200)
        if self._finished.setdefault(index, False):
            return False
        text, reason = choice.get("text"), choice.get("finish_reason")
        if reason == "error":
            raise UpstreamFault("server", "the provider broke the answer off", status=200)
        if not isinstance(text, str):
            choice["text"] = text = ""
        self.produced_chars += len(text)
        if reason:
            self._finished[index] = self._any_finished = True
            if index == 0:
                self.finish_reason = finish_reason(str(reason))
        elif text:
            self.started = True
        return True

    def _has_answered(self) -> bool:
        return bool(self._finished)

    def _has_finished(self) -> bool:
        return bool(self._finished) and all(self._finished.values())

    def _closings(self) -> list[JSON]:
        return [
            {"text": "", "index": index, "logprobs": None, "finish_reason": "stop"}
            for index, finished in sorted(self._finished.items())
            if not finished
        ]
