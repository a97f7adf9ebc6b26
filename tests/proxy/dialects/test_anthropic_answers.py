"""Whole answers and errors as Anthropic's clients read them."""

import json

import pytest

from proxy.canonical import ChatResponse, Foreign, Text, Thinking, ToolCall, Usage
from proxy.context import ANTHROPIC
from proxy.dialects.anthropic import AnthropicDialect
from proxy.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    GatewayError,
    MethodNotAllowed,
    NotFound,
    PaymentRequired,
    RateLimited,
    TooLarge,
    Unauthenticated,
    Unavailable,
    Unprocessable,
    UnsupportedMediaType,
    UpstreamFailed,
    UpstreamTimeout,
)
from tests.proxy.anthropic_wire import streaming_call
from tests.proxy.wire import facts


def rendered(usage: Usage | None = None, **members) -> dict:
    response = ChatResponse(**members)
    return json.loads(AnthropicDialect().render_response(streaming_call(), response, facts(usage, model="gpt-x")))


def test_a_text():
    answer = rendered(parts=[Text("Grüße"), Text("")])
    assert answer.pop("id").startswith("msg_")
    assert answer == {
        "type": "message",
        "role": "assistant",
        "model": "gpt-x",
        "content": [{"type": "text", "text": "Grüße"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 3,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 4,
        },
    }


def test_every_kind_of_part_in_its_order():
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    parts = [
        Thinking(text="hm", signature="sig"),
        Thinking(text="unsigned"),
        Thinking(redacted="xx"),
        Text("Let me look."),
        Foreign(ANTHROPIC, "server_tool_use", search),
        Foreign("openai", "audio", {"id": "a"}),
        ToolCall("call_1", "f", '{"a": 1}', signature="opaque"),
        ToolCall("functions.f:0", "f", ""),
    ]
    content = rendered(parts=parts, finish_reason="tool_calls")["content"]
    assert content[:-1] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "thinking", "thinking": "unsigned", "signature": ""},
        {"type": "redacted_thinking", "data": "xx"},
        {"type": "text", "text": "Let me look."},
        search,
        {
            "type": "tool_use",
            "id": "call_1",
            "name": "f",
            "input": {"a": 1},
            "extra_content": {"tollbar": {"signature": "opaque"}},
        },
    ]
    assert content[-1]["input"] == {}
    assert content[-1]["id"].replace("_", "").isalnum()


@pytest.mark.parametrize("arguments", ['{"a": ', "[1]", '"text"', "[" * 100_000])
def test_arguments_that_are_no_object_stay_readable(arguments):
    content = rendered(parts=[ToolCall("c", "f", arguments)], finish_reason="tool_calls")["content"]
    assert content[0]["input"] == {"_raw": arguments}


def test_an_answer_without_parts_has_an_empty_content():
    assert rendered()["content"] == []


@pytest.mark.parametrize(
    ("members", "reason", "sequence"),
    [
        ({"finish_reason": "length"}, "max_tokens", None),
        ({"finish_reason": "content_filter"}, "refusal", None),
        ({"finish_reason": "stop", "stop_sequence": "END"}, "stop_sequence", "END"),
        ({"finish_reason": "length", "stop_sequence": "END"}, "max_tokens", None),
        ({"finish_reason": "stop", "parts": [ToolCall("c", "f")]}, "tool_use", None),
        ({"finish_reason": "tool_calls"}, "end_turn", None),
        ({"finish_reason": "stop", "refusal": "No."}, "refusal", None),
    ],
)
def test_stop_reasons(members, reason, sequence):
    answer = rendered(**members)
    assert (answer["stop_reason"], answer["stop_sequence"]) == (reason, sequence)


def test_a_refusal_is_told_as_text():
    assert rendered(refusal="No.")["content"] == [{"type": "text", "text": "No."}]


def test_usage_leaves_the_cache_out_of_the_input_and_names_thinking():
    usage = Usage(input_tokens=100, output_tokens=20, cache_read_tokens=60, cache_write_tokens=30, reasoning_tokens=8)
    assert rendered(usage)["usage"] == {
        "input_tokens": 10,
        "cache_creation_input_tokens": 30,
        "cache_read_input_tokens": 60,
        "output_tokens": 20,
        "output_tokens_details": {"thinking_tokens": 8},
    }


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (BadRequest("x"), "invalid_request_error"),
        (Unauthenticated("x"), "authentication_error"),
        (PaymentRequired("x"), "billing_error"),
        (Forbidden("x"), "permission_error"),
        (NotFound("x"), "not_found_error"),
        (MethodNotAllowed("x", allow="POST"), "invalid_request_error"),
        (Conflict("x"), "invalid_request_error"),
        (TooLarge("x"), "request_too_large"),
        (UnsupportedMediaType("x"), "invalid_request_error"),
        (Unprocessable("x"), "invalid_request_error"),
        (RateLimited("x"), "rate_limit_error"),
        (UpstreamFailed("x"), "api_error"),
        (Unavailable("x"), "overloaded_error"),
        (UpstreamTimeout("x"), "timeout_error"),
        (GatewayError("x"), "api_error"),
    ],
)
def test_errors_have_anthropics_types(error, kind):
    body = AnthropicDialect().error_body(error, "req_1")
    assert body == {
        "type": "error",
        "error": {"type": kind, "message": "x", "code": error.code},
        "request_id": "req_1",
    }


def test_a_refusal_explains_itself():
    details = {"scope": "key", "limit": 5, "used": 5}
    error = AnthropicDialect().error_body(PaymentRequired("spent", details=details, param="model"), "req_1")["error"]
    assert (error["details"], error["param"], error["code"]) == (details, "model", "budget_exceeded")
