"""What OpenAI's Responses API says: whole answers, and streams of the events that its clients build them from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.fakes.provider import Reply

JSON = dict[str, Any]


def message_item(*pieces: str) -> JSON:
    """A text, streamed in these pieces."""
    content = [{"type": "output_text", "text": "".join(pieces), "annotations": []}]
    item = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": content}
    return {**item, "pieces": list(pieces)}


def call_item(name: str, *pieces: str) -> JSON:
    """A call of a tool, whose arguments are streamed in these pieces."""
    item = {"type": "function_call", "id": "fc_1", "status": "completed", "call_id": "call_1", "name": name}
    return {**item, "arguments": "".join(pieces), "pieces": list(pieces)}


def responses_answer(item: JSON, *, usage: tuple[int, int] = (10, 5)) -> Reply:
    return Reply(body=json.dumps(_response("completed", [_without_pieces(item)], usage)).encode())


def responses_stream(item: JSON, *, usage: tuple[int, int] = (10, 5)) -> Reply:
    frames = [
        f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}\n\n".encode()
        for number, event in enumerate(_events(item, usage))
    ]
    return Reply(pieces=frames, headers={"content-type": "text/event-stream"})


def _events(item: JSON, usage: tuple[int, int]) -> Iterator[JSON]:
    whole = _without_pieces(item)
    empty: JSON = {"content": []} if "content" in whole else {"arguments": ""}
    begun = {**whole, **empty, "status": "in_progress"}
    for kind in ("created", "in_progress"):
        yield {"type": f"response.{kind}", "response": _response("in_progress", [], None)}
    yield {"type": "response.output_item.added", "output_index": 0, "item": begun}
    yield from _text_events(item) if "content" in item else _argument_events(item)
    yield {"type": "response.output_item.done", "output_index": 0, "item": whole}
    yield {"type": "response.completed", "response": _response("completed", [whole], usage)}


def _text_events(item: JSON) -> Iterator[JSON]:
    at = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    part = item["content"][0]
    yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
    for piece in item["pieces"]:
        yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **at, "part": part}


def _argument_events(item: JSON) -> Iterator[JSON]:
    at = {"item_id": item["id"], "output_index": 0}
    for piece in item["pieces"]:
        yield {"type": "response.function_call_arguments.delta", **at, "delta": piece}
    yield {"type": "response.function_call_arguments.done", **at, "name": item["name"], "arguments": item["arguments"]}


def _without_pieces(item: JSON) -> JSON:
    return {name: value for name, value in item.items() if name != "pieces"}


def _response(status: str, output: list[JSON], usage: tuple[int, int] | None) -> JSON:
    return {
        "id": "resp_fake",
        "object": "response",
        "created_at": 1700000000,
        "status": status,
        "model": "fake",
        "output": output,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage and _usage(*usage),
    }


def _usage(input_tokens: int, output_tokens: int) -> JSON:
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input_tokens + output_tokens,
    }
