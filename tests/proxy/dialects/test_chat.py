"""Tollbar's own format: strict requests, one answer in whole and in a stream."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canonical import (
    ChatResponse,
    Finished,
    ForeignDelta,
    Message,
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
from proxy.context import TOLLBAR, Call
from proxy.dialects.base import STEERING_FIELDS
from proxy.dialects.chat import TollbarDialect
from proxy.errors import BadRequest
from tests.proxy.wire import documents, facts

USER = {"role": "user", "content": "hello"}
USAGE = Usage(input_tokens=20, output_tokens=9, cache_read_tokens=8, cache_write_tokens=2, reasoning_tokens=4)
FACTS = {
    "request_id": "req_1",
    "provider": "main",
    "model": "gpt-x",
    "tool_calls": [],
    "finish_reason": "stop",
    "input_tokens": 20,
    "output_tokens": 9,
    "total_tokens": 29,
    "cache_read_tokens": 8,
    "cache_write_tokens": 2,
    "reasoning_tokens": 4,
    "latency_ms": 12,
    "cost_usd": "0.000105",
    "cached": False,
    "fallback_used": True,
    "attempts": 2,
}


def parsed(**members) -> Call:
    return TollbarDialect().parse_call({"model": "smart", "messages": [USER]} | members)


def refused(**members) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        parsed(**members)
    return caught.value


def test_every_member_of_the_format():
    call = parsed(
        max_tokens=32_000,
        temperature=2,
        top_p=1,
        stop=["x"],
        seed=1,
        tools=[{"type": "function", "function": {"name": "f"}}],
        tool_choice="auto",
        response_format={"type": "json_object"},
        stream=True,
        user="u",
        metadata={"a": "b"},
        provider_preference=["main"],
        cheapest_first=True,
        cache=False,
        webhook_url="https://hooks.example/x",
        background=False,
        timeout=1.5,
    )
    assert (call.dialect, call.model, call.max_tokens, call.stream, call.user) == (TOLLBAR, "smart", 32_000, True, "u")
    assert (call.metadata, call.provider_preference, call.cheapest_first) == ({"a": "b"}, ["main"], True)
    assert (call.cache, call.webhook_url, call.background, call.timeout_ms) == (
        False,
        "https://hooks.example/x",
        False,
        1500,
    )
    request = call.canonical
    assert request is not None
    assert request.messages == [Message("user", [Text("hello")])]
    assert (request.max_tokens, request.stop, [tool.name for tool in request.tools]) == (32_000, ["x"], ["f"])


@pytest.mark.parametrize("name", ["frobnicate", "n", "logit_bias", "max_completion_tokens", *sorted(STEERING_FIELDS)])
def test_a_member_it_does_not_have_is_refused_by_name(name):
    error = refused(**{name: 1})
    assert (error.code, error.param) == ("unknown_parameter", name)
    assert name in error.message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tokens", 0),
        ("max_tokens", 32_001),
        ("max_tokens", True),
        ("max_tokens", 1.5),
        ("temperature", 2.5),
        ("temperature", -1),
        ("top_p", 1.5),
        ("stop", {"a": 1}),
        ("seed", "1"),
        ("tools", "f"),
        ("tool_choice", 7),
        ("response_format.type", {"type": "xml"}),
        ("stream", 1),
        ("user", ["u"]),
        ("metadata", {"a": 1}),
        ("metadata", "x"),
        ("provider_preference", "main"),
        ("provider_preference", [1]),
        ("cheapest_first", "yes"),
        ("cache", 1),
        ("webhook_url", "ftp://x"),
        ("webhook_url", "https://a b"),
        ("webhook_url", 7),
        ("background", "no"),
        ("timeout", 0),
        ("timeout", -1),
        ("timeout", "5"),
        ("model", None),
        ("messages", []),
        ("messages", None),
    ],
)
def test_what_is_out_of_range_is_named(name, value):
    assert refused(**{name.partition(".")[0]: value}).param == name


@pytest.mark.parametrize("role", ["developer", "function", "wizard", None])
def test_roles_are_the_four_of_the_format(role):
    assert refused(messages=[{"role": role, "content": "x"}]).param == "messages[0].role"


def test_malformed_messages_are_refused_before_anything_is_reserved():
    assert refused(messages=[{"role": "user", "content": [{"type": "video"}]}]).param == "messages[0].content[0].type"


def test_a_stream_cannot_run_in_the_background():
    assert refused(stream=True, background=True).param == "background"


# ---------------------------------------------------------------- answers


def told(response: ChatResponse) -> dict:
    raw = TollbarDialect().render_response(parsed(), response, facts(USAGE, fallback_used=True, attempts=2))
    return json.loads(raw)


def test_a_whole_answer_has_every_member():
    assert told(ChatResponse(parts=[Thinking("hm"), Text("Grü"), Text("ße")])) == FACTS | {"content": "Grüße"}


def test_tool_calls_have_openais_form():
    answer = told(ChatResponse(parts=[ToolCall("a", "f", "")], finish_reason="tool_calls"))
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    assert (answer["content"], answer["tool_calls"], answer["finish_reason"]) == ("", [call], "tool_calls")


def test_a_refusal_is_what_was_said():
    assert told(ChatResponse(refusal="No.", finish_reason="content_filter"))["content"] == "No."


def test_a_model_without_a_price_costs_null():
    raw = TollbarDialect().render_response(parsed(), ChatResponse(), facts(cost_usd=None))
    assert json.loads(raw)["cost_usd"] is None


def streamed(*events: StreamEvent) -> list:
    renderer = TollbarDialect().stream_renderer(parsed(stream=True), "req_1", "target-model")
    out = b"".join(renderer.render([event]) for event in events)
    return documents(out + renderer.end(facts(USAGE, fallback_used=True, attempts=2)))


def test_a_stream_ends_with_the_answer_less_its_content():
    assert streamed(ThinkingDelta("hm"), TextDelta("Grü"), RefusalDelta("ße"), UsageSeen(USAGE), Finished("stop")) == [
        ("delta", {"content": "Grü"}),
        ("delta", {"content": "ße"}),
        ("done", FACTS),
    ]


def test_a_stream_of_tool_calls():
    *deltas, (name, done) = streamed(
        ToolCallStart(0, "a", "f"),
        ToolCallStart(1, "b", "g", "sig"),
        ToolCallDelta(1, '{"x"'),
        ToolCallDelta(0, "{}"),
        ToolCallDelta(1, ":1}"),
        Finished("tool_calls"),
    )
    signed = {"extra_content": {"tollbar": {"signature": "sig"}}}
    assert [delta["tool_calls"] for _, delta in deltas] == [
        [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}],
        [{"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": ""}} | signed],
        [{"index": 1, "function": {"arguments": '{"x"'}}],
        [{"index": 0, "function": {"arguments": "{}"}}],
        [{"index": 1, "function": {"arguments": ":1}"}}],
    ]
    assert (name, done["finish_reason"]) == ("done", "tool_calls")
    assert done["tool_calls"] == [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": '{"x":1}'}} | signed,
    ]


def test_a_failed_stream_ends_with_the_error_alone():
    renderer = TollbarDialect().stream_renderer(parsed(stream=True), "req_1", "target-model")
    out = renderer.render([TextDelta("part")]) + renderer.fail("It broke.", "upstream_error", "api_error", "req_1")
    out += renderer.render([TextDelta("late")]) + renderer.end(facts()) + renderer.fail("x", "y", "z", "req_1")
    assert documents(out) == [
        ("delta", {"content": "part"}),
        (
            "error",
            {
                "error": {
                    "message": "It broke.",
                    "type": "api_error",
                    "param": None,
                    "code": "upstream_error",
                    "details": None,
                },
                "request_id": "req_1",
            },
        ),
    ]


@given(
    st.lists(
        st.sampled_from(
            [
                TextDelta("a\n\nevent: done\ndata: {}"),
                ThinkingDelta("b"),
                SignatureDelta("s"),
                ToolCallStart(0, "a", "f"),
                ToolCallDelta(0, "1"),
                ToolCallDelta(4, "1"),
                Finished("length"),
                ForeignDelta("x", {}),
            ]
        ),
        max_size=10,
    )
)
def test_a_stream_is_well_formed_whatever_the_order_of_events(events):
    *deltas, (name, _) = streamed(*events)
    assert name == "done"
    assert all(
        name == "delta" and len(delta) == 1 and delta.keys() <= {"content", "tool_calls"} for name, delta in deltas
    )
