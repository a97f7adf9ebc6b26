"""The mock provider: deterministic answers without a network, read back by its own adapter."""

import json

import pytest

from proxy.canonical import Usage
from proxy.context import OPENAI, Call, ProviderReply, ProviderTarget
from proxy.providers.base import adapter_for
from proxy.providers.mock import MOCK_SCHEME, MockReply, mock_reply
from tests.proxy.wire import facts, finishes_of, play, text_of, tool_calls_of

TOOL = {"type": "function", "function": {"name": "weather"}}


def ask(text: str = "hello there", model: str = "echo", sequence: int = 1, **members) -> MockReply:
    body = {"model": model, "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]}
    return mock_reply(body | members, model, sequence)


def whole(reply: MockReply) -> dict:
    assert reply.status == 200
    return json.loads(b"".join(piece for _, piece in reply.pieces))


def streamed(reply: MockReply):
    relay = adapter_for("mock").stream_pass_through(Call(dialect=OPENAI, body={}, model="m", stream=True))
    return relay, play(relay, [piece for _, piece in reply.pieces])


def test_a_request_goes_to_no_network():
    call = Call(dialect=OPENAI, body={"model": "m", "messages": [{"role": "user", "content": "x"}]}, model="m")
    target = ProviderTarget(provider="p", kind="mock", model="echo", base_url="mock://")
    request = adapter_for("mock").build_request(call, target)
    assert request.url.startswith(MOCK_SCHEME)
    assert json.loads(request.body)["model"] == "echo"


@pytest.mark.parametrize("model", ["echo", "anything-else"])
def test_echo_repeats_the_user_and_counts_a_token_for_four_characters(model):
    reply = ask(model=model)
    document = whole(reply)
    assert document["choices"][0]["message"]["content"] == "Echo: hello there"
    assert document["model"] == model
    answer = adapter_for("mock").pass_through(
        Call(dialect=OPENAI, body={}, model="m"), ProviderReply(200, reply.headers, reply.pieces[0][1])
    )
    assert answer.usage == Usage(input_tokens=5, output_tokens=5)
    assert ask(model=model) == reply, "the same call gets the same answer"


def test_content_in_parts_and_an_empty_prompt():
    parts = [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "x"}},
        {"type": "text", "text": "b"},
    ]
    body = {"messages": [{"role": "user", "content": parts}]}
    assert whole(mock_reply(body, "echo", 1))["choices"][0]["message"]["content"] == "Echo: ab"
    assert whole(mock_reply({}, "echo", 1))["usage"] == {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def test_a_stream_says_the_same_as_the_whole_answer():
    relay, out = streamed(ask("two  words\nhere", stream=True, stream_options={"include_usage": True}))
    out += relay.end(facts())
    assert text_of(out) == "Echo: two  words\nhere"
    assert finishes_of(out) == ["stop"]
    assert relay.usage == Usage(input_tokens=6, output_tokens=6)


def test_the_limit_of_output_tokens_is_kept():
    document = whole(ask("a long question", max_completion_tokens=2))
    assert document["choices"][0]["message"]["content"] == "Echo: a "
    assert document["choices"][0]["finish_reason"] == "length"
    assert document["usage"]["completion_tokens"] == 2


@pytest.mark.parametrize(
    ("text", "arguments"), [('call weather {"city":"Oslo"}', '{"city":"Oslo"}'), ("call weather", "{}")]
)
def test_it_calls_the_tool_it_is_asked_to_call(text, arguments):
    message = whole(ask(text, tools=[TOOL]))["choices"][0]["message"]
    assert message["tool_calls"][0]["function"] == {"name": "weather", "arguments": arguments}
    relay, out = streamed(ask(text, tools=[TOOL], stream=True))
    out += relay.end(facts())
    assert [(call["name"], call["arguments"]) for call in tool_calls_of(out)] == [("weather", arguments)]
    assert finishes_of(out) == ["tool_calls"]


def test_it_calls_no_tool_that_was_not_offered():
    assert whole(ask("call other", tools=[TOOL]))["choices"][0]["message"]["content"] == "Echo: call other"
    assert whole(ask("call weather", tools=[{"type": "custom"}]))["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("kind", ["json_object", "json_schema"])
def test_structured_output_is_json(kind):
    content = whole(ask('say "hi"', response_format={"type": kind}))["choices"][0]["message"]["content"]
    assert json.loads(content) == {"echo": 'say "hi"'}


def test_slow_waits_two_seconds_before_its_first_token():
    assert [delay for delay, _ in ask(model="slow", stream=True).pieces][:2] == [2000, 0]
    assert [delay for delay, _ in ask(model="slow").pieces] == [2000]


@pytest.mark.parametrize(
    ("model", "sequence", "status", "kind"),
    [
        ("fail-500", 1, 500, "server"),
        ("fail-429", 1, 429, "rate_limit"),
        ("flaky", 1, 503, "server"),
        ("flaky", 3, 503, "server"),
    ],
)
def test_models_that_fail(model, sequence, status, kind):
    reply = ask(model=model, sequence=sequence)
    assert reply.status == status
    fault = adapter_for("mock").parse_error(ProviderReply(reply.status, reply.headers, reply.pieces[0][1]))
    assert fault.kind == kind
    assert fault.retry_after_ms == (1000 if status == 429 else None)


def test_flaky_answers_every_even_call():
    assert ask(model="flaky", sequence=2).status == 200


def test_stream_dies_after_some_content():
    reply = ask(model="stream-dies", stream=True)
    relay, out = streamed(reply)
    assert reply.dies
    assert text_of(out).startswith("Echo:")
    assert relay.fault is not None
    cut = ask(model="stream-dies")
    assert cut.dies
    with pytest.raises(ValueError, match=r"."):
        whole(cut)
