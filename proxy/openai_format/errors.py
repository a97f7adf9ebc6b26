"""What an OpenAI-style provider's error means: JSON of several shapes, plain text, HTML or nothing at all."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from proxy.context import ProviderReply
from proxy.errors import UpstreamFault
from proxy.providers.base import fault_from_status, retry_after_ms

JSON = dict[str, Any]

#: The most of a provider's words that is kept (characters).
MAX_MESSAGE = 2000

CONTEXT_LENGTH = "context_length_exceeded"

#: A 400 that complains about the operator's account, in words or by code: another provider may do.
_OPERATOR = re.compile(
    r"api[ _-]?key|credential|billing|credit balance|(insufficient|not enough|no) (credits?|balance|funds|quota)"
    r"|exceeded your (current )?quota|account (is|has been) (not active|disabled|deactivated|suspended)"
    r"|permission denied|(not have|lacks?|without) (the )?(\w+ )?permission|(location|region|country) is not supported",
    re.IGNORECASE,
)
_OPERATOR_CODES = frozenset(
    (
        "account_deactivated",
        "billing_hard_limit_reached",
        "billing_not_active",
        "insufficient_quota",
        "invalid_api_key",
        "invalid_organization",
    )
)
_MODEL = re.compile(
    r"\b(model|deployment|identifier)\b.{0,80}?(not exist|not found|not available|no longer|is invalid|is not valid"
    r"|is not a valid model|decommissioned)|(unknown|invalid|no such) model\b|not a valid model",
    re.IGNORECASE | re.DOTALL,
)
_MODEL_CODES = frozenset(("model_not_found", "invalid_model", "DeploymentNotFound", "model_decommissioned"))
_TOO_LONG = re.compile(
    r"maximum context length|context (length|window)|prompt is too long|too many (prompt|input) tokens"
    r"|too_many_prompt_tokens|length of all messages is too long",
    re.IGNORECASE,
)
#: Words of `type` or `code` -> the status they stand for, when the provider answered 200 (in a stream, say).
_STATUS_WORDS = (
    ("rate_limit", 429),
    ("insufficient_quota", 429),
    ("authentication", 401),
    ("permission", 403),
    ("invalid_api_key", 401),
    ("not_found", 404),
    ("invalid_request", 400),
    ("context_length", 400),
    ("content_filter", 400),
    ("overloaded", 529),
    ("server_error", 500),
    ("timeout", 504),
)


class _Words(msgspec.Struct):
    """An error as the provider told it."""

    message: str = ""
    code: str = ""
    type: str = ""
    param: str | None = None
    number: int | None = None  # an HTTP status inside the error


def fault_of_reply(reply: ProviderReply) -> UpstreamFault:
    """What a non-2xx answer means."""
    return _fault(_words_of_body(reply.body), reply.status, reply.status, retry_after_ms(reply.headers))


def fault_of_error(error: Any) -> UpstreamFault:
    """What an error inside a 200 means: by its own code or type, else a breach of protocol."""
    words = _words_of(error)
    status = words.number or _status_by_words(words)
    if status is None:
        return UpstreamFault("protocol", words.message, status=200)
    return _fault(words, status, 200, None)


def _fault(words: _Words, meaning: int, status: int, wait_ms: int | None) -> UpstreamFault:
    """`meaning` is the status that decides, `status` the one the provider answered with."""
    fault = fault_from_status(meaning, words.message, retry_after_ms=wait_ms, param=words.param)
    fault.status = status
    if fault.kind == "request":
        _refine(fault, words)
    return fault


def _refine(fault: UpstreamFault, words: _Words) -> None:
    if words.code == "content_filter":  # Azure's verdict on the prompt
        return
    if words.code in _OPERATOR_CODES or _OPERATOR.search(words.message):
        fault.kind = "credential"
    elif words.code == CONTEXT_LENGTH or words.type == CONTEXT_LENGTH or _too_long(words):
        fault.code = CONTEXT_LENGTH
    elif words.code in _MODEL_CODES or (words.param in (None, "model") and _MODEL.search(words.message)):
        fault.kind = "not_found"


def _too_long(words: _Words) -> bool:
    return bool(_TOO_LONG.search(words.message) or _TOO_LONG.search(words.type))


def _status_by_words(words: _Words) -> int | None:
    text = f"{words.type} {words.code}".lower()
    return next((status for word, status in _STATUS_WORDS if word in text), None)


def _words_of_body(body: bytes) -> _Words:
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Words(message=_plain_text(body))
    if isinstance(document, list) and document:
        document = document[0]  # Google's way
    if not isinstance(document, dict):
        return _Words(message=_clip(document))
    error = document.get("error")
    if isinstance(error, (dict, str)) and error:
        return _words_of(error)
    return _words_of(document)


def _words_of(error: Any) -> _Words:
    if not isinstance(error, dict):
        return _Words(message=_clip(error))
    message = error.get("message") or error.get("detail") or error.get("error") or error.get("msg")
    param = error.get("param")
    return _Words(
        message=_clip(message),
        code=str(error.get("code") or ""),
        type=str(error.get("type") or ""),
        param=param if isinstance(param, str) and len(param) <= 200 else None,
        number=_http_status(error),
    )


def _http_status(error: JSON) -> int | None:
    for name in ("status_code", "code", "status"):
        value = error.get(name)
        if isinstance(value, str) and value.isdecimal() and len(value) == 3:
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
            return value
    return None


def _clip(message: Any) -> str:
    """Whatever stands for a message, as text."""
    if message is None:
        return ""
    if isinstance(message, dict):
        message = message.get("message") or message.get("detail") or json.dumps(message)
    if isinstance(message, list):
        message = "; ".join(_validation_error(item) for item in message[:5])
    return str(message)[:MAX_MESSAGE]


def _validation_error(item: Any) -> str:
    """One of pydantic's errors, as FastAPI servers send them."""
    if isinstance(item, dict) and "msg" in item:
        place = ".".join(str(step) for step in item.get("loc") or ())
        return f"{place}: {item['msg']}" if place else str(item["msg"])
    return str(item)


def _plain_text(body: bytes) -> str:
    """A message that is not JSON; a page of HTML says nothing that a caller should read."""
    text = " ".join(body[:MAX_MESSAGE].decode("utf-8", "replace").split())
    return "" if text.startswith(("<", "{", "[")) or "\x00" in text else text[:500]
