"""What an error of Bedrock means: by the name of its exception, which stands in a header or in the body.

Sources: the error pages of Converse and ConverseStream, "Common error types" of the API reference, and the service
model in botocore.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from proxy.bedrock_format.shapes import UNREADABLE
from proxy.context import ProviderReply
from proxy.errors import UpstreamFault
from proxy.providers.base import fault_from_status, retry_after_ms

JSON = dict[str, Any]

#: The most of a provider's words that is kept (characters).
MAX_MESSAGE = 2000

CONTEXT_LENGTH = "context_length_exceeded"

#: The exception, without its ending, in lower case -> the status it stands for.
_STATUSES = {
    "validation": 400,
    "serialization": 400,
    "unrecognizedclient": 401,
    "invalidsignature": 401,
    "signaturedoesnotmatch": 401,
    "invalidclienttokenid": 401,
    "incompletesignature": 401,
    "missingauthenticationtoken": 401,
    "expiredtoken": 401,
    "requestexpired": 401,
    "optinrequired": 401,
    "notauthorized": 401,
    "accessdenied": 403,
    "resourcenotfound": 404,
    "unknownoperation": 404,
    "modeltimeout": 408,
    "modelerror": 500,
    "modelstreamerror": 500,
    "throttling": 429,
    "throttled": 429,
    "toomanyrequests": 429,
    "requestlimitexceeded": 429,
    "servicequotaexceeded": 429,
    "modelnotready": 429,
    "internalserver": 500,
    "internalfailure": 500,
    "serviceunavailable": 503,
}

_ENDING = re.compile(r"(exception|error)$", re.IGNORECASE)

#: A ValidationException about what only the operator can change.
_OPERATOR = re.compile(
    r"operation not allowed|(don.t|do not|does not|doesn.t) have access|access to (this|the) model|not authorized"
    r"|use case details|security token|marketplace|payment|billing",
    re.IGNORECASE,
)
_MODEL = re.compile(
    r"model identifier is invalid|on-demand throughput isn.t supported|support on-demand throughput|end of its life"
    r"|\b(model|inference profile|provisioned throughput)\b.{0,80}?"
    r"(not found|not exist|not available|supported in this region)",
    re.IGNORECASE | re.DOTALL,
)
_TOO_LONG = re.compile(
    r"input is too long|input tokens exceeded|number of input tokens exceeds|too many (input |prompt |total )?tokens"
    r"|prompt is too long|maximum context length|context (length|window|limit)|input length",
    re.IGNORECASE,
)


def fault_of_reply(reply: ProviderReply) -> UpstreamFault:
    """What a non-2xx answer means."""
    name, message = _words_of_body(reply.body)
    name = reply.headers.get("x-amzn-errortype") or name
    return _fault(name, message, reply.status, retry_after_ms(reply.headers))


def fault_of_exception(name: str, payload: bytes, message: str = "") -> UpstreamFault:
    """What an exception inside a 200 means; one whose name nobody knows is a failure of the provider."""
    own_name, own_message = _words_of_body(payload)
    fault = _fault(name or own_name, message[:MAX_MESSAGE] or own_message, 500, None)
    fault.status = 200
    return fault


def _fault(name: str, message: str, status: int, wait_ms: int | None) -> UpstreamFault:
    meaning = _STATUSES.get(_bare(name), status)
    fault = fault_from_status(meaning, message, retry_after_ms=wait_ms)
    fault.status = status
    if fault.kind == "request":
        if _OPERATOR.search(message):
            fault.kind = "credential"
        elif _MODEL.search(message):
            fault.kind = "not_found"
        elif _TOO_LONG.search(message):
            fault.code = CONTEXT_LENGTH
    return fault


def _bare(name: str) -> str:
    """ThrottlingException:http://internal…, com.amazon.coral#ThrottlingException, throttlingException -> throttling."""
    return _ENDING.sub("", name.split(":", maxsplit=1)[0].rpartition("#")[2].strip()).lower()


def _words_of_body(body: bytes) -> tuple[str, str]:
    """The exception's name, where the body has it, and its message."""
    try:
        document = msgspec.json.decode(body)
    except UNREADABLE:
        return "", _plain_text(body)
    if isinstance(document, dict) and isinstance(document.get("Output"), dict):
        document = document["Output"]  # what the front of an AWS service says of a path it does not know
    if not isinstance(document, dict):
        return "", document[:MAX_MESSAGE] if isinstance(document, str) else ""
    return _member(document, "__type", "code"), _member(document, "message", "Message", "errorMessage")[:MAX_MESSAGE]


def _member(document: JSON, *names: str) -> str:
    return next((value for name in names if isinstance(value := document.get(name), str) and value), "")


def _plain_text(body: bytes) -> str:
    """A message that is not JSON; a page of HTML says nothing that a caller should read."""
    text = " ".join(body[:MAX_MESSAGE].decode("utf-8", "replace").split())
    return "" if text.startswith(("<", "{", "[")) or "\x00" in text else text[:500]
