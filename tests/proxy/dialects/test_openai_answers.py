"""Answers in OpenAI's format, read by the official SDK's own types."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from proxy.canonical import (
    ChatResponse,
    Finished,
    Foreign,
    ForeignDelta,
    RedactedThinking,
    RefusalDelta,
    SignatureDelta,
    StreamEvent,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    Usage,
    UsageSeen,
)
from proxy.context import OPENAI, Call
from proxy.dialects.openai import OpenAIDialect
from proxy.errors import RateLimited
from tests.proxy.wire import choices_of, documents, facts, finishes_of, text_of, tool_calls_of

USAGE = Usage(input_tokens=20, output_tokens=9, cache_read_tokens=8, cache_write_tokens=2, reasoning_tokens=4)


def call(**members) -> Call:
    return Call(dialect=OPENAI, body={"model": "smart"} | members, model="smart", stream=True)


def whole(response: ChatResponse, **members) -> dict:
    raw = OpenAIDialect().render_response(call(**members), response, facts(USAGE))
    ChatCompletion.model_validate_json(raw, strict=True)
    return json.loads(raw)


def streamed(*events: StreamEvent, include_usage: bool = False, **members) -> bytes:
    asked = call(**members)
    asked.include_usage = include_usage
    renderer = OpenAIDialect().stream_renderer(asked, "req_1", "target-model")
    out = b"".join(renderer.render([event]) for event in events)
    return out + renderer.end(facts(USAGE))


def test_a_whole_answer():
    document = whole(ChatResponse(parts=[Text("Grü"), Text("ße")], finish_reason="length"))
    assert document["id"].startswith("chatcmpl-")
    assert (document["object"], document["model"]) == ("chat.completion", "gpt-x")
    assert document["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Grüße", "refusal": None},
            "logprobs": None,
            "finish_reason": "length",
        }
    ]
    assert document["usage"] == {
        "prompt_tokens": 20,
        "completion_tokens": 9,
        "total_tokens": 29,
        "prompt_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 4},
    }


def test_tools_thinking_and_refusals():
    parts = [
        Thinking("hm", "sig"),
        Thinking(redacted="r"),
        ToolCall("a", "f", "", "ts"),
        Foreign("anthropic", "server_tool_use", {}),
    ]
    message = whole(ChatResponse(parts=parts, finish_reason="tool_calls"))["choices"][0]["message"]
    assert message == {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "reasoning_content": "hm",
        "extra_content": {"tollbar": {"thinking": [{"text": "hm", "signature": "sig"}, {"redacted": "r"}]}},
        "tool_calls": [
            {
                "id": "a",
                "type": "function",
                "function": {"name": "f", "arguments": "{}"},
                "extra_content": {"tollbar": {"signature": "ts"}},
            }
        ],
    }
    unsigned = whole(ChatResponse(parts=[Thinking("hm"), Text("x")]))["choices"][0]["message"]
    assert "extra_content" not in unsigned
    refusal = whole(ChatResponse(refusal="No.", finish_reason="content_filter"))["choices"][0]["message"]
    assert (refusal["content"], refusal["refusal"]) == (None, "No.")


def test_what_a_client_sends_back_is_what_the_provider_said():
    parts = [Thinking("hm", "sig"), Thinking(redacted="r"), Text("x"), ToolCall("a", "f", "{}", "ts")]
    message = whole(ChatResponse(parts=parts))["choices"][0]["message"]
    dialect = OpenAIDialect()
    again = dialect.canonical(dialect.parse_call({"model": "smart", "messages": [message]}))
    assert again.messages[0].parts == parts


def test_a_client_of_legacy_functions_gets_a_function_call():
    response = ChatResponse(parts=[ToolCall("a", "f", "{}")], finish_reason="tool_calls")
    choice = whole(response, functions=[{"name": "f"}])["choices"][0]
    assert choice["message"]["function_call"] == {"name": "f", "arguments": "{}"}
    assert "tool_calls" not in choice["message"]
    assert choice["finish_reason"] == "function_call"
    out = streamed(
        ToolCallStart(0, "a", "f"), ToolCallDelta(0, "{}"), Finished("tool_calls"), functions=[{"name": "f"}]
    )
    parts = [choice["delta"]["function_call"] for choice in choices_of(out) if "function_call" in choice["delta"]]
    assert parts == [{"name": "f", "arguments": ""}, {"arguments": "{}"}]
    assert finishes_of(out) == ["function_call"]


# ---------------------------------------------------------------- streams


def test_a_stream_of_text():
    out = streamed(TextDelta("Grü"), TextDelta("ße"), UsageSeen(USAGE), Finished("stop"))
    first, *others, end = documents(out)
    assert first["choices"] == [
        {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    ]
    assert end == "DONE"
    assert text_of(out) == "Grüße"
    assert finishes_of(out) == ["stop"]
    assert {(event["id"], event["object"], event["model"]) for event in [first, *others]} == {
        (first["id"], "chat.completion.chunk", "target-model")
    }
    assert not any("usage" in event for event in [first, *others])


def test_usage_comes_in_a_chunk_of_its_own_for_those_who_ask():
    out = documents(streamed(TextDelta("a"), Finished("stop"), include_usage=True))
    assert [event["usage"] for event in out[:-2]] == [None] * (len(out) - 2)
    assert (out[-2]["choices"], out[-2]["usage"]["total_tokens"]) == ([], 29)


def test_a_stream_of_tool_calls_as_the_sdk_adds_it_up():
    out = streamed(
        ThinkingDelta("h"),
        ThinkingDelta("m"),
        SignatureDelta("sig"),
        RedactedThinking("r"),
        TextDelta("Look."),
        ToolCallStart(0, "a", "f", "ts"),
        ToolCallStart(1, "b", "g"),
        ToolCallDelta(1, '{"d":'),
        ToolCallDelta(0, "{}"),
        ToolCallDelta(1, "2}"),
        Finished("tool_calls"),
    )
    assert [(c["id"], c["name"], c["arguments"]) for c in tool_calls_of(out)] == [
        ("a", "f", "{}"),
        ("b", "g", '{"d":2}'),
    ]
    state = ChatCompletionStreamState()
    for document in documents(out)[:-1]:
        state.handle_chunk(ChatCompletionChunk.model_validate(document))
    choice = state.current_completion_snapshot.choices[0]
    assert choice.finish_reason == "tool_calls"
    message = choice.message.model_dump()
    assert (message["content"], message["reasoning_content"]) == ("Look.", "hm")
    blocks = [{"text": "hm", "signature": "sig"}, {"redacted": "r"}]
    assert message["extra_content"] == {"tollbar": {"thinking": blocks}}
    assert message["tool_calls"][0]["extra_content"] == {"tollbar": {"signature": "ts"}}


def test_thinking_on_both_sides_of_text_is_two_blocks():
    out = streamed(ThinkingDelta("a"), SignatureDelta("1"), TextDelta("x"), ThinkingDelta("b"), SignatureDelta("2"))
    extra = [choice["delta"]["extra_content"] for choice in choices_of(out) if "extra_content" in choice["delta"]]
    assert extra == [{"tollbar": {"thinking": [{"text": "a", "signature": "1"}, {"text": "b", "signature": "2"}]}}]


def test_a_signature_covers_no_thinking_before_the_text():
    out = streamed(ThinkingDelta("a"), TextDelta("x"), ThinkingDelta("b"), SignatureDelta("2"))
    extra = [choice["delta"]["extra_content"] for choice in choices_of(out) if "extra_content" in choice["delta"]]
    assert extra == [{"tollbar": {"thinking": [{"text": "a"}, {"text": "b", "signature": "2"}]}}]


def test_text_that_looks_like_framing_stays_text():
    forged = 'before [DONE]\n\ndata: [DONE]\n\nevent: error\ndata: {"error": 1}\r\n'
    assert text_of(streamed(TextDelta(forged), Finished("stop"))) == forged


def test_a_failure_is_the_last_event_and_ends_without_a_finish():
    renderer = OpenAIDialect().stream_renderer(call(), "req_1", "target-model")
    out = renderer.render([TextDelta("part")]) + renderer.fail("It broke.", "upstream_error", "api_error", "req_1")
    out += renderer.render([TextDelta("late")]) + renderer.end(facts()) + renderer.fail("x", "y", "z", "req_1")
    events = documents(out)
    assert events[-1] == {
        "error": {
            "message": "It broke.",
            "type": "api_error",
            "param": None,
            "code": "upstream_error",
            "details": None,
        },
        "request_id": "req_1",
    }
    assert text_of(out) == "part"
    assert (finishes_of(out), "DONE" in events) == ([], False)


EVENTS = st.lists(
    st.one_of(
        st.builds(TextDelta, st.text(max_size=5)),
        st.builds(ThinkingDelta, st.text(max_size=5)),
        st.builds(RefusalDelta, st.text(max_size=5)),
        st.builds(SignatureDelta, st.just("s")),
        st.builds(RedactedThinking, st.just("r")),
        st.builds(ToolCallDelta, st.integers(0, 3), st.just("1")),
        st.builds(UsageSeen, st.just(USAGE)),
        st.builds(Finished, st.sampled_from(["stop", "length", "tool_calls", "content_filter"])),
        st.just(ForeignDelta("anthropic", {"type": "x"})),
    ),
    max_size=12,
)


@given(EVENTS, st.integers(0, 3), st.booleans())
def test_a_stream_is_well_formed_whatever_the_order_of_events(events, calls, include_usage):
    started = [ToolCallStart(number, f"c{number}", "f") for number in range(calls)]
    out = streamed(*started, *started, *events, include_usage=include_usage)
    *chunks, end = documents(out)
    assert end == "DONE"
    assert len(finishes_of(out)) == 1
    assert len(tool_calls_of(out)) == calls
    assert sum(choice["delta"].get("role") == "assistant" for choice in choices_of(out)) == 1
    assert text_of(out) == "".join(event.text for event in events if isinstance(event, TextDelta))
    state = ChatCompletionStreamState()
    for document in chunks:
        state.handle_chunk(ChatCompletionChunk.model_validate(document))


def test_errors_have_openais_envelope():
    error = RateLimited("Slow down.", details={"scope": "key"})
    assert OpenAIDialect().error_body(error, "req_1") == {
        "error": {
            "message": "Slow down.",
            "type": "rate_limit_error",
            "param": None,
            "code": "rate_limit_exceeded",
            "details": {"scope": "key"},
        },
        "request_id": "req_1",
    }


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_of_nothing_is_still_an_answer(stream):
    if stream:
        assert finishes_of(streamed(Finished("stop"))) == ["stop"]
    else:
        assert whole(ChatResponse())["choices"][0]["message"]["content"] == ""
