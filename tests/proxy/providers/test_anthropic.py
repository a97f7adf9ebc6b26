"""Requests to Anthropic for its own clients, whole answers, and how both are addressed."""

import json

import pytest

from proxy.canonical import ChatResponse, Foreign, Text, Thinking, ToolCall, Usage
from proxy.context import ANTHROPIC, COUNT_TOKENS, Call, ProviderReply, ProviderTarget
from proxy.errors import UpstreamFault
from proxy.providers.anthropic import AnthropicAdapter
from proxy.providers.base import adapter_for
from tests.proxy.anthropic_wire import streaming_call

USAGE = {"input_tokens": 3, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 11}


def target(base_url: str = "https://api.anthropic.com", **members) -> ProviderTarget:
    return ProviderTarget(
        provider="main", kind="anthropic", model="claude-sonnet-4-5", base_url=base_url, secret="s3", **members
    )


def own_call(*messages: dict, **members) -> Call:
    body = {"model": "smart", "max_tokens": 9, "messages": list(messages) or [{"role": "user", "content": "hi"}]}
    return Call(dialect=ANTHROPIC, body=body | members, model="smart", max_tokens=9)


def sent(call: Call, **members) -> dict:
    return json.loads(AnthropicAdapter().build_request(call, target(**members)).body)


def reply(document, status: int = 200) -> ProviderReply:
    return ProviderReply(status, {}, document if isinstance(document, bytes) else json.dumps(document).encode())


def message(*blocks: dict, **members) -> dict:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": list(blocks),
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": USAGE,
    } | members


def test_it_is_found_by_its_kind():
    adapter = adapter_for("anthropic")
    assert adapter.dialects == {ANTHROPIC, COUNT_TOKENS}
    assert adapter.default_base_url == "https://api.anthropic.com"


# ---------------------------------------------------------------- requests


@pytest.mark.parametrize("base_url", ["https://x.example", "https://x.example/", "https://x.example/v1"])
def test_the_address(base_url):
    request = AnthropicAdapter().build_request(own_call(), target(base_url))
    assert request.url == "https://x.example/v1/messages"


def test_headers_of_a_client_that_named_none():
    headers = AnthropicAdapter().build_request(own_call(), target()).headers
    assert headers == {
        "content-type": "application/json",
        "accept": "application/json",
        "anthropic-version": "2023-06-01",
        "x-api-key": "s3",
    }
    assert AnthropicAdapter().build_request(streaming_call(), target()).headers["accept"] == "text/event-stream"


def test_version_and_betas_of_the_client_are_forwarded():
    call = own_call()
    call.anthropic_version, call.anthropic_beta = "2024-01-01", "some-beta"
    headers = AnthropicAdapter().build_request(call, target(headers={"X-Team": "a", "Anthropic-Beta": "ours"})).headers
    assert (headers["anthropic-version"], headers["anthropic-beta"]) == ("2024-01-01", "some-beta,ours")
    assert headers["x-team"] == "a"


def test_the_clients_own_body_is_sent_with_another_model_and_nothing_else():
    call = own_call(
        {"role": "user", "content": [{"type": "text", "text": " ", "cache_control": {"type": "ephemeral"}}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "sig"}]},
        temperature=2,
        top_p=0.1,
        metadata={"user_id": "a@b.example", "x": 1},
        something_new={"a": [1]},
    )
    before = json.dumps(call.body)
    assert sent(call) == call.body | {"model": "claude-sonnet-4-5"}
    assert json.dumps(call.body) == before


def test_what_the_gateway_made_of_other_providers_answers_is_not_sent_to_anthropic():
    call = own_call(
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "of another model", "signature": ""},
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "c", "name": "f", "input": {}, "extra_content": {"tollbar": {}}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c"}]},
    )
    messages = sent(call)["messages"]
    assert messages[1]["content"] == [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "c", "name": "f", "input": {}},
    ]
    assert (messages[0], messages[2]) == (call.body["messages"][0], call.body["messages"][2])
    assert "extra_content" in call.body["messages"][1]["content"][2]


# ---------------------------------------------------------------- answers of its own dialect


def test_an_answer_passes_byte_for_byte_and_is_metered():
    body = b'{ "type":"message", "content":[ ],"stop_reason":"max_tokens","usage":{"input_tokens":3,"output_tokens":4}}'
    answer = AnthropicAdapter().pass_through(own_call(), reply(body))
    assert (answer.body, answer.usage, answer.finish_reason) == (body, Usage(3, 4), "length")


def test_usage_counts_the_cache_into_the_input():
    usage = USAGE | {
        "cache_creation": {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 4},
        "output_tokens_details": {"thinking_tokens": 6},
    }
    assert AnthropicAdapter().pass_through(own_call(), reply(message(usage=usage))).usage == Usage(
        input_tokens=15,
        output_tokens=11,
        cache_read_tokens=7,
        cache_write_tokens=5,
        cache_write_1h_tokens=4,
        reasoning_tokens=6,
    )


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        "free",
        {"input_tokens": -1, "output_tokens": 2},
        {"input_tokens": 1, "output_tokens": 1 << 63},
        {"input_tokens": "9", "output_tokens": 2},
        {"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": True},
    ],
)
def test_usage_that_is_missing_or_nonsense_leaves_characters_to_count(usage):
    use = {"type": "tool_use", "id": "c", "name": "ab", "input": {"a": 1}}
    document = message({"type": "text", "text": "four"}, {"type": "thinking", "thinking": "hm"}, use, usage=usage)
    answer = AnthropicAdapter().pass_through(own_call(), reply(document))
    assert (answer.usage, answer.produced_chars) == (None, 4 + 2 + 2 + 7)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>hello</html>",
        b'{"type":"message","content":[{"ty',
        b"[]",
        b"7",
        b"{}",
        b'{"type":"message"}',
        b'{"type":"message","content":"text"}',
        b'{"content":[],"usage":{}}',
        b'{"type":"message","content":[],"usage":' + b"[" * 100_000,
    ],
)
@pytest.mark.parametrize("reader", ["pass_through", "parse_response"])
def test_what_is_no_message_is_a_fault(body, reader):
    with pytest.raises(UpstreamFault) as caught:
        getattr(AnthropicAdapter(), reader)(own_call(), reply(body))
    assert (caught.value.kind, caught.value.status) == ("protocol", 200)


@pytest.mark.parametrize("reader", ["pass_through", "parse_response"])
def test_an_error_with_status_200_is_a_fault_of_its_kind(reader):
    document = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}
    with pytest.raises(UpstreamFault) as caught:
        getattr(AnthropicAdapter(), reader)(own_call(), reply(document))
    assert (caught.value.kind, caught.value.message) == ("rate_limit", "slow down")


# ---------------------------------------------------------------- answers for other dialects


def test_an_answer_in_canonical_form():
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    document = message(
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "xx"},
        {"type": "text", "text": "Let me look.", "citations": None},
        search,
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": "é"}},
        {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {}},
        stop_reason="tool_use",
    )
    assert AnthropicAdapter().parse_response(own_call(), reply(document)) == ChatResponse(
        id="msg_1",
        model="claude-x",
        parts=[
            Thinking(text="hm", signature="sig"),
            Thinking(redacted="xx"),
            Text("Let me look."),
            Foreign(ANTHROPIC, "server_tool_use", search),
            ToolCall("toolu_1", "f", '{"a":"é"}'),
            ToolCall("toolu_2", "g", "{}"),
        ],
        finish_reason="tool_calls",
        native_finish="tool_use",
        usage=Usage(input_tokens=15, output_tokens=11, cache_read_tokens=7, cache_write_tokens=5),
    )


@pytest.mark.parametrize(
    ("native", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
        ("something_new", "stop"),
        (None, "stop"),
    ],
)
def test_stop_reasons(native, finish):
    response = AnthropicAdapter().parse_response(own_call(), reply(message(stop_reason=native, stop_sequence="END")))
    assert (response.finish_reason, response.native_finish, response.stop_sequence) == (finish, native, "END")


@pytest.mark.parametrize("use", [{"name": "f"}, {"id": "c"}, {"id": 7, "name": "f"}])
def test_a_call_without_id_or_name_is_a_fault(use):
    with pytest.raises(UpstreamFault):
        AnthropicAdapter().parse_response(own_call(), reply(message({"type": "tool_use", "input": {}} | use)))
