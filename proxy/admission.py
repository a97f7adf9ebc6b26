"""Admission: one script call that checks every limit of a caller and takes from all of them, or from none.

When the store is away the failure policies decide: rates fall back to this worker's share or refuse,
quotas and budgets refuse unless the operator opted out. Either way the answer is an error that says so, or an
admission marked `degraded`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from proxy.admission_rules import COUNTED, BoundRules, rules_of
from proxy.errors import GatewayError, StoreUnavailable, Unavailable
from proxy.limit_headers import rate_headers
from proxy.local_share import local_share
from proxy.redis_keys import record_key
from proxy.redis_scripts import ADMIT, CANCEL, READ_LIMITS
from proxy.refusal import refusal, revoked
from proxy.reservation import (
    BUCKET,
    COUNTER,
    LEASE,
    AdmissionRequest,
    Admitted,
    LimiterSide,
    LimitState,
    encode_record,
    exact,
)
from proxy.snapshot import KeySpec, TenantSpec
from proxy.store import OutcomeUnknown, Store

__all__ = ["AdmissionRequest", "Admitted", "LimitState", "admit", "rate_headers", "read_limits"]

logger = logging.getLogger(__name__)

#: A reply of "stale" or "period" is answered by another try with what the reply taught; this many in all.
TRIES = 3
#: Retry-After of the 503 refusals (ms).
RETRY_MS = 1000
_UNITS = 60_000
#: Where a reply's numbers begin.
_HEAD = 5


async def admit(plane: LimiterSide, request: AdmissionRequest) -> Admitted:
    """Take what `request` needs from every limit of its caller.

    Raises RateLimited (429), PaymentRequired (402), Unauthenticated (401: the key was revoked), Unavailable (503).
    """
    request.expected_tokens = exact(request.expected_tokens)
    request.worst_tokens = exact(request.worst_tokens)
    request.worst_nano = None if request.worst_nano is None else exact(request.worst_nano)
    store, caller = plane.store, rules_of(request.tenant, request.key)
    cold_passes = b"1" if plane.config.budget_failure_policy == "fail_open" else b"0"
    now_ms = store.now_ms()
    for _ in range(TRIES):
        bound = caller.bound(request.user, now_ms)
        try:
            reply = await _call(store, bound, request, now_ms, cold_passes)
        except StoreUnavailable as error:
            return _without_store(plane, request, bound, isinstance(error, OutcomeUnknown))
        status, now_ms = reply[0], reply[1]
        store.observe_clock(now_ms)
        if status == b"ok":
            return _admitted(request, bound, reply)
        if status == b"refused":
            raise refusal(reply[3] - 1, reply[4], _states(bound, reply, request, taken=False), now_ms)
        if status == b"revoked":
            raise revoked()
        if status == b"taken":
            raise ValueError(f"event id {request.event_id} was used before")
        if status == b"cold":
            plane.on_cold(bound.shard)
            raise _budget_unavailable("The budgets are being counted again after a loss of the store.")
    return _without_store(plane, request, bound, unknown=False)


async def _call(
    store: Store, bound: BoundRules, request: AdmissionRequest, now_ms: int, cold_passes: bytes
) -> list[Any]:
    event_id, deadline_ms = request.event_id, request.deadline_ms
    tokens, worst_tokens, nano = request.expected_tokens, request.worst_tokens, request.worst_nano
    name = record_key(bound.shard, event_id)
    record = encode_record(bound.record_rules, deadline_ms, tokens, worst_tokens, nano, request.skeleton)
    args: list[Any] = [event_id, now_ms, deadline_ms, record, cold_passes, bound.holds_from, bound.holds_until]
    args += _rule_args(bound, request)
    keys = [bound.epoch, bound.revoked, name, bound.open, *bound.keys]
    try:
        reply: list[Any] = await store.run(ADMIT, keys, args)
    except asyncio.CancelledError:
        _cancel(store, request, bound)
        raise
    return reply


def _rule_args(bound: BoundRules, request: AdmissionRequest) -> list[Any]:
    args = bound.admit_args.copy()
    at = bound.admit_at
    for place in at["tokens"]:
        args[place] = request.expected_tokens
    for place in at["quota"]:
        args[place] = request.worst_tokens
    for place in at["budget"]:
        args[place] = request.worst_nano or 0
    return args


def _admitted(request: AdmissionRequest, bound: BoundRules, reply: list[Any]) -> Admitted:
    return Admitted(
        event_id=request.event_id,
        shard=bound.shard,
        now_ms=reply[1],
        deadline_ms=request.deadline_ms,
        holds=bound,
        tokens=request.expected_tokens,
        worst_tokens=request.worst_tokens,
        nano=request.worst_nano,
        skeleton=request.skeleton,
        states=_states(bound, reply, request, taken=True),
        epoch=reply[2],
    )


# ---------------------------------------------------------------- how the limits stand


def _states(bound: BoundRules, reply: list[Any], request: AdmissionRequest | None, *, taken: bool) -> list[LimitState]:
    """The numbers of a reply as states; `taken`: they include what `request` took."""
    now_ms = reply[1]
    states = []
    for i, rule in enumerate(bound.rules):
        used, reserved = reply[_HEAD + 2 * i], reply[_HEAD + 1 + 2 * i]
        resets_in: int | None
        if rule.counting == BUCKET:
            resets_in = -(-used // rule.limit)
            used = -(-used // _UNITS)
        elif rule.counting == COUNTER:
            end = bound.ends[i]
            resets_in = None if end is None else max(end - now_ms, 0)
        else:
            resets_in = None if rule.counting == LEASE else (_UNITS if used else 0)
        states.append(
            LimitState(
                kind=rule.kind,
                scope=rule.scope,
                window=rule.window,
                limit=rule.limit,
                used=used,
                reserved=reserved,
                remaining=max(rule.limit - used - reserved, 0),
                resets_at_ms=None if resets_in is None else now_ms + resets_in,
                resets_in_ms=resets_in,
                amount=_amount(rule.kind, request) if taken and request is not None else 0,
            )
        )
    return states


def _amount(kind: str, request: AdmissionRequest) -> int:
    if kind == "tokens":
        return request.expected_tokens
    if kind == "quota":
        return request.worst_tokens
    return (request.worst_nano or 0) if kind == "budget" else 1


async def read_limits(
    store: Store, tenant: TenantSpec, key: KeySpec | None, user: str | None = None
) -> list[LimitState]:
    """How every limit of a caller stands, in one look that uses nothing up.

    Raises Unavailable (503) while the store is away or the counters are not rebuilt yet.
    """
    bound = rules_of(tenant, key).bound(user, store.now_ms())
    args: list[bytes] = []
    for rule in bound.rules:
        args += (rule.counting, b"%d" % rule.limit)
    try:
        reply = await store.run(READ_LIMITS, [bound.epoch, *bound.keys], args)
    except StoreUnavailable:
        raise Unavailable(
            "The limits cannot be read at the moment.", code="rate_limit_unavailable", retry_after_ms=RETRY_MS
        ) from None
    if bound.counted and not reply[2]:
        raise _budget_unavailable("The budgets are being counted again after a loss of the store.")
    return _states(bound, reply, None, taken=False)


# ---------------------------------------------------------------- without the store


def _without_store(plane: LimiterSide, request: AdmissionRequest, bound: BoundRules, unknown: bool) -> Admitted:
    """The failure policies. `unknown`: the admission may still be executed, so a refusal must undo it."""
    config = plane.config
    try:
        if bound.counted and config.budget_failure_policy != "fail_open":
            raise _budget_unavailable("The budget cannot be checked at the moment.")
        has_rates = any(rule.kind not in COUNTED for rule in bound.rules)
        if has_rates and config.rate_limit_failure_policy == "fail_closed":
            raise Unavailable(
                "The rate limits cannot be checked at the moment.",
                code="rate_limit_unavailable",
                retry_after_ms=RETRY_MS,
            )
        return _by_local_share(plane, request, bound)
    except GatewayError:
        if unknown:
            _cancel(plane.store, request, bound)
        raise


def _by_local_share(plane: LimiterSide, request: AdmissionRequest, bound: BoundRules) -> Admitted:
    now_ms = plane.store.now_ms()
    share = local_share(plane.config.workers)
    refused = share.admit(bound, request.event_id, request.expected_tokens, now_ms, request.deadline_ms)
    if refused is not None:
        place = bound.rules.index(refused.rule)
        numbers = [0] * (2 * len(bound.rules))
        numbers[2 * place] = refused.used * (_UNITS if refused.rule.counting == BUCKET else 1)
        states = _states(bound, [b"", now_ms, b"", 0, 0, *numbers], None, taken=False)
        raise refusal(place, refused.wait_ms, states, now_ms)
    return Admitted(
        event_id=request.event_id,
        shard=bound.shard,
        now_ms=now_ms,
        deadline_ms=request.deadline_ms,
        holds=bound,
        tokens=request.expected_tokens,
        worst_tokens=request.worst_tokens,
        nano=request.worst_nano,
        skeleton=request.skeleton,
        states=[],
        held=False,
        degraded=True,
        local_leases=tuple(rule.key for rule in bound.leases),
    )


def _cancel(store: Store, request: AdmissionRequest, bound: BoundRules) -> None:
    record = record_key(bound.shard, request.event_id)
    store.run_later(CANCEL, [record, bound.open, *bound.keys], [request.event_id, *_rule_args(bound, request)])


def _budget_unavailable(message: str) -> Unavailable:
    return Unavailable(message, code="budget_unavailable", retry_after_ms=RETRY_MS)
