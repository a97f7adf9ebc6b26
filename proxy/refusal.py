"""Refusals that explain themselves: which limit, how much of it is used, when it could pass."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from billing.money import nano_to_text
from proxy.admission_rules import CODES
from proxy.errors import GatewayError, PaymentRequired, RateLimited, Unauthenticated
from proxy.limit_headers import rate_headers
from proxy.reservation import LimitState

#: What a caller is told to wait for a free place among its running requests: their deadlines are far later than their
#: usual end.
PLACE_MS = 1000
#: Retry-After of a request that no waiting helps: a window, so that clients which insist do so rarely.
NEVER_MS = 60_000

#: admit.lua's answer for a request that alone is larger than a limit.
NEVER = -1

_OWNERS = {"user": "this user", "key": "this key", "tenant": "this tenant"}
_UNITS = {"requests": "requests", "tokens": "tokens", "concurrency": "requests at once", "quota": "tokens"}


def revoked() -> GatewayError:
    """The key was revoked moments ago. The body is that of every refused key (see proxy.authenticate)."""
    return Unauthenticated("Invalid API key.")


def refusal(place: int, wait_ms: int, states: list[LimitState], now_ms: int) -> GatewayError:
    """The error for rule number `place`. `wait_ms` as admit.lua gives it: negative when no waiting helps."""
    state = states[place]
    never = wait_ms == NEVER
    told_ms = PLACE_MS if state.kind == "concurrency" else None if wait_ms < 0 else max(wait_ms, 1)
    details = _details(state, state.resets_at_ms if wait_ms < 0 else now_ms + wait_ms)
    message = f"{_sentence(state, details)} {_advice(never, told_ms)}"
    code = CODES[state.kind]
    if state.kind in ("quota", "budget"):
        return PaymentRequired(message, code=code, details=details, retry_after_ms=told_ms)
    error = RateLimited(message, code=code, details=details, retry_after_ms=NEVER_MS if told_ms is None else told_ms)
    if never:
        error.should_retry = False
    reset = error.retry_after_ms if state.resets_in_ms is not None else None
    violated = msgspec.structs.replace(state, resets_in_ms=reset)
    error.headers.update((name.decode(), value.decode()) for name, value in rate_headers(states, violated))
    return error


def _details(state: LimitState, resets_at_ms: int | None) -> dict[str, Any]:
    limit: int | str = state.limit
    used: int | str = state.used
    if state.kind == "budget":
        limit, used = nano_to_text(state.limit), nano_to_text(state.used)
    details: dict[str, Any] = {"scope": state.scope, "limit": limit, "used": used, "window": state.window}
    if state.kind in ("quota", "budget"):
        details["reserved"] = nano_to_text(state.reserved) if state.kind == "budget" else state.reserved
    details["resets_at"] = None if resets_at_ms is None else _iso(resets_at_ms)
    return details


def _sentence(state: LimitState, details: dict[str, Any]) -> str:
    owner = _OWNERS[state.scope]
    if state.kind == "concurrency":
        return f"The limit of {state.limit} requests at once for {owner} is reached."
    every = "in total" if state.window == "total" else f"per {state.window}"
    if state.kind == "budget":
        return f"The budget of {details['limit']} USD {every} for {owner} does not cover this request."
    return f"The limit of {state.limit} {_UNITS[state.kind]} {every} for {owner} is reached."


def _advice(never: bool, told_ms: int | None) -> str:
    if never:
        return "This request alone is larger than that: it can never pass."
    return "It does not reset." if told_ms is None else f"Try again in {-(-told_ms // 1000)} s."


def _iso(epoch_ms: int) -> str:
    seconds, ms = divmod(epoch_ms, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{ms:03d}Z"
