"""What Anthropic's errors mean."""

import json

import pytest

from proxy.context import ProviderReply
from proxy.providers.anthropic import AnthropicAdapter


def fault(status: int, body, headers: dict[str, str] | None = None):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return AnthropicAdapter().parse_error(ProviderReply(status, headers or {}, raw))


def error(kind: str, message: str) -> dict:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_x"}


@pytest.mark.parametrize(
    ("status", "kind", "message", "meaning"),
    [
        (400, "invalid_request_error", "messages: at least one message is required", "request"),
        (413, "request_too_large", "Request exceeds the maximum size", "request"),
        (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API.", "credential"),
        (400, "invalid_request_error", "This organization has been disabled.", "credential"),
        (400, "invalid_request_error", "You have reached your specified API usage limits.", "credential"),
        (400, "invalid_request_error", "model: claude-9 is not available", "not_found"),
        (401, "authentication_error", "invalid x-api-key", "credential"),
        (402, "billing_error", "pay", "credential"),
        (403, "permission_error", "no", "credential"),
        (404, "not_found_error", "model: there-is-no-such-model", "not_found"),
        (429, "rate_limit_error", "slow down", "rate_limit"),
        (500, "api_error", "Internal server error", "server"),
        (503, "api_error", "no", "server"),
        (504, "timeout_error", "too late", "timeout"),
        (529, "overloaded_error", "Overloaded", "server"),
    ],
)
def test_the_meaning_of_an_error(status, kind, message, meaning):
    found = fault(status, error(kind, message))
    assert (found.kind, found.status, found.message, found.code) == (meaning, status, message, None)


@pytest.mark.parametrize(
    "message",
    [
        "prompt is too long: 300000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    ],
)
def test_a_prompt_that_is_too_long_has_a_code_of_its_own(message):
    found = fault(400, error("invalid_request_error", message))
    assert (found.kind, found.code, found.message) == ("request", "context_length_exceeded", message)


def test_the_wait_that_was_asked_for():
    assert fault(429, error("rate_limit_error", "x"), {"retry-after": "7"}).retry_after_ms == 7000


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", ""),
        (b"<html><body>/app/secret.py</body></html>", ""),
        (b"upstream connect error", "upstream connect error"),
        (b'{"cut', ""),
        ({"error": "plain words"}, "plain words"),
        ({"message": "top level"}, "top level"),
        ({"detail": "a gateway's"}, "a gateway's"),
        ({"error": {"type": 7, "message": ["x"]}}, ""),
        ([1], ""),
        (b"[" * 100_000, ""),
        (error("api_error", "x" * 5000), "x" * 2000),
    ],
)
def test_whatever_an_error_looks_like_it_has_a_message(body, message):
    found = fault(502, body)
    assert (found.kind, found.message) == ("server", message)
