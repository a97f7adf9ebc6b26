"""Legacy completions of clients: what is checked, their canonical form, answers of chat providers."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canonical import (
    ChatRequest,
    ChatResponse,
    Finished,
    Message,
    RefusalDelta,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCallStart,
    UsageSeen,
)
from proxy.canonical import Usage as Tokens
from proxy.context import CHAT, Call
from proxy.dialects.base import STEERING_FIELDS
from proxy.dialects.completions import CompletionsDialect
from proxy.errors import BadRequest, Inexpressible
from proxy.metering import estimate
from proxy.snapshot import ModelSpec
from tests.proxy.wire import documents, facts

MODEL = ModelSpec(name="smart", strategy="ordered", targets=(), max_output_tokens=1000)


def parsed(**members) -> Call:
    return CompletionsDialect().parse_call({"model": "smart", "prompt": "Once"} | members)


def refused_param(**members) -> str | None:
    with pytest.raises(BadRequest) as caught:
        parsed(**members)
    return caught.value.param


def inexpressible_param(**members) -> str | None:
    with pytest.raises(Inexpressible) as caught:
        CompletionsDialect().canonical(parsed(**members))
    return caught.value.param


def test_what_the_gateway_reads_of_a_call():
    call = parsed(
        prompt=["a", "b"], n=2, best_of=3, max_tokens=7, stream=True, stream_options={"include_usage": True}, user="u"
    )
    assert (call.operation, call.stream, call.include_usage, call.user) == (CHAT, True, True, "u")
    assert (call.max_tokens, call.choices) == (7, 6)


def test_without_a_limit_sixteen_tokens_come_out_as_openai_documents_it():
    assert parsed().max_tokens == 16
    assert parsed(max_tokens=0).max_tokens == 0


@pytest.mark.parametrize("prompt", ["", "text", [1, 2], ["a", "b"], [[1], [2, 3]]])
def test_a_prompt_is_a_text_token_ids_or_a_list_of_either(prompt):
    assert parsed(prompt=prompt).body["prompt"] == prompt


@pytest.mark.parametrize(
    ("prompt", "param"),
    [
        (None, "prompt"),
        ([], "prompt"),
        ({}, "prompt"),
        ([1, "a"], "prompt"),
        (["a", 1], "prompt[1]"),
        ([[1], "a"], "prompt[1]"),
        ([["a"]], "prompt[0]"),
        (["a"] * 2049, "prompt"),
    ],
)
def test_any_other_prompt_is_refused_by_its_place(prompt, param):
    assert refused_param(prompt=prompt) == param


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tokens", -1),
        ("n", 0),
        ("best_of", 129),
        ("logprobs", True),
        ("echo", 1),
        ("suffix", 1),
        ("temperature", 3),
        ("stop", [1]),
        ("logit_bias", []),
        ("stream", "yes"),
        ("stream_options", 1),
        ("user", 1),
    ],
)
def test_other_members_are_checked_too(name, value):
    assert refused_param(**{name: value}) == name


@pytest.mark.parametrize("name", sorted(STEERING_FIELDS))
def test_nothing_steers_the_call(name):
    assert refused_param(**{name: "x"}) == name


def test_prompts_and_choices_together_are_bounded():
    assert refused_param(prompt=["a"] * 100, n=100) == "n"
    assert refused_param(prompt=["a"] * 100, best_of=100) == "best_of"


@pytest.mark.parametrize(
    ("members", "bound"), [({}, 16), ({"max_tokens": 0}, 0), ({"max_tokens": 5, "best_of": 4}, 20)]
)
def test_every_answer_that_is_generated_is_reserved(members, bound):
    assert estimate(parsed(**members), 100, MODEL).output_bound == bound


def test_one_text_is_one_message_of_the_user():
    asked: dict[str, Any] = {
        "temperature": 0.5,
        "top_p": 0.9,
        "stop": "x",
        "seed": 3,
        "presence_penalty": 1,
        "frequency_penalty": -1,
    }
    request = CompletionsDialect().canonical(parsed(prompt=["Once"], max_tokens=9, user="u", n=1, best_of=1, **asked))
    assert request == ChatRequest(
        messages=[Message("user", [Text("Once")])], max_tokens=9, user="u", **(asked | {"stop": ["x"]})
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("prompt", ["a", "b"]),
        ("prompt", [1, 2]),
        ("prompt", [[1, 2]]),
        ("prompt", ""),
        ("suffix", "end"),
        ("echo", True),
        ("logprobs", 0),
        ("best_of", 2),
        ("n", 2),
        ("max_tokens", 0),
    ],
)
def test_what_only_completions_have_is_named(name, value):
    assert inexpressible_param(**{name: value}) == name


def test_a_whole_answer_of_a_chat_model():
    response = ChatResponse(parts=[Thinking(text="hm"), Text("up"), Text("on")], finish_reason="length")
    document = json.loads(CompletionsDialect().render_response(parsed(), response, facts()))
    assert (document["object"], document["model"]) == ("text_completion", "gpt-x")
    assert document["choices"] == [{"text": "upon", "index": 0, "logprobs": None, "finish_reason": "length"}]
    assert document["usage"]["total_tokens"] == 7


def test_a_refusal_is_the_text_when_there_is_no_other():
    response = ChatResponse(refusal="No.", finish_reason="content_filter")
    choice = json.loads(CompletionsDialect().render_response(parsed(), response, facts()))["choices"][0]
    assert (choice["text"], choice["finish_reason"]) == ("No.", "content_filter")


def streamed(events: list, **members) -> list:
    renderer = CompletionsDialect().stream_renderer(parsed(stream=True, **members), "req_1", "gpt-x")
    return documents(renderer.render(events) + renderer.end(facts()) + renderer.end(facts()))


def test_a_stream_of_a_chat_model():
    events = [
        ThinkingDelta("hm"),
        TextDelta("up"),
        TextDelta("on"),
        UsageSeen(Tokens(input_tokens=3, output_tokens=4)),
        Finished("stop"),
    ]
    first, second, last, done = streamed(events)
    assert done == "DONE"
    assert [chunk["choices"][0]["text"] for chunk in (first, second, last)] == ["up", "on", ""]
    assert [chunk["choices"][0]["finish_reason"] for chunk in (first, second, last)] == [None, None, "stop"]
    assert first["id"] == last["id"]
    assert "usage" not in last


def test_usage_comes_in_a_chunk_of_its_own_when_it_is_asked_for():
    *chunks, usage, done = streamed([TextDelta("a"), Finished("stop")], stream_options={"include_usage": True})
    assert done == "DONE"
    assert all(chunk["usage"] is None for chunk in chunks)
    assert (usage["choices"], usage["usage"]["prompt_tokens"]) == ([], 3)


def test_a_stream_that_breaks_ends_with_an_error_and_no_end_marker():
    renderer = CompletionsDialect().stream_renderer(parsed(stream=True), "req_1", "gpt-x")
    raw = renderer.render([TextDelta("a")]) + renderer.fail("broken", "upstream_error", "api_error", "req_1")
    *_, last = documents(raw + renderer.end(facts()) + renderer.render([TextDelta("b")]))
    assert last["error"]["code"] == "upstream_error"


EVENTS = st.lists(
    st.one_of(
        st.text().map(TextDelta),
        st.text().map(ThinkingDelta),
        st.text().map(RefusalDelta),
        st.just(ToolCallStart(0, "c", "f")),
        st.just(Finished("tool_calls")),
    )
)


@given(EVENTS)
def test_any_events_give_a_well_formed_stream(events):
    *chunks, done = streamed(events)
    assert done == "DONE"
    texts = "".join(chunk["choices"][0]["text"] for chunk in chunks)
    assert texts == "".join(event.text for event in events if isinstance(event, TextDelta | RefusalDelta))
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks if chunk["choices"][0]["finish_reason"]] == [
        "stop"
    ]
