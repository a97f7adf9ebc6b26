"""OpenAI's Responses API as a provider: bodies and whole answers pass through."""

import json

import pytest

from proxy.canonical import ChatRequest, Message, Text, Thinking, Usage
from proxy.context import RESPONSES, Call, ProviderReply, ProviderTarget
from proxy.errors import UpstreamFault
from proxy.openai_format.responses_shapes import sealed_thinking, unsealed
from proxy.providers.base import adapter_for
from tests.proxy.responses_wire import body, function_call, message

TARGET = ProviderTarget(provider="main", kind="openai", model="gpt-x", base_url="https://api.test/v1/", secret="sk-s")
OPENAI_KIND = adapter_for("openai")


def call_of(**members) -> Call:
    document = {"model": "smart", "input": "hi"} | members
    return Call(dialect=RESPONSES, body=document, model="smart", stream=bool(document.get("stream")))


def sent(call: Call) -> dict:
    return json.loads(OPENAI_KIND.build_request(call, TARGET).body)


def passed(raw: bytes):
    return OPENAI_KIND.pass_through(call_of(), ProviderReply(200, {}, raw))


def fault_of(raw: bytes) -> UpstreamFault:
    with pytest.raises(UpstreamFault) as caught:
        passed(raw)
    return caught.value


@pytest.mark.parametrize("kind", ["openai", "azure_openai"])
def test_openai_itself_and_azure_speak_it(kind):
    assert RESPONSES in adapter_for(kind).dialects


@pytest.mark.parametrize("kind", ["openai_compatible", "mock"])
def test_others_get_a_chat_completion(kind):
    adapter = adapter_for(kind)
    call = call_of(stream=True)
    call.canonical = ChatRequest(messages=[Message("user", [Text("hi")])])
    request = adapter.build_request(call, TARGET)
    assert request.url.endswith("chat/completions")
    assert json.loads(request.body)["messages"] == [{"role": "user", "content": "hi"}]


def test_the_clients_own_body_is_sent_with_the_targets_model():
    call = call_of(previous_response_id="resp_0", tools=[{"type": "web_search"}], something_new={"a": [1]}, stream=True)
    request = OPENAI_KIND.build_request(call, TARGET)
    assert request.url == "https://api.test/v1/responses"
    assert request.headers["accept"] == "text/event-stream"
    assert json.loads(request.body) == call.body | {"model": "gpt-x"}
    assert call.body["model"] == "smart"


def test_a_limit_of_output_is_written_when_the_client_named_none():
    capped = call_of()
    capped.output_cap = 700
    named = call_of(max_output_tokens=50)
    named.output_cap = 700
    assert (sent(capped)["max_output_tokens"], sent(named)["max_output_tokens"]) == (700, 50)


def test_openais_own_encrypted_reasoning_passes_and_what_others_signed_does_not():
    own = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAB"}
    other = own | {"id": "rs_2", "encrypted_content": sealed_thinking(Thinking(text="hm", signature="sig"))}
    asked = {"role": "user", "content": "hi"}
    assert sent(call_of(input=[asked, own, other]))["input"] == [asked, own]


@pytest.mark.parametrize("changed", ["tollbar.%%%", "tollbar.e30", "tollbar.bnVsbA==", "tollbar.W10="])
def test_reasoning_that_was_changed_on_its_way_is_not_read(changed):
    with pytest.raises(ValueError, match="not"):
        unsealed(changed)


def test_an_answer_passes_byte_for_byte_with_its_usage():
    raw = body(message("hello"))
    answer = passed(raw)
    assert answer.body is raw
    assert answer.finish_reason == "stop"
    assert answer.usage == Usage(
        input_tokens=20, output_tokens=9, cache_read_tokens=8, cache_write_tokens=2, reasoning_tokens=4
    )


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (body(function_call("f", "{}")), "tool_calls"),
        (body({"type": "custom_tool_call", "name": "f", "input": "x"}), "tool_calls"),
        (body(message("a"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}), "length"),
        (body(status="incomplete", incomplete_details={"reason": "content_filter"}), "content_filter"),
        (body(status="incomplete"), "length"),
        (b'{"output": [{"type": "message"}], "usage": {"input_tokens": 1}}', "stop"),
    ],
)
def test_why_it_stopped_is_read_from_status_and_output(raw, reason):
    assert passed(raw).finish_reason == reason


@pytest.mark.parametrize("usage", [None, {}, {"input_tokens": -1}, {"input_tokens": 10**9, "output_tokens": 1}, "many"])
def test_without_sound_usage_the_characters_are_counted(usage):
    reasoning = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "abc"}]}
    answer = passed(body(reasoning, message("hello"), function_call("f", "{}"), usage=usage))
    assert answer.usage is None
    assert answer.produced_chars == 3 + 5 + 1 + 2


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": "server_error", "message": "sorry"}, "server"),
        ({"code": "rate_limit_exceeded", "message": "slow down"}, "rate_limit"),
        ({"code": "vector_store_timeout", "message": "late"}, "timeout"),
        ({"code": "invalid_prompt", "message": "not allowed"}, "request"),
        ({"code": "image_too_large", "message": "too large"}, "request"),
        ({"code": "bio_policy", "message": "no"}, "request"),
        (None, "server"),
    ],
)
def test_a_failed_response_is_a_fault(error, kind):
    fault = fault_of(body(status="failed", error=error))
    assert fault.kind == kind
    assert fault.message == (error["message"] if error else "the response failed")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"<html>",
        b"[]",
        b'{"output": 1}',
        b"{}",
        body(status="in_progress"),
        body(status="cancelled"),
        body(message("a"))[:-1],
        b'{"object": "chat.completion", "choices": []}',
    ],
)
def test_what_is_no_response_is_a_breach_of_protocol(raw):
    assert fault_of(raw).kind == "protocol"
