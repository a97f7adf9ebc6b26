"""What the providers behind the clients say: one short conversation about the weather, in the words of each API.

An offered tool is called with the city, its result is answered, a schema is filled in, and anything else gets GREETING;
asked to stream, the same arrives in pieces.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.fakes.provider import Reply, Request, anthropic_answer, anthropic_stream, openai_answer, openai_stream
from tests.fakes.responses import call_item, message_item, responses_answer, responses_stream

JSON = dict[str, Any]

GREETING = ["Good ", "day."]
ARGUMENTS = {"city": "Oslo"}
RESULT = "5 C"
AFTER_RESULT = ["It is 5 C ", "in Oslo."]
#: What every call is said to have used.
USAGE = (10, 5)

_ARGUMENT_PIECES = ['{"city":', ' "Oslo"}']


# ---------------------------------------------------------------- OpenAI's chat completions


def openai_weather(request: Request) -> Reply:
    body = request.json
    if request.path.endswith("/responses"):
        return _responses_weather(body)
    if body["messages"][-1]["role"] == "tool":
        return _openai_text(AFTER_RESULT if RESULT in json.dumps(body["messages"][-1]) else ["What?"], body)
    if body.get("tools"):
        return _openai_call(body["tools"][0]["function"]["name"], body)
    if body.get("response_format"):
        return _openai_text(_ARGUMENT_PIECES, body)
    return _openai_text(GREETING, body)


def _openai_text(pieces: list[str], body: JSON) -> Reply:
    if not body.get("stream"):
        return openai_answer("".join(pieces))
    return openai_stream([{"role": "assistant", "content": ""}, *({"content": piece} for piece in pieces)])


def _openai_call(name: str, body: JSON) -> Reply:
    call: JSON = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": json.dumps(ARGUMENTS)}}
    if not body.get("stream"):
        return openai_answer("", tool_calls=[call])
    start = {**call, "index": 0, "function": {"name": name, "arguments": ""}}
    pieces = [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in _ARGUMENT_PIECES]
    return openai_stream([{"role": "assistant", "content": None, "tool_calls": [start]}, *pieces], finish="tool_calls")


# ---------------------------------------------------------------- OpenAI's responses


def _responses_weather(body: JSON) -> Reply:
    item = _responses_item(body)
    return responses_stream(item) if body.get("stream") else responses_answer(item)


def _responses_item(body: JSON) -> JSON:
    last = body["input"][-1]
    if not isinstance(last, str) and last.get("type") == "function_call_output":
        return message_item(*AFTER_RESULT if RESULT in json.dumps(last) else ["What?"])
    if body.get("tools"):
        return call_item(body["tools"][0]["name"], *_ARGUMENT_PIECES)
    return message_item(*GREETING)


# ---------------------------------------------------------------- Anthropic's messages


def anthropic_weather(request: Request) -> Reply:
    body = request.json
    last = json.dumps(body["messages"][-1])
    if '"tool_result"' in last:
        return _anthropic_text(AFTER_RESULT if RESULT in last else ["What?"], body)
    if body.get("tools"):
        return _anthropic_call(body["tools"][0]["name"], body)
    if _wants_schema(body):
        return _anthropic_text(_ARGUMENT_PIECES, body)
    return _anthropic_text(GREETING, body)


def _wants_schema(body: JSON) -> bool:
    return bool(body.get("output_format") or (body.get("output_config") or {}).get("format"))


def _anthropic_text(pieces: list[str], body: JSON) -> Reply:
    if not body.get("stream"):
        return anthropic_answer({"type": "text", "text": "".join(pieces)})
    return anthropic_stream(pieces)


def _anthropic_call(name: str, body: JSON) -> Reply:
    use: JSON = {"type": "tool_use", "id": "toolu_1", "name": name, "input": ARGUMENTS}
    if not body.get("stream"):
        return anthropic_answer(use, stop="tool_use")
    pieces = [f"event: {frame['type']}\ndata: {json.dumps(frame)}\n\n".encode() for frame in _call_frames(use)]
    return Reply(pieces=pieces, headers={"content-type": "text/event-stream"})


def _call_frames(use: JSON) -> Iterator[JSON]:
    message: JSON = {"id": "msg_fake", "type": "message", "role": "assistant", "model": "fake", "content": []}
    usage = {"input_tokens": USAGE[0], "output_tokens": 1}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    yield {"type": "content_block_start", "index": 0, "content_block": {**use, "input": {}}}
    for piece in _ARGUMENT_PIECES:
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}}
    yield {"type": "content_block_stop", "index": 0}
    delta = {"stop_reason": "tool_use", "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": USAGE[1]}}
    yield {"type": "message_stop"}


WEATHER: dict[str, Callable[[Request], Reply]] = {"gpt": openai_weather, "claude": anthropic_weather}
