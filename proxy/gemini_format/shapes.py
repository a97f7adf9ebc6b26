"""Words and names of Google's generateContent format, as both its requests and its answers use them.

Sources: "generateContent" and "Thought signatures" of the Gemini API's reference (ai.google.dev).
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import msgspec

from proxy.canonical import FinishReason

JSON = dict[str, Any]

#: The dialect of blocks that only this format can express; no client speaks it.
GEMINI = "gemini"

#: What decoding JSON of others may raise.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

#: The longest name of a function (characters).
MAX_NAME = 64

#: finishReason, and blockReason of a prompt -> ours. What is not listed counts as "stop".
_FINISH_REASONS: dict[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "LANGUAGE": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "JAILBREAK": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
}

#: The same as numbers, which Google's JSON has where enumerations are asked for as such.
_NUMBERS = {1: "STOP", 2: "MAX_TOKENS", 3: "SAFETY", 4: "RECITATION"}

_NAME = re.compile(rf"[a-zA-Z_][a-zA-Z0-9_.:-]{{0,{MAX_NAME - 1}}}")
_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_.:-]")


def reason(value: Any) -> str | None:
    """A finishReason or blockReason as Google spells it; None for none, and for the one that says nothing."""
    if isinstance(value, int) and not isinstance(value, bool) and value:
        return _NUMBERS.get(value, str(value))
    return value if isinstance(value, str) and value and not value.endswith("_UNSPECIFIED") else None


def finish_reason(native: str | None, *, has_calls: bool) -> FinishReason:
    """Our word for a finishReason: Google says STOP although the model calls a function."""
    found = _FINISH_REASONS.get(native or "", "stop")
    return "tool_calls" if has_calls and found == "stop" else found


def allowed_name(name: str) -> str:
    """`name` as functions may be called. The same name always gives the same, others differ."""
    if _NAME.fullmatch(name):
        return name
    clean = "_" + _NOT_ALLOWED.sub("_", name)
    return f"{clean[: MAX_NAME - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def text_of(source: Any, name: str) -> str:
    """The text that `source` has under `name`; "" when it has none."""
    value = source.get(name) if isinstance(source, dict) else None
    return value if isinstance(value, str) else ""
