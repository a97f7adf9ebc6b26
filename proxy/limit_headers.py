"""The limits that an answer tells: OpenAI's x-ratelimit-* family, the plain X-RateLimit-* one, the IETF's two fields.

RateLimit-Policy and RateLimit follow draft-ietf-httpapi-ratelimit-headers-10: one item a request or concurrency limit
(tokens have no registered unit). Only rates are told; quotas and budgets are read at /v1/limits.
"""

from __future__ import annotations

from proxy.reservation import LimitState

Header = tuple[bytes, bytes]

_TOLD = {"requests": "rpm", "concurrency": "concurrency"}


def rate_headers(states: list[LimitState], violated: LimitState | None = None) -> list[Header]:
    """Header pairs for `states`.

    On a refusal `violated` is its limit, resetting when the request could pass: only that one then has a RateLimit
    item, so that no reset told there is later than Retry-After.
    """
    headers: list[Header] = []
    requests = _tightest(states, "requests")
    if requests is not None:
        headers += (
            (b"x-ratelimit-limit", b"%d" % requests.limit),
            (b"x-ratelimit-remaining", b"%d" % requests.remaining),
            (b"x-ratelimit-reset", b"%d" % -(-(requests.resets_in_ms or 0) // 1000)),
        )
        headers += _family(b"requests", requests)
    tokens = _tightest(states, "tokens")
    if tokens is not None:
        headers += _family(b"tokens", tokens)
    policies: dict[tuple[str, str], LimitState] = {}
    for state in states:
        known = policies.get((state.scope, state.kind))
        if state.kind in _TOLD and (known is None or state.remaining < known.remaining):
            policies[state.scope, state.kind] = state
    if policies:
        headers.append((b"ratelimit-policy", ", ".join(map(_policy, policies.values())).encode()))
        told = policies.values() if violated is None else [violated]
        items = [_item(state) for state in told if state.kind in _TOLD]
        if items:
            headers.append((b"ratelimit", ", ".join(items).encode()))
    return headers


def duration(ms: int) -> bytes:
    """As OpenAI writes it: 12ms, 8.64s, 6m0s."""
    if ms < 1000:
        return b"%dms" % ms
    if ms < 60_000:
        return f"{ms / 1000:.3f}".rstrip("0").rstrip(".").encode() + b"s"
    return b"%dm%ds" % divmod(-(-ms // 1000), 60)


def _tightest(states: list[LimitState], kind: str) -> LimitState | None:
    found: LimitState | None = None
    for state in states:
        if state.kind == kind and (
            found is None
            or state.remaining < found.remaining
            or (state.remaining == found.remaining and state.limit < found.limit)
        ):
            found = state
    return found


def _family(unit: bytes, state: LimitState) -> tuple[Header, Header, Header]:
    return (
        (b"x-ratelimit-limit-" + unit, b"%d" % state.limit),
        (b"x-ratelimit-remaining-" + unit, b"%d" % state.remaining),
        (b"x-ratelimit-reset-" + unit, duration(state.resets_in_ms or 0)),
    )


def _policy(state: LimitState) -> str:
    if state.kind == "concurrency":
        return f'"{state.scope}-concurrency";q={state.limit};qu="concurrent-requests"'
    return f'"{state.scope}-rpm";q={state.limit};w=60'


def _item(state: LimitState) -> str:
    item = f'"{state.scope}-{_TOLD[state.kind]}";r={state.remaining}'
    return item if state.resets_in_ms is None else f"{item};t={-(-state.resets_in_ms // 1000)}"
