"""Making Anthropic streams, and reading them as strictly as its clients do."""

from __future__ import annotations

import json
from typing import Any

from proxy.canonical import ChatRequest
from proxy.context import ANTHROPIC, Call, ProviderTarget
from proxy.providers.anthropic import AnthropicAdapter
from tests.proxy.wire import documents

JSON = dict[str, Any]


def event(kind: str, **members: Any) -> JSON:
    return {"type": kind, **members}


def started(**usage: Any) -> JSON:
    message: JSON = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": []}
    message |= {"stop_reason": None, "stop_sequence": None, "usage": usage or {"input_tokens": 25, "output_tokens": 1}}
    return event("message_start", message=message)


def block(index: int, content_block: JSON, *deltas: JSON) -> list[JSON]:
    """A whole block."""
    return [
        event("content_block_start", index=index, content_block=content_block),
        *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
        event("content_block_stop", index=index),
    ]


def text(index: int, *pieces: str) -> list[JSON]:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces))


def tool_use(index: int, call_id: str, name: str, *pieces: str) -> list[JSON]:
    start = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    return block(index, start, *({"type": "input_json_delta", "partial_json": piece} for piece in pieces))


def ended(stop_reason: str | None = "end_turn", stop_sequence: str | None = None, **usage: Any) -> list[JSON]:
    delta = {"stop_reason": stop_reason, "stop_sequence": stop_sequence}
    return [event("message_delta", delta=delta, usage=usage or {"output_tokens": 9}), event("message_stop")]


def sse(*events: JSON | list[JSON] | bytes) -> bytes:
    """Events as bytes; lists are laid out, bytes taken as they are."""
    out = b""
    for entry in events:
        if isinstance(entry, bytes):
            out += entry
            continue
        for one in entry if isinstance(entry, list) else [entry]:
            data = json.dumps(one, separators=(",", ":"), ensure_ascii=False)
            out += f"event: {one['type']}\ndata: {data}\n\n".encode()
    return out


STREAM = sse(started(), event("ping"), *text(0, "Grüße ", "🌍"), *ended(input_tokens=25, output_tokens=9))


def streaming_call(**members: Any) -> Call:
    body: JSON = {"model": "smart", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 9, "stream": True}
    return Call(dialect=ANTHROPIC, body=body | members, model="smart", stream=True, max_tokens=9)


def translated(request: ChatRequest, model: str = "claude-sonnet-4-5", **members: Any) -> JSON:
    """The body of the request that Anthropic gets for a client of another dialect."""
    call = Call(dialect="openai", body={}, model="m", canonical=request, **members)
    target = ProviderTarget(provider="p", kind="anthropic", model=model, base_url="https://x")
    body: JSON = json.loads(AnthropicAdapter().build_request(call, target).body)
    return body


def message_of(raw: bytes) -> JSON:
    """The message that a client builds of a stream. Fails where the stream is not one Anthropic could send."""
    events = documents(raw)
    for name, document in events:
        assert name == document["type"], "the name of an event is its type"
    kinds = [name for name, _ in events]
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert [kinds.count(kind) for kind in ("message_start", "message_delta", "message_stop")] == [1, 1, 1]
    message = events[0][1]["message"]
    assert message["content"] == []
    message["content"] = _blocks([document for _, document in events[1:-2]])
    closing = events[-2][1]
    message["usage"] |= closing["usage"]
    return message | closing["delta"]


def _blocks(events: list[JSON]) -> list[JSON]:
    blocks: list[JSON] = []
    now: JSON | None = None
    arguments = ""
    for document in events:
        assert document["index"] == len(blocks), "an event of a block that is not open"
        kind = document["type"]
        if kind == "content_block_start":
            assert now is None, "a block starts inside another"
            now, arguments = document["content_block"], ""
        elif kind == "content_block_delta":
            assert now is not None, "a delta outside a block"
            arguments += _add(now, document["delta"])
        else:
            assert kind == "content_block_stop"
            assert now is not None, "a stop outside a block"
            blocks.append(now | ({"input": json.loads(arguments)} if arguments.strip() else {}))
            now = None
    assert now is None, "a block that never stops"
    return blocks


def _add(now: JSON, delta: JSON) -> str:
    """Add a delta to its block; gives the arguments it brings."""
    kinds = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "thinking"}
    kind = delta["type"]
    if kind == "input_json_delta":
        assert now["type"] in ("tool_use", "server_tool_use")
        return delta["partial_json"]
    assert now["type"] == kinds[kind], "a delta of another type than its block"
    name = kind.removesuffix("_delta")
    now[name] = delta[name] if name == "signature" else now[name] + delta[name]
    return ""
