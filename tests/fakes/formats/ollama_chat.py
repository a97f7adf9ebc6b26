"""Ollama's own chat API: one JSON object a line, calls whole."""

from __future__ import annotations

from proxy.canonical import ChatResponse
from tests.fakes.formats.style import (
    JSON,
    Style,
    arguments_of,
    calls_of,
    compact,
    cut,
    texts_of,
    thinking_of,
    usage_of,
)

SAYS = frozenset(("text", "thinking", "calls"))


def whole(answer: ChatResponse) -> bytes:
    message: JSON = {"role": "assistant", "content": texts_of(answer)}
    thought = "".join(part.text for part in thinking_of(answer))
    if thought:
        message["thinking"] = thought
    if calls := _calls(answer):
        message["tool_calls"] = calls
    return compact(_line(message) | _ending(answer)).encode()


def stream(answer: ChatResponse, style: Style) -> bytes:
    thought = "".join(part.text for part in thinking_of(answer))
    lines = [{"content": "", "thinking": piece} for piece in cut(thought, style.step) if piece]
    lines += [{"content": piece} for piece in cut(texts_of(answer), style.step) if piece]
    documents = [_line({"role": "assistant"} | line) for line in lines]
    documents += [_line({"role": "assistant", "content": "", "tool_calls": [call]}) for call in _calls(answer)]
    documents.append(_line({"role": "assistant", "content": ""}) | _ending(answer))
    newline = "\r\n" if "\r" in style.newline else "\n"  # a CR alone ends no line here
    blank = newline if style.comments else ""
    return "".join(compact(document) + newline + blank for document in documents).encode()


def _calls(answer: ChatResponse) -> list[JSON]:
    return [
        {"id": call.id, "function": {"index": index, "name": call.name, "arguments": arguments_of(call)}}
        for index, call in enumerate(calls_of(answer))
    ]


def _line(message: JSON) -> JSON:
    return {"model": "llama", "created_at": "2025-01-01T00:00:00Z", "message": message, "done": False}


def _ending(answer: ChatResponse) -> JSON:
    reason = "length" if answer.finish_reason == "length" else "stop"
    ending: JSON = {"done": True, "done_reason": reason, "total_duration": 5}
    if answer.usage is not None:
        used = usage_of(answer)
        ending |= {"prompt_eval_count": used.input_tokens, "eval_count": used.output_tokens}
    return ending
