"""Making OpenAI-style streams and feeding them in pieces, for the tests of adapters and dialects."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

from proxy.canonical import Usage
from proxy.context import AnswerFacts, Relay

JSON = dict[str, Any]


def chunk(delta: JSON | None = None, finish: str | None = None, **members: Any) -> JSON:
    """One chunk of a stream with a single choice."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m-1",
        "choices": [choice],
    } | members


def usage_chunk(prompt: int, completion: int, **members: Any) -> JSON:
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return chunk(choices=[], usage=usage | members)


def sse(*events: JSON | str | bytes) -> bytes:
    """Events as bytes: JSON, "DONE", or bytes that are taken as they are."""
    out = b""
    for event in events:
        if isinstance(event, bytes):
            out += event
        elif event == "DONE":
            out += b"data: [DONE]\n\n"
        else:
            out += b"data: " + json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode() + b"\n\n"
    return out


def facts(usage: Usage | None = None, **changes: Any) -> AnswerFacts:
    told: JSON = {
        "request_id": "req_1",
        "provider": "main",
        "model": "gpt-x",
        "usage": usage or Usage(input_tokens=3, output_tokens=4),
        "latency_ms": 12,
        "cost_usd": "0.000105",
    }
    return AnswerFacts(**(told | changes))


def pieces_of(data: bytes, cuts: list[int]) -> list[bytes]:
    """`data` cut at these places (taken modulo its length)."""
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    return [data[start:stop] for start, stop in pairwise(places)]


def play(relay: Relay, pieces: list[bytes]) -> bytes:
    """Feed a stream as the pipeline does, its end included; gives what the client got up to there."""
    out = b""
    for piece in pieces:
        if relay.done or relay.fault is not None:
            return out
        out += relay.feed(piece)
    return out if relay.done or relay.fault is not None else out + relay.eof()


def documents(raw: bytes) -> list[Any]:
    """The data of every event of a client's stream; "DONE" for the end marker."""
    events = []
    for block in raw.split(b"\n\n")[:-1]:
        lines = dict(line.split(b": ", 1) for line in block.split(b"\n"))
        data = lines[b"data"]
        document = "DONE" if data == b"[DONE]" else json.loads(data)
        events.append((lines[b"event"].decode(), document) if b"event" in lines else document)
    return events


def without_random_parts(raw: bytes) -> bytes:
    """Ids and times that differ between runs, made equal."""
    raw = re.sub(rb"chatcmpl-[0-9a-f]{32}", b"ID", raw)
    return re.sub(rb"call_[0-9a-f]{20}", b"CALL", re.sub(rb'"created":\d+', b'"created":0', raw))


def choices_of(raw: bytes) -> list[JSON]:
    """The choices of all chunks, in order."""
    return [
        choice for document in documents(raw) if isinstance(document, dict) for choice in document.get("choices", [])
    ]


def text_of(raw: bytes) -> str:
    """The content that a client of this format adds up, of choice 0."""
    return "".join(choice["delta"].get("content") or "" for choice in choices_of(raw) if choice["index"] == 0)


def tool_calls_of(raw: bytes) -> list[JSON]:
    """Tool calls added up as the official SDK does: by index, id and name on the first fragment only."""
    calls: list[JSON] = []
    for choice in choices_of(raw):
        parts = choice["delta"].get("tool_calls") or []
        assert len({part["index"] for part in parts}) == len(parts), "two entries of one call in one chunk"
        for part in parts:
            if part["index"] == len(calls):
                assert part["type"] == "function"
                calls.append({"id": part["id"], "name": part["function"]["name"], "arguments": ""})
            else:
                assert not part.get("id"), "an id on a later fragment"
                assert not part["function"].get("name"), "a name on a later fragment"
            calls[part["index"]]["arguments"] += part["function"].get("arguments") or ""
    return calls


def finishes_of(raw: bytes) -> list[str]:
    return [choice["finish_reason"] for choice in choices_of(raw) if choice["finish_reason"]]
