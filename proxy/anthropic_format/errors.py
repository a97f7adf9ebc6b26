"""What an error of Anthropic's API means: its own envelope, what stands before it (HTML, plain text), or nothing."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from proxy.anthropic_format.shapes import UNREADABLE
from proxy.context import ProviderReply
from proxy.errors import UpstreamFault
from proxy.providers.base import fault_from_status, retry_after_ms

#: The most of a provider's words that is kept (characters).
MAX_MESSAGE = 2000

CONTEXT_LENGTH = "context_length_exceeded"

#: error.type -> the status it stands for when the provider answered 200 (in a stream, say).
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}

#: A 400 that complains about the operator's account: another provider may do.
_OPERATOR = re.compile(
    r"credit balance|billing|api[ _-]?key|(usage|spend|spending) limits?|"
    r"(organization|workspace|account) (has been|is) (disabled|deactivated|suspended|on hold)",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"prompt is too long|context (length|window|limit)|too many (prompt|input) tokens", re.IGNORECASE
)
_MODEL = re.compile(r"^model:|\bmodel\b.{0,80}?(not found|does not exist|not available)", re.IGNORECASE | re.DOTALL)


def fault_of_reply(reply: ProviderReply) -> UpstreamFault:
    """What a non-2xx answer means."""
    _, message = _words_of_body(reply.body)
    return _fault(reply.status, reply.status, message, retry_after_ms(reply.headers))


def fault_of_error(error: Any) -> UpstreamFault:
    """What an error inside a 200 means: by its type, else a failure of the provider."""
    kind, message = _words_of(error)
    return _fault(_STATUSES.get(kind, 500), 200, message, None)


def _fault(meaning: int, status: int, message: str, wait_ms: int | None) -> UpstreamFault:
    """`meaning` is the status that decides, `status` the one the provider answered with."""
    fault = fault_from_status(meaning, message, retry_after_ms=wait_ms)
    fault.status = status
    if fault.kind == "request":
        if _OPERATOR.search(message):
            fault.kind = "credential"
        elif _TOO_LONG.search(message):
            fault.code = CONTEXT_LENGTH
        elif _MODEL.search(message):
            fault.kind = "not_found"
    return fault


def _words_of_body(body: bytes) -> tuple[str, str]:
    try:
        document = msgspec.json.decode(body)
    except UNREADABLE:
        return "", _plain_text(body)
    if isinstance(document, dict) and document.get("error"):
        return _words_of(document["error"])
    return _words_of(document)


def _words_of(error: Any) -> tuple[str, str]:
    """The type and the message of an error."""
    if not isinstance(error, dict):
        return "", error[:MAX_MESSAGE] if isinstance(error, str) else ""
    kind, message = error.get("type"), error.get("message") or error.get("detail")
    return kind if isinstance(kind, str) else "", message[:MAX_MESSAGE] if isinstance(message, str) else ""


def _plain_text(body: bytes) -> str:
    """A message that is not JSON; a page of HTML says nothing that a caller should read."""
    text = " ".join(body[:MAX_MESSAGE].decode("utf-8", "replace").split())
    return "" if text.startswith(("<", "{", "[")) or "\x00" in text else text[:500]
