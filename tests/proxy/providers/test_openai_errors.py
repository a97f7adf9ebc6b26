"""What the errors of OpenAI-style providers mean."""

import json

import pytest

from proxy.context import ProviderReply
from proxy.errors import UpstreamFault
from proxy.providers.base import adapter_for


def fault(status: int, body: object, headers: dict[str, str] | None = None) -> UpstreamFault:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return adapter_for("openai_compatible").parse_error(ProviderReply(status, headers or {}, raw))


def error(message: str, **members: object) -> dict:
    return {"error": {"message": message, **members}}


@pytest.mark.parametrize(
    ("status", "kind", "told"),
    [
        (400, "request", 400),
        (413, "request", 400),
        (422, "request", 400),
        (401, "credential", 502),
        (402, "credential", 502),
        (403, "credential", 502),
        (404, "not_found", 502),
        (408, "server", 502),
        (429, "rate_limit", 429),
        (500, "server", 502),
        (503, "server", 502),
        (504, "timeout", 504),
        (529, "server", 502),
        (302, "server", 502),
    ],
)
def test_every_status_has_its_kind(status, kind, told):
    found = fault(status, error("Something."))
    assert (found.kind, found.status) == (kind, status)
    assert found.to_gateway_error().status == told


@pytest.mark.parametrize(
    "message",
    [
        "Incorrect API key provided: in***ey.",
        "Your credit balance is too low to use this API.",
        "You exceeded your current quota, please check your plan and billing details.",
        "User location is not supported for the API use.",
        "The caller does not have permission",
    ],
)
def test_a_400_about_the_operators_account_is_not_the_callers_fault(message):
    found = fault(400, error(message))
    assert found.kind == "credential"
    assert found.failover
    assert message not in found.to_gateway_error().message


@pytest.mark.parametrize("code", ["insufficient_quota", "invalid_api_key", "billing_not_active"])
def test_so_is_one_with_such_a_code(code):
    assert fault(400, error("No.", code=code)).kind == "credential"


@pytest.mark.parametrize(
    "body",
    [
        error("The model `gpt-nope` does not exist or you do not have access to it."),
        error("No.", code="model_not_found"),
        error("gpt-nope is not a valid model ID"),
        error("Invalid model: gpt-nope", param="model"),
    ],
)
def test_a_400_about_the_model_name_lets_another_target_answer(body):
    assert fault(400, body).kind == "not_found"


@pytest.mark.parametrize(
    "message",
    [
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
        "Invalid type for 'messages[0].content': expected one of a string or array of objects.",
        "'temperature' is not available.",
        "Bad request to ?key=abc.",
        "This model does not support image input.",
    ],
)
def test_a_400_about_the_request_comes_back_with_its_words(message):
    found = fault(400, error(message, param="messages[0].content"))
    assert found.kind == "request"
    told = found.to_gateway_error()
    assert (told.status, told.code, told.message, told.param) == (
        400,
        "invalid_request",
        message,
        "messages[0].content",
    )


@pytest.mark.parametrize(
    "body",
    [
        error("Too much.", code="context_length_exceeded"),
        error("This model's maximum context length is 8192 tokens."),
        error("Please shorten it.", type="too_many_prompt_tokens", code=400),
    ],
)
def test_a_prompt_that_is_too_long_has_a_code_of_its_own(body):
    assert fault(400, body).to_gateway_error().code == "context_length_exceeded"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": "In words."}, "In words."),
        ({"message": "At the top.", "object": "error", "type": "invalid"}, "At the top."),
        ({"detail": "A detail."}, "A detail."),
        ({"detail": [{"loc": ["body", "n"], "msg": "Too large", "type": "x"}]}, "body.n: Too large"),
        ({"message": {"detail": [{"loc": ["body"], "msg": "Bad"}]}}, "body: Bad"),
        ([{"error": {"message": "In a list.", "code": 400}}], "In a list."),
        (b"Plain   text\nin lines", "Plain text in lines"),
        ("Only a text", "Only a text"),
        (b"<!DOCTYPE html><html>/srv/app.py</html>", ""),
        (b'{"error": {"message": "cut', ""),
        (b"\x00\x01", ""),
        (b"", ""),
        ({"error": {}}, ""),
        ({"error": {"message": None, "param": 7}}, ""),
    ],
)
def test_the_message_is_found_in_every_shape(body, message):
    assert fault(400, body).message == message


def test_a_long_message_is_cut():
    assert len(fault(400, error("x" * 100_000)).message) == 2000


@pytest.mark.parametrize(
    ("headers", "wait_ms"),
    [({"retry-after": "2"}, 2000), ({"retry-after-ms": "150", "retry-after": "9"}, 150), ({}, None)],
)
def test_the_wait_a_provider_asks_for_is_kept(headers, wait_ms):
    assert fault(429, error("Slow down."), headers).retry_after_ms == wait_ms
    assert fault(429, error("Spent.", code="insufficient_quota")).failover
