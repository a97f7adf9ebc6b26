"""Making responses of OpenAI's Responses API, and the events of its streams, for the tests of adapters and dialects."""

from __future__ import annotations

import json
from typing import Any

from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

JSON = dict[str, Any]

_SDK_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)

USAGE = {
    "input_tokens": 20,
    "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 2},
    "output_tokens": 9,
    "output_tokens_details": {"reasoning_tokens": 4},
    "total_tokens": 29,
}


def message(text: str) -> JSON:
    content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
    return {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": content}


def function_call(name: str, arguments: str) -> JSON:
    return {
        "id": "fc_1",
        "type": "function_call",
        "status": "completed",
        "call_id": "call_1",
        "name": name,
        "arguments": arguments,
    }


def response(*output: JSON, status: str = "completed", **members: Any) -> JSON:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1700000000,
        "status": status,
        "model": "m-1",
        "output": list(output),
        "error": None,
        "incomplete_details": None,
        "usage": USAGE,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    } | members


def body(*output: JSON, **members: Any) -> bytes:
    return json.dumps(response(*output, **members)).encode()


def events(*documents: JSON) -> bytes:
    """Events as OpenAI frames them, numbered."""
    return b"".join(
        f"event: {document['type']}\ndata: {json.dumps({**document, 'sequence_number': number})}\n\n".encode()
        for number, document in enumerate(documents)
    )


def text_events(*pieces: str, **members: Any) -> list[JSON]:
    """A stream of one message."""
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []}
    item = message("".join(pieces))
    return [
        {"type": "response.created", "response": response(status="in_progress", usage=None)},
        {"type": "response.in_progress", "response": response(status="in_progress", usage=None)},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        *({"type": "response.output_text.delta", **place, "delta": piece} for piece in pieces),
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response(item, **members)},
    ]


def read_events(raw: bytes) -> list[JSON]:
    """The data of a stream's events, each known to the official SDK and named as its type says."""
    found = []
    for block in raw.split(b"\n\n")[:-1]:
        lines = dict(line.split(b": ", 1) for line in block.split(b"\n"))
        document = json.loads(lines[b"data"])
        assert lines[b"event"].decode() == document["type"]
        _SDK_EVENT.validate_python(document)
        found.append(document)
    return found
