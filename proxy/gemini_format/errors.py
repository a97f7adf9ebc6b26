"""What an error of Google's APIs means: its own object (alone, or in a list), what stands before it (HTML, plain text).

Source: "Troubleshooting" of the Gemini API, and google.rpc.Status with its details ErrorInfo and RetryInfo.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from proxy.context import ProviderReply
from proxy.errors import UpstreamFault
from proxy.gemini_format.shapes import UNREADABLE, text_of
from proxy.providers.base import fault_from_status, retry_after_ms

JSON = dict[str, Any]

#: The most of a provider's words that is kept (characters).
MAX_MESSAGE = 2000

CONTEXT_LENGTH = "context_length_exceeded"

#: error.status -> the HTTP status it stands for (google.rpc.Code).
_STATUSES = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}

#: A 400 that complains about the operator's account: another provider may do.
_OPERATOR = re.compile(
    r"api[ _-]?key|billing|(location|region|country) is not supported|free tier is not available"
    r"|(project|account|consumer) .{0,80}(suspended|disabled|denied|not been used)",
    re.IGNORECASE,
)
_OPERATOR_REASONS = re.compile(r"API_KEY_|BILLING_|CONSUMER_|SERVICE_DISABLED|ACCESS_TOKEN_|CREDENTIALS_")
_MODEL = re.compile(
    r"\bmodels?\b.{0,120}?(is not found|not found|not supported for|does not exist)", re.IGNORECASE | re.DOTALL
)
_TOO_LONG = re.compile(
    r"(input )?token count .{0,40}exceeds|exceeds the maximum number of (input )?tokens|context (length|window)",
    re.IGNORECASE,
)

_DELAY = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)s")
_RETRY_IN = re.compile(r"retry in (\d{1,6}(?:\.\d{1,9})?)s", re.IGNORECASE)


def fault_of_reply(reply: ProviderReply) -> UpstreamFault:
    """What a non-2xx answer means."""
    error = _error_of_body(reply.body)
    message = _message(error) if isinstance(error, dict) else error
    return _fault(error, message, reply.status, reply.status, retry_after_ms(reply.headers))


def fault_of_error(error: Any) -> UpstreamFault:
    """What an error inside a 200 means: by its code or status, else a failure of the provider."""
    code = error.get("code") if isinstance(error, dict) else None
    meaning = code if isinstance(code, int) and 400 <= code < 600 else _STATUSES.get(text_of(error, "status"), 500)
    message = error[:MAX_MESSAGE] if isinstance(error, str) else _message(error)
    return _fault(error, message, meaning, 200, None)


def _fault(error: Any, message: str, meaning: int, status: int, wait_ms: int | None) -> UpstreamFault:
    """`meaning` is the status that decides, `status` the one the provider answered with."""
    told = _retry_delay_ms(error, message)
    fault = fault_from_status(meaning, message, retry_after_ms=wait_ms if told is None else told)
    fault.status = status
    if fault.kind == "request":
        if _OPERATOR.search(message) or _OPERATOR_REASONS.search(_reasons(error)):
            fault.kind = "credential"
        elif _TOO_LONG.search(message):
            fault.code = CONTEXT_LENGTH
        elif _MODEL.search(message):
            fault.kind = "not_found"
    return fault


def _retry_delay_ms(error: Any, message: str) -> int | None:
    """RetryInfo.retryDelay ("13s", "1.5s"), or the wait that the message names; None when neither does."""
    delays = (_DELAY.fullmatch(text_of(detail, "retryDelay")) for detail in _details(error))
    found = next((delay for delay in delays if delay), None) or _RETRY_IN.search(message)
    wait = int(float(found[1]) * 1000) if found else None
    return wait if wait is None or wait < 86_400_000 else None


def _reasons(error: Any) -> str:
    return " ".join(text_of(detail, "reason") for detail in _details(error))


def _details(error: Any) -> list[Any]:
    details = error.get("details") if isinstance(error, dict) else None
    return details if isinstance(details, list) else []


def _error_of_body(body: bytes) -> Any:
    """The error object, or what else there is as a text."""
    try:
        document = msgspec.json.decode(body)
    except UNREADABLE:
        return _plain_text(body)
    if isinstance(document, list) and document:
        document = document[0]
    if isinstance(document, dict) and document.get("error"):
        document = document["error"]
    if isinstance(document, dict):
        return document
    return document[:MAX_MESSAGE] if isinstance(document, str) else ""


def _message(error: Any) -> str:
    return (text_of(error, "message") or text_of(error, "error_description"))[:MAX_MESSAGE]


def _plain_text(body: bytes) -> str:
    """A message that is not JSON; a page of HTML says nothing that a caller should read."""
    text = " ".join(body[:MAX_MESSAGE].decode("utf-8", "replace").split())
    return "" if text.startswith(("<", "{", "[")) or "\x00" in text else text[:500]
