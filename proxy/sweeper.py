"""Reservations that nobody settled (a killed worker): charged in full past their deadline, with their audit event.

Never refunded silently: what the request did at the provider is unknown, so its status is `indeterminate`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from billing.money import nano_to_text
from proxy.redis_keys import epoch_key, late_key, open_key, record_key, stream_key
from proxy.redis_scripts import SETTLE
from proxy.reservation import HeldRule, Reservation, decode_record
from proxy.store import Store

#: Reservations looked at in one step.
BATCH = 100

#: What nobody can say of a request that was never settled.
_UNKNOWN: dict[str, Any] = {
    "model_served": None,
    "provider": None,
    "http_status": 0,
    "error_code": None,
    "cache_read_tokens": 0,
    "cache_write_tokens": 0,
    "reasoning_tokens": 0,
    "price": None,
    "ttft_ms": None,
    "overhead_ms": None,
    "attempts": [],
    "fallback_used": False,
    "cached": False,
    "decision": [],
}

_LONGEST_MS = 2**31 - 1  # latency_ms is a 32-bit column


async def sweep(store: Store, shard: int, *, grace_ms: int = 0) -> int:
    """Settle what is `grace_ms` past its deadline in one shard; gives how many. Any number of callers may do it."""
    count = 0
    now_ms = store.now_ms()
    until = str(now_ms - grace_ms)
    while True:
        due = await store.command("ZRANGEBYSCORE", open_key(shard), "-inf", until, "LIMIT", "0", str(BATCH))
        events = [event.decode() for event in due]
        if not events:
            return count
        records = await store.command("MGET", *(record_key(shard, event) for event in events))
        done = 0
        for event, record in zip(events, records, strict=True):
            if record is None or not record.startswith(b"{"):
                done += await store.command("ZREM", open_key(shard), event)
            elif await _charge(store, shard, event, decode_record(record), now_ms):
                done += 1
                count += 1
        if not done:
            return count  # the store's clock is behind ours: the next round


async def _charge(store: Store, shard: int, event: str, reservation: Reservation, now_ms: int) -> bool:
    keys = [record_key(shard, event), open_key(shard), stream_key(shard), epoch_key(shard), late_key(shard)]
    args: list[Any] = [event, "sweep", reservation.deadline_ms, _completed(reservation, now_ms)]
    for rule in reservation.rules:
        keys.append(rule.key)
        held = _held(rule, reservation)
        args += [rule.counting, rule.limit, held, held, rule.extra]
    reply = await store.run(SETTLE, keys, args)
    return bool(reply[0] == b"settled")


def _held(rule: HeldRule, reservation: Reservation) -> int:
    amounts = {"tokens": reservation.tokens, "quota": reservation.worst_tokens, "budget": reservation.nano or 0}
    return amounts.get(rule.kind, 1)


def _completed(reservation: Reservation, now_ms: int) -> bytes:
    """The stream entry: charged in full, usage estimated as what was expected."""
    entry: dict[str, Any] = msgspec.json.decode(reservation.entry)
    event: dict[str, Any] = {**_UNKNOWN, **entry["event"]}
    known_input = min(event.get("input_tokens") or 0, reservation.tokens)
    entry.update(charged=True, cost_nano=reservation.nano, event=event)
    event.update(
        status="indeterminate",
        usage_source="estimated",
        cost_usd=None if reservation.nano is None else nano_to_text(reservation.nano),
        input_tokens=known_input,
        output_tokens=reservation.tokens - known_input,
        latency_ms=min(max(now_ms - entry["time_ms"], 0), _LONGEST_MS),
    )
    return msgspec.json.encode(entry)
