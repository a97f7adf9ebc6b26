"""Settlement: what an admitted request holds is released, what it used is charged, its event goes to the stream.

One script call, idempotent by event id. While the store is away the call goes to the spool and is made later.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec

from proxy.errors import StoreUnavailable
from proxy.local_share import local_share
from proxy.redis_keys import record_key, stream_key
from proxy.redis_scripts import EXTEND, SETTLE
from proxy.reservation import Admitted, LimiterSide, encode_record, exact
from proxy.spool import Line, spool_of
from proxy.store import OutcomeUnknown

logger = logging.getLogger(__name__)


class Crossed(msgspec.Struct, kw_only=True, frozen=True):
    """A settlement took a counter over one of its thresholds: `percent` of `limit` (tokens or nano-USD).

    Each percentage is reported once a period. kind quota | budget; scope, window, owner as in proxy.admission_rules.
    """

    kind: str
    scope: str
    window: str
    limit: int
    spec_id: int
    owner: str
    percent: int


async def settle(plane: LimiterSide, admitted: Admitted, *, tokens: int, cost_nano: int, entry: bytes) -> list[Crossed]:
    """Settle `admitted` with the tokens and nano-USD it used; `entry` is its event for the stream.

    Never raises for a store that is away. A second call for the same request does nothing.
    """
    if admitted.settled:
        return []
    admitted.settled = True
    if admitted.local_leases:
        local_share(plane.config.workers).release(admitted.local_leases, admitted.event_id)
    keys, args = _call_of(admitted, exact(tokens), exact(cost_nano), entry)
    try:
        reply = await plane.store.run(SETTLE, keys, args)
    except OutcomeUnknown:
        args[1] = "again" if admitted.held else "unheld"
        await _keep(plane, keys, args)
    except StoreUnavailable:
        args[1] = "spooled" if admitted.held else "unheld"
        await _keep(plane, keys, args)
    except asyncio.CancelledError:
        args[1] = "again" if admitted.held else "unheld"
        plane.store.run_later(SETTLE, keys, args)
        raise
    else:
        plane.store.observe_clock(reply[1])
        return [_crossed(admitted, reply[i], reply[i + 1]) for i in range(2, len(reply), 2)]
    return []


async def record(plane: LimiterSide, shard: int, entry: bytes) -> None:
    """Write the event of a request that was not admitted."""
    key = stream_key(shard)
    try:
        await plane.store.command("XADD", key, "*", "e", entry)
    except StoreUnavailable:
        await _spool(plane, Line([key], event=entry.decode()))


async def extend(plane: LimiterSide, admitted: Admitted, deadline_ms: int) -> bool:
    """Push the deadline of an admitted request (store's ms): its reservation and its places among running requests.

    False when the store is away or the reservation is gone; the request may go on, and is settled as it is.
    """
    if not admitted.held or admitted.settled:
        return False
    bound = admitted.holds
    keys = [record_key(admitted.shard, admitted.event_id), bound.open, *(rule.key for rule in bound.leases)]
    try:
        reply = await plane.store.run(EXTEND, keys, [admitted.event_id, deadline_ms, _record(admitted, deadline_ms)])
    except StoreUnavailable:
        return False
    if reply[0] != b"extended":
        return False
    admitted.deadline_ms = max(admitted.deadline_ms, deadline_ms)
    return True


def _record(admitted: Admitted, deadline_ms: int) -> bytes:
    rules, nano = admitted.holds.record_rules, admitted.nano
    return encode_record(rules, deadline_ms, admitted.tokens, admitted.worst_tokens, nano, admitted.skeleton)


def _call_of(admitted: Admitted, tokens: int, cost_nano: int, entry: bytes) -> tuple[list[str], list[Any]]:
    """Keys and arguments of settle.lua."""
    bound = admitted.holds
    keys = [record_key(admitted.shard, admitted.event_id), bound.open, bound.stream, bound.epoch, bound.late]
    holds, at = bound.settle_args.copy(), bound.settle_at
    for kind, held, used in (
        ("tokens", admitted.tokens, tokens),
        ("quota", admitted.worst_tokens, tokens),
        ("budget", admitted.nano or 0, cost_nano),
    ):
        for place in at[kind]:
            holds[place], holds[place + 1] = held, used
    mode = "held" if admitted.held else "unheld"
    return keys + bound.settle_keys, [admitted.event_id, mode, admitted.deadline_ms, entry, *holds]


def _crossed(admitted: Admitted, hold: int, percent: int) -> Crossed:
    rule = admitted.holds.hold_rules[hold - 1]
    return Crossed(
        kind=rule.kind,
        scope=rule.scope,
        window=rule.window,
        limit=rule.limit,
        spec_id=rule.spec_id,
        owner=rule.owner,
        percent=percent,
    )


async def _keep(plane: LimiterSide, keys: list[str], args: list[Any]) -> None:
    """Spool a settlement; when not even that works, keep it in memory for the store's return."""
    texts = [value.decode() if isinstance(value, bytes) else str(value) for value in args]
    if not await _spool(plane, Line(keys, texts)):
        plane.store.run_later(SETTLE, keys, args)


async def _spool(plane: LimiterSide, line: Line) -> bool:
    try:
        await spool_of(plane.config).append(line)
    except OSError as error:
        logger.critical("the spool cannot be written", extra={"why": str(error)[:200]})
        return False
    return True
