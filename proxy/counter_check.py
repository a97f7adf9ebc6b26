"""Whether the counters in the store say what the ledger says."""

from __future__ import annotations

import asyncio

import msgspec

from proxy.counters import Counter
from proxy.rebuild import drained, newest_entry, read_counters
from proxy.redis_keys import epoch_key
from proxy.snapshot import Snapshot
from proxy.store import Store
from tenants.shards import SHARDS

#: Requests may be settled between the look into the ledger and the look into the store: then both are looked at again.
TRIES, PAUSE_SECONDS = 4, 0.25


class CounterCheck(msgspec.Struct):
    """How many counters were compared, and a sentence for each that differs."""

    checked: int = 0
    differences: list[str] = []


async def check_counters(store: Store, snapshot: Snapshot) -> CounterCheck:
    """Compare every counter of the periods in force. Shards that wait for a rebuild have none."""
    result = CounterCheck()
    for shard in range(SHARDS):
        if not await store.command("EXISTS", epoch_key(shard)):
            continue
        if not await drained(store, shard, await newest_entry(store, shard)):
            result.differences.append(f"shard {shard}: its events wait for a drain, its counters cannot be compared")
            continue
        checked, differing = await _check_shard(store, snapshot, shard)
        result.checked += checked
        result.differences += differing
    return result


async def _check_shard(store: Store, snapshot: Snapshot, shard: int) -> tuple[int, list[str]]:
    found: list[Counter] = []
    differing: list[str] = []
    for attempt in range(TRIES):
        if attempt:
            await asyncio.sleep(PAUSE_SECONDS)
            await drained(store, shard, await newest_entry(store, shard))
        found = await asyncio.to_thread(read_counters, snapshot, shard, store.now_ms())
        kept = await asyncio.gather(*(store.command("HGET", counter.key, "s") for counter in found))
        differing = [
            f"{counter.key}: {counter.spent} by the ledger, {int(spent or 0)} in the store"
            for counter, spent in zip(found, kept, strict=True)
            if int(spent or 0) != counter.spent
        ]
        if not differing:
            break
    return len(found), differing
