"""What single vendors that speak OpenAI's chat completions refuse or call otherwise, by the host of their API.

A vendor is a row of configuration. Only one that answers 4xx to a request every other one takes has an entry here;
what they send is read without asking who they are.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

JSON = dict[str, Any]
Fit = Callable[[JSON], JSON]

#: The ids of tool calls that Mistral takes: nine letters and digits.
_SHORT_ID = re.compile(r"[A-Za-z0-9]{9}")
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

#: Members that Mistral calls otherwise.
_MISTRAL_NAMES = {"max_completion_tokens": "max_tokens", "seed": "random_seed"}
#: Members that Mistral does not know (422 extra_forbidden) and that change no answer: it always sends usage.
_MISTRAL_UNKNOWN = ("stream_options", "user")


def fit(body: JSON, base_url: str) -> JSON:
    """A chat completion request as the vendor at `base_url` takes it. `body` may be changed, its messages are not."""
    change = _change_for(base_url)
    return change(body) if change is not None else body


def takes_signatures(base_url: str) -> bool:
    """Whether the vendor is Google, whose newer models refuse calls of theirs that come back without signature."""
    host = urlsplit(base_url).hostname or ""
    return host.endswith(".googleapis.com")


def short_id(call_id: str) -> str:
    """A tool call's id as Mistral takes it: the same one for the same id, so that calls and results still match."""
    if _SHORT_ID.fullmatch(call_id):
        return call_id
    number = int.from_bytes(hashlib.sha256(call_id.encode("utf-8", "replace")).digest()[:8], "big")
    letters = []
    for _ in range(9):
        number, place = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[place])
    return "".join(letters)


def _fit_mistral(body: JSON) -> JSON:
    for name in _MISTRAL_UNKNOWN:
        body.pop(name, None)
    for name, other in _MISTRAL_NAMES.items():
        value = body.pop(name, None)
        if value is not None:
            body.setdefault(other, value)
    body["messages"] = [_with_short_ids(message) for message in map(_without_reasoning, body["messages"])]
    return body


def _with_short_ids(message: JSON) -> JSON:
    calls, result = message.get("tool_calls"), message.get("tool_call_id")
    if isinstance(result, str):
        message = message | {"tool_call_id": short_id(result)}
    if isinstance(calls, list):
        message = message | {"tool_calls": [_call_with_short_id(call) for call in calls]}
    return message


def _call_with_short_id(call: Any) -> Any:
    if isinstance(call, dict) and isinstance(call.get("id"), str):
        return call | {"id": short_id(call["id"])}
    return call


def _fit_groq(body: JSON) -> JSON:
    body["messages"] = [_without_reasoning(message) for message in body["messages"]]
    return body


def _without_reasoning(message: JSON) -> JSON:
    """Refused as an unknown property; reasoning is not taken back under this name."""
    if "reasoning_content" not in message:
        return message
    return {name: value for name, value in message.items() if name != "reasoning_content"}


#: Domain of the API -> what to change.
_VENDORS: dict[str, Fit] = {"mistral.ai": _fit_mistral, "groq.com": _fit_groq}


@lru_cache(maxsize=256)
def _change_for(base_url: str) -> Fit | None:
    host = urlsplit(base_url).hostname or ""
    return next((change for name, change in _VENDORS.items() if host == name or host.endswith(f".{name}")), None)
