"""Shapes of OpenAI's Responses API that both its client dialect and its provider adapters write or read.

What other providers sign travels in `encrypted_content` of a reasoning item, as OpenAI's own encrypted reasoning does:
every client of this API sends those items back unchanged. Ours is `tollbar.` and base64url of a JSON object with
`signature` or `redacted` of thinking, or with `call` and `signature` of the tool call that follows.
Fields: https://platform.openai.com/docs/api-reference/responses
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

import msgspec

from proxy.canonical import Thinking, ToolCall, Usage
from proxy.providers.base import token_count
from proxy.sse import frame

JSON = dict[str, Any]

_MARK = "tollbar."
_BASE64URL = re.compile(r"[A-Za-z0-9_-]*={0,2}")

_encode = msgspec.json.encode


class Sealed(msgspec.Struct, omit_defaults=True):
    """What an `encrypted_content` of ours holds."""

    signature: str | None = None
    redacted: str | None = None
    call: str | None = None  # id of the call that `signature` belongs to


def sealed_thinking(block: Thinking) -> str:
    """`encrypted_content` of the reasoning item that stands for `block`."""
    return _seal(Sealed(signature=block.signature, redacted=block.redacted))


def sealed_signature(call: ToolCall) -> str:
    """`encrypted_content` of the reasoning item before a signed call."""
    return _seal(Sealed(signature=call.signature, call=call.id))


def _seal(content: Sealed) -> str:
    return _MARK + base64.urlsafe_b64encode(_encode(content)).decode()


def is_sealed(content: Any) -> bool:
    """Whether the gateway wrote this `encrypted_content`: a provider could not read it."""
    return isinstance(content, str) and content.startswith(_MARK)


def unsealed(content: str) -> Sealed:
    """What `is_sealed` content holds. Raises ValueError when it was changed on its way."""
    text = content[len(_MARK) :]
    if not _BASE64URL.fullmatch(text):
        raise ValueError("not base64url")
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text), type=Sealed)
    except (binascii.Error, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError("not what was written") from error


def usage_object(usage: Usage) -> JSON:
    """`usage` of a response: input tokens include cached ones, output tokens reasoning."""
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def read_usage(source: Any) -> Usage | None:
    """Token counts in one meaning; None when there are none or they are nonsense (negative, huge, texts)."""
    if not isinstance(source, dict):
        return None
    input_details, output_details = source.get("input_tokens_details"), source.get("output_tokens_details")
    try:
        taken, given = token_count(source, "input_tokens"), token_count(source, "output_tokens")
        read = token_count(input_details, "cached_tokens") or 0
        write = token_count(input_details, "cache_write_tokens") or 0
        reasoning = token_count(output_details, "reasoning_tokens") or 0
    except ValueError:
        return None
    if taken is None and given is None:
        return None
    taken = taken or 0
    read = min(read, taken)
    return Usage(
        input_tokens=taken,
        output_tokens=given or 0,
        cache_read_tokens=read,
        cache_write_tokens=min(write, taken - read),
        reasoning_tokens=reasoning,
    )


def error_frame(message: str, code: str, type_: str, request_id: str, number: int) -> bytes:
    """The event that ends a broken stream: flat as documented, and with `error`, by which OpenAI's SDKs know it."""
    error = {"message": message, "type": type_, "param": None, "code": code, "details": None}
    flat = {"type": "error", "code": code, "message": message, "param": None, "sequence_number": number}
    return frame(_encode(flat | {"error": error, "request_id": request_id}), "error")
