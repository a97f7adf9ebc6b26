"""OpenAI's legacy completions."""

from __future__ import annotations

from proxy.canonical import ChatResponse
from tests.fakes.formats.openai_chat import usage
from tests.fakes.formats.style import JSON, Style, compact, cut, sse, texts_of

SAYS = frozenset(("text", "cache_read", "cache_write", "reasoning"))


def whole(answer: ChatResponse) -> bytes:
    return compact(_document(texts_of(answer), answer.finish_reason) | {"usage": usage(answer)}).encode()


def stream(answer: ChatResponse, style: Style) -> bytes:
    events: list[JSON | str] = [_document(piece, None) for piece in cut(texts_of(answer), style.step)]
    events += [_document("", answer.finish_reason), _document("", None) | {"choices": [], "usage": usage(answer)}]
    return sse([(None, event) for event in [*events, "[DONE]"]], style)


def _document(text: str, finish: str | None) -> JSON:
    choice = {"text": text, "index": 0, "logprobs": None, "finish_reason": finish}
    return {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m-1", "choices": [choice]}
