"""What the clients of each dialect make of an answer, and how they go on from it, as their SDKs do."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from proxy.canonical import Usage
from tests.proxy.anthropic_wire import message_of
from tests.proxy.wire import documents

JSON = dict[str, Any]


class Client(msgspec.Struct, frozen=True):
    """`added_up` gives of a stream what a whole answer would be; `history` what of an answer is sent back;
    `asking` a body with such a history between two things the user says."""

    added_up: Callable[[bytes], JSON]
    history: Callable[[JSON], list[JSON]]
    asking: Callable[[list[JSON]], JSON]
    usage: Callable[[JSON], Usage]


def asking_in_messages(history: list[JSON]) -> JSON:
    user = {"role": "user", "content": "hi"}
    return {"model": "m", "max_tokens": 9, "messages": [user, *history, user]}


def openai_stream(raw: bytes) -> JSON:
    message: JSON = {"role": "assistant", "content": ""}
    whole: JSON = {}
    chunks = documents(raw)
    assert chunks.pop() == "DONE"
    for chunk in chunks:
        whole["usage"] = chunk.get("usage") or whole.get("usage")
        for choice in chunk["choices"]:
            _add_delta(message, choice["delta"])
            if choice["finish_reason"]:
                assert "finish" not in whole, "a second finish reason"
                whole["finish"] = choice["finish_reason"]
    choice = {"index": 0, "message": message, "finish_reason": whole.pop("finish")}
    return whole | {"choices": [choice]}


def _add_delta(message: JSON, delta: JSON) -> None:
    for name in ("content", "reasoning_content", "refusal"):
        if delta.get(name):
            message[name] = (message.get(name) or "") + delta[name]
    if "extra_content" in delta:
        message["extra_content"] = delta["extra_content"]
    for fragment in delta.get("tool_calls") or ():
        calls = message.setdefault("tool_calls", [])
        index = fragment.pop("index")
        if index == len(calls):
            calls.append(fragment)
        else:
            calls[index]["function"]["arguments"] += fragment["function"]["arguments"]


def openai_usage(document: JSON) -> Usage:
    told = document["usage"]
    prompt = told["prompt_tokens_details"]
    return Usage(
        input_tokens=told["prompt_tokens"],
        output_tokens=told["completion_tokens"],
        cache_read_tokens=prompt["cached_tokens"],
        cache_write_tokens=prompt.get("cache_write_tokens", 0),
        reasoning_tokens=told["completion_tokens_details"]["reasoning_tokens"],
    )


def anthropic_usage(document: JSON) -> Usage:
    told = document["usage"]
    read, write = told["cache_read_input_tokens"], told["cache_creation_input_tokens"]
    return Usage(
        input_tokens=told["input_tokens"] + read + write,
        output_tokens=told["output_tokens"],
        cache_read_tokens=read,
        cache_write_tokens=write,
        cache_write_1h_tokens=(told.get("cache_creation") or {}).get("ephemeral_1h_input_tokens", 0),
        reasoning_tokens=(told.get("output_tokens_details") or {}).get("thinking_tokens", 0),
    )


def responses_stream(raw: bytes) -> JSON:
    events = documents(raw)
    assert [document["sequence_number"] for _, document in events] == list(range(len(events)))
    name, last = events[-1]
    assert name in ("response.completed", "response.incomplete")
    done = [document["item"] for name, document in events if name == "response.output_item.done"]
    assert sorted(map(json.dumps, done)) == sorted(map(json.dumps, last["response"]["output"]))
    return last["response"]


def responses_usage(document: JSON) -> Usage:
    told = document["usage"]
    return Usage(
        input_tokens=told["input_tokens"],
        output_tokens=told["output_tokens"],
        cache_read_tokens=told["input_tokens_details"]["cached_tokens"],
        cache_write_tokens=told["input_tokens_details"]["cache_write_tokens"],
        reasoning_tokens=told["output_tokens_details"]["reasoning_tokens"],
    )


def asking_in_items(history: list[JSON]) -> JSON:
    user = {"role": "user", "content": "hi"}
    return {"model": "m", "input": [user, *history, user]}


def tollbar_stream(raw: bytes) -> JSON:
    events = documents(raw)
    name, done = events.pop()
    assert name == "done"
    message: JSON = {"content": ""}
    for name, document in events:
        assert name == "delta"
        _add_delta(message, document)
    assert message.get("tool_calls", []) == done["tool_calls"]
    return done | {"content": message["content"]}


def tollbar_usage(document: JSON) -> Usage:
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
    return Usage(**{name: document[name] for name in names})


def tollbar_history(document: JSON) -> list[JSON]:
    return [{"role": "assistant", "content": document["content"], "tool_calls": document["tool_calls"]}]


def completions_stream(raw: bytes) -> JSON:
    chunks = documents(raw)
    assert chunks.pop() == "DONE"
    text = "".join(choice["text"] for chunk in chunks for choice in chunk["choices"])
    choice = {"index": 0, "text": text, "finish_reason": chunks[-2]["choices"][0]["finish_reason"]}
    return chunks[-1] | {"choices": [choice]}


def anthropic_stream(raw: bytes) -> JSON:
    """Pings may come anywhere."""
    return message_of(raw.replace(b'event: ping\ndata: {"type":"ping"}\n\n', b""))


CLIENTS: dict[str, Client] = {
    "openai": Client(openai_stream, lambda whole: [whole["choices"][0]["message"]], asking_in_messages, openai_usage),
    "anthropic": Client(
        anthropic_stream,
        lambda whole: [{"role": "assistant", "content": whole["content"]}] if whole["content"] else [],
        asking_in_messages,
        anthropic_usage,
    ),
    "responses": Client(responses_stream, lambda whole: whole["output"], asking_in_items, responses_usage),
    "chat": Client(tollbar_stream, tollbar_history, asking_in_messages, tollbar_usage),
    "completions": Client(completions_stream, lambda whole: [], asking_in_messages, openai_usage),
}
