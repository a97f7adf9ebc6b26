"""Vendors that speak OpenAI's chat completions: what they refuse is not sent, what they stream is read.

The data is made up; the ways are the vendors'.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canonical import (
    ChatRequest,
    Finished,
    Message,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolResult,
    Usage,
    UsageSeen,
)
from proxy.context import OPENAI, TOLLBAR, Call, ProviderTarget
from proxy.openai_format.decoder import OpenAIStreamDecoder
from proxy.openai_format.relay import OpenAIRelay
from proxy.openai_format.vendors import short_id
from proxy.providers.base import adapter_for
from tests.proxy.wire import chunk, documents, facts, pieces_of, play, sse, text_of, usage_chunk

MISTRAL, GROQ, OTHER = "https://api.mistral.ai/v1", "https://api.groq.com/openai/v1", "https://llm.example/v1"
CALL = {"id": "call_abcdef123456", "type": "function", "function": {"name": "f", "arguments": "{}"}}
HISTORY = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_abcdef123456", "content": "4"},
]


def sent(base_url: str, **members) -> dict:
    body = {"model": "smart", "messages": HISTORY} | members
    call = Call(dialect=OPENAI, body=body, model="smart", stream=body.get("stream", False))
    before = json.dumps(body)
    target = ProviderTarget(provider="v", kind="openai_compatible", model="m", base_url=base_url, secret="s")
    written = adapter_for("openai_compatible").build_request(call, target).body
    assert json.dumps(body) == before, "the client's body stays as it is"
    return json.loads(written)


# ---------------------------------------------------------------- what they refuse


def test_mistral_gets_no_member_that_it_forbids():
    body = sent(MISTRAL, stream=True, user="u", max_completion_tokens=5, seed=7, temperature=0.5)
    assert {name: value for name, value in body.items() if name != "messages"} == {
        "model": "m",
        "stream": True,
        "max_tokens": 5,
        "random_seed": 7,
        "temperature": 0.5,
    }
    assert "reasoning_content" not in body["messages"][1]


def test_mistral_gets_tool_ids_of_nine_letters_that_still_match():
    _, assistant, result = sent(MISTRAL)["messages"]
    (call,) = assistant["tool_calls"]
    assert call["id"] == result["tool_call_id"]
    assert len(call["id"]) == 9
    assert call["id"].isalnum()
    assert call["function"] == CALL["function"]


@given(st.text())
def test_short_ids_are_made_once(call_id):
    made = short_id(call_id)
    assert len(made) == 9
    assert made.isascii()
    assert made.isalnum()
    assert short_id(call_id) == short_id(made) == made


def test_a_translated_history_fits_mistral_too():
    call = ToolCall("toolu_01", "f", "{}")
    request = ChatRequest(
        messages=[
            Message("user", [Text("hi")]),
            Message("assistant", [call]),
            Message("user", [ToolResult("toolu_01", [Text("4")])]),
        ],
        seed=3,
        user="u",
        max_tokens=9,
    )
    made = Call(dialect=TOLLBAR, body={}, model="smart", canonical=request, stream=True)
    target = ProviderTarget(provider="v", kind="openai_compatible", model="m", base_url=MISTRAL)
    body = json.loads(adapter_for("openai_compatible").build_request(made, target).body)
    assert set(body) == {"model", "messages", "stream", "random_seed", "max_tokens"}
    assert body["messages"][1]["tool_calls"][0]["id"] == body["messages"][2]["tool_call_id"] == short_id("toolu_01")


def test_groq_gets_no_reasoning_content_back():
    body = sent(GROQ, stream=True, user="u")
    assert "reasoning_content" not in body["messages"][1]
    assert body["messages"][1]["tool_calls"] == [CALL]
    assert body["stream_options"] == {"include_usage": True}
    assert body["user"] == "u"


@pytest.mark.parametrize("base_url", [OTHER, "https://mistral.ai.example/v1", "https://notgroq.com/v1"])
def test_every_other_vendor_gets_what_the_client_sent(base_url):
    body = sent(base_url, seed=7, user="u", max_completion_tokens=5)
    assert body == {"model": "m", "messages": HISTORY, "seed": 7, "user": "u", "max_completion_tokens": 5}


# ---------------------------------------------------------------- streams: name -> bytes, text, thinking, finish, usage


def usage_of(prompt: int, completion: int, **more) -> dict:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion} | more


THOUGHT = {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}
CITED: dict[str, Any] = {"citations": ["https://a.example"], "search_results": [{"title": "A"}]}


def repeating(text: str, so_far: str, finish: str | None = None, **members) -> dict:
    """Perplexity: the whole message so far beside each delta."""
    choice = {
        "index": 0,
        "delta": {"role": "assistant", "content": text},
        "message": {"role": "assistant", "content": so_far},
        "finish_reason": finish,
    }
    return chunk(choices=[choice], **CITED, **members)


STREAMS: dict[str, tuple[bytes, str, str, str, Usage | None]] = {
    "mistral": (
        sse(
            chunk({"role": "assistant", "content": ""}),
            chunk(THOUGHT),
            chunk({"content": [{"type": "text", "text": "Yes"}]}),
            chunk({"content": "."}, "model_length", usage=usage_of(9, 3)),
            "DONE",
        ),
        "Yes.",
        "hm",
        "length",
        Usage(input_tokens=9, output_tokens=3),
    ),
    "groq": (
        sse(
            chunk({"role": "assistant", "content": ""}, x_groq={"id": "req_1"}),
            chunk({"reasoning": "hm", "channel": "analysis"}),
            chunk({"content": "Yes."}),
            chunk({}, "stop", x_groq={"id": "req_1", "usage": usage_of(9, 3)}),
            usage_chunk(9, 3, queue_time=0.1, completion_tokens_details={"reasoning_tokens": 1}),
            "DONE",
        ),
        "Yes.",
        "hm",
        "stop",
        Usage(input_tokens=9, output_tokens=3, reasoning_tokens=1),
    ),
    "deepseek": (
        b": keep-alive\n\n\n\n: keep-alive\n\n"
        + sse(
            chunk({"role": "assistant", "content": None, "reasoning_content": ""}),
            chunk({"content": None, "reasoning_content": "hm"}),
            b": keep-alive\n\n",
            chunk({"content": "Yes.", "reasoning_content": None}),
            chunk({"content": "", "reasoning_content": None}, "stop", usage=usage_of(9, 3, prompt_cache_hit_tokens=4)),
            "DONE",
        ),
        "Yes.",
        "hm",
        "stop",
        Usage(input_tokens=9, output_tokens=3, cache_read_tokens=4),
    ),
    "openrouter": (
        b": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n"
        + sse(
            chunk({"role": "assistant", "content": "", "reasoning": "hm", "reasoning_details": [{"text": "hm"}]}),
            chunk({"content": "Yes."}, native_finish_reason=None, provider="P"),
            chunk({"content": ""}, "stop"),
            chunk({"role": "assistant", "content": ""}, usage=usage_of(9, 3, cost=0.002)),
            "DONE",
        ),
        "Yes.",
        "hm",
        "stop",
        Usage(input_tokens=9, output_tokens=3),
    ),
    "xai": (
        sse(
            chunk({"role": "assistant", "reasoning_content": "hm"}),
            chunk({"content": "Yes."}),
            chunk({}, "stop"),
            chunk(
                choices=[],
                usage=usage_of(9, 3) | {"total_tokens": 20, "completion_tokens_details": {"reasoning_tokens": 8}},
            ),
            "DONE",
        ),
        "Yes.",
        "hm",
        "stop",
        Usage(input_tokens=9, output_tokens=11, reasoning_tokens=8),
    ),
    "perplexity": (
        sse(
            repeating("Ye", "Ye", usage=usage_of(9, 1)),
            repeating("s.", "Yes.", usage=usage_of(9, 2)),
            repeating("", "Yes.", "stop", usage=usage_of(9, 3)),
        ).replace(b"\n", b"\r\n"),
        "Yes.",
        "",
        "stop",
        Usage(input_tokens=9, output_tokens=3),
    ),
    "cohere": (
        sse(
            chunk({"role": "assistant", "content": "Yes."}, system_fingerprint=None),
            chunk({}, "max_tokens"),
            usage_chunk(9, 3),
            "DONE",
        ),
        "Yes.",
        "",
        "length",
        Usage(input_tokens=9, output_tokens=3),
    ),
    "vllm": (
        sse(
            chunk({"role": "assistant", "content": ""}, prompt_token_ids=None),
            chunk({"reasoning": "hm", "reasoning_content": "hm"}),
            chunk({"content": "Yes."}, stop_reason=None),
            chunk({"content": ""}, "stop"),
            usage_chunk(9, 3, prompt_tokens_details=None),
            "DONE",
        ),
        "Yes.",
        "hm",
        "stop",
        Usage(input_tokens=9, output_tokens=3),
    ),
    "lm studio": (
        sse(chunk({"role": "assistant", "content": "Yes."}), chunk({}, "stop", stats={}), "DONE"),
        "Yes.",
        "",
        "stop",
        None,
    ),
}

VENDORS = pytest.mark.parametrize("vendor", STREAMS)


def decoded(stream: bytes, cuts: list[int]) -> list:
    decoder = OpenAIStreamDecoder()
    events = [event for piece in pieces_of(stream, cuts) for event in decoder.feed(piece)]
    events += decoder.eof() if not decoder.done else []
    assert (decoder.fault, decoder.done) == (None, True)
    return events


@VENDORS
def test_a_vendors_stream_in_canonical_events(vendor):
    stream, text, thinking, finish, usage = STREAMS[vendor]
    events = decoded(stream, [])
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == text
    assert "".join(event.text for event in events if isinstance(event, ThinkingDelta)) == thinking
    assert [event.finish_reason for event in events if isinstance(event, Finished)] == [finish]
    seen = [event.usage for event in events if isinstance(event, UsageSeen)]
    assert (seen[-1] if seen else None) == usage


@VENDORS
@given(st.lists(st.integers(min_value=0), max_size=12))
def test_any_cuts_give_the_same_events(vendor, cuts):
    stream = STREAMS[vendor][0]
    assert decoded(stream, cuts) == decoded(stream, [])


def relayed(stream: bytes, cuts: list[int]) -> tuple[OpenAIRelay, bytes]:
    call = Call(dialect=OPENAI, body={}, model="m", stream=True, include_usage=True)
    relay = OpenAIRelay(call)
    raw = play(relay, pieces_of(stream, cuts))
    assert relay.fault is None
    return relay, raw + relay.end(facts())


@VENDORS
@given(st.lists(st.integers(min_value=0), max_size=12))
def test_a_client_of_the_same_format_gets_one_finish_reason_one_usage_and_the_end(vendor, cuts):
    stream, text, _, finish, usage = STREAMS[vendor]
    relay, raw = relayed(stream, cuts)
    *chunks, done = documents(raw)
    assert done == "DONE"
    assert (relay.usage, relay.finish_reason) == (usage, finish)
    assert sum(bool(choice["finish_reason"]) for one in chunks for choice in one["choices"]) == 1
    assert [bool(one.get("usage")) for one in chunks] == [False] * (len(chunks) - 1) + [True]
    assert {one["object"] for one in chunks} == {"chat.completion.chunk"}
    if vendor != "mistral":  # its parts pass as they are
        assert text_of(raw) == text
