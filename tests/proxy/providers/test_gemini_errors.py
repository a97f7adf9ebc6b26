"""What Google's errors mean."""

import json

import pytest

from proxy.errors import UpstreamFault
from proxy.gemini_format.errors import fault_of_error
from proxy.providers.gemini import GeminiAdapter
from tests.proxy.gemini_wire import reply

TYPE = "type.googleapis.com/google.rpc."


def error(code: int, message: str, status: str = "", *details: dict) -> dict:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


def fault_of(content, status: int, **headers: str) -> UpstreamFault:
    return GeminiAdapter().parse_error(reply(content, status, **headers))


@pytest.mark.parametrize(
    ("status", "message", "kind", "code"),
    [
        (400, "Invalid value at 'contents[0].role'", "request", None),
        (400, "API key not valid. Please pass a valid API key.", "credential", None),
        (400, "API key expired. Please renew the API key.", "credential", None),
        (400, "User location is not supported for the API use.", "credential", None),
        (400, "Please enable billing on your project.", "credential", None),
        (400, "The input token count exceeds the maximum number of tokens allowed (1048576).", "request", "long"),
        (400, "The input token count (9) exceeds the maximum number of tokens allowed (8).", "request", "long"),
        (
            400,
            "models/x is not found for API version v1beta, or is not supported for generateContent.",
            "not_found",
            None,
        ),
        (401, "Request had invalid authentication credentials.", "credential", None),
        (403, "Permission denied on resource", "credential", None),
        (404, "models/x is not found for API version v1beta", "not_found", None),
        (429, "Resource has been exhausted (e.g. check quota).", "rate_limit", None),
        (499, "The operation was cancelled.", "server", None),
        (500, "An internal error has occurred.", "server", None),
        (503, "The model is overloaded. Please try again later.", "server", None),
        (504, "Deadline expired before operation could complete.", "timeout", None),
    ],
)
@pytest.mark.parametrize("listed", [True, False])
def test_errors_by_status_and_words(status, message, kind, code, listed):
    content = error(status, message)
    fault = fault_of([content] if listed else content, status)
    assert (fault.kind, fault.status, fault.message) == (kind, status, message)
    assert fault.code == ("context_length_exceeded" if code else None)


@pytest.mark.parametrize(
    "reason", ["API_KEY_INVALID", "API_KEY_SERVICE_BLOCKED", "BILLING_DISABLED", "SERVICE_DISABLED"]
)
def test_a_reason_about_the_account_is_the_operators(reason):
    info = {"@type": TYPE + "ErrorInfo", "reason": reason, "domain": "googleapis.com"}
    assert fault_of(error(400, "Bad request.", "INVALID_ARGUMENT", info), 400).kind == "credential"


def test_details_are_never_passed_on():
    debug = {"@type": TYPE + "DebugInfo", "detail": "Invalid API key: AIzaSECRET"}
    assert "AIza" not in fault_of(error(400, "Bad.", "INVALID_ARGUMENT", debug), 400).message


# ---------------------------------------------------------------- how long to wait


@pytest.mark.parametrize(
    ("delay", "wait"),
    [("13s", 13_000), ("1.5s", 1500), ("0s", 0), ("0.1234567s", 123), ("", None), ("soon", None), (7, None)],
)
def test_the_delay_google_asks_for(delay, wait):
    quota = {"@type": TYPE + "QuotaFailure", "violations": []}
    info = {"@type": TYPE + "RetryInfo", "retryDelay": delay}
    fault = fault_of(error(429, "Slow down.", "RESOURCE_EXHAUSTED", quota, info), 429)
    assert (fault.kind, fault.retry_after_ms) == ("rate_limit", wait)


def test_a_delay_in_the_words_and_one_in_a_header():
    assert fault_of(error(429, "Quota exceeded.\nPlease retry in 22.375817872s."), 429).retry_after_ms == 22_375
    assert fault_of(error(429, "Slow down."), 429, **{"retry-after": "7"}).retry_after_ms == 7000
    info = {"@type": TYPE + "RetryInfo", "retryDelay": "3s"}
    told = fault_of(error(429, "Please retry in 9s.", "", info), 429, **{"retry-after": "7"})
    assert told.retry_after_ms == 3000


def test_a_delay_of_days_is_not_waited_for():
    info = {"@type": TYPE + "RetryInfo", "retryDelay": "999999s"}
    assert fault_of(error(429, "Slow down.", "", info), 429).retry_after_ms is None


# ---------------------------------------------------------------- other shapes


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", ""),
        (b"upstream connect error", "upstream connect error"),
        (b"<!DOCTYPE html><title>Error 502</title>", ""),
        (b"{", ""),
        (b"[" * 100_000, ""),
        (b"\x00\xff", ""),
        (b"[]", ""),
        (b"7", ""),
        (b'"told"', "told"),
        (b'{"error": "told"}', "told"),
        (b'{"error": 7}', ""),
        (b'{"error": {"message": 7, "details": 7}}', ""),
        (b'{"error": {"details": [7, {"retryDelay": null}]}}', ""),
        (b'{"message": "told"}', "told"),
        (json.dumps(error(502, "x" * 9000)).encode(), "x" * 2000),
    ],
)
def test_bodies_that_are_no_error_objects(body, message):
    fault = fault_of(body, 502)
    assert (fault.kind, fault.message) == ("server", message)


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        ({"code": 400, "message": "API key not valid."}, "credential"),
        ({"code": 8, "status": "RESOURCE_EXHAUSTED"}, "rate_limit"),
        ({"status": "INVALID_ARGUMENT"}, "request"),
        ({"status": "DEADLINE_EXCEEDED"}, "timeout"),
        ({"status": "CANCELLED"}, "server"),
        ({"status": "NEW_ONE"}, "server"),
        ({}, "server"),
        ("told", "server"),
        (7, "server"),
    ],
)
def test_errors_inside_a_200_go_by_their_own_code_or_status(found, kind):
    fault = fault_of_error(found)
    assert (fault.kind, fault.status) == (kind, 200)
    assert fault.message == (
        found if isinstance(found, str) else found.get("message", "") if isinstance(found, dict) else ""
    )
