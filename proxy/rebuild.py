"""Counters after a loss of the store (or at the start of an embedded one): put back from the ledger.

First everything that the shard's stream holds must be in the ledger; then the sums of the current periods are read and
written in one script call, which does nothing when another process was first (restore.lua).
"""

from __future__ import annotations

import asyncio
import logging
import uuid

from django.db import close_old_connections

from audit.consistent_reads import consistent_reads
from proxy.counters import Counter, counters
from proxy.redis_keys import epoch_key, late_key, stream_key
from proxy.redis_scripts import RESTORE
from proxy.snapshot import Snapshot
from proxy.store import Store, StoreError

logger = logging.getLogger(__name__)

#: How long a rebuild waits for the drain before it gives up until the next request asks (seconds).
PATIENCE_SECONDS = 10.0
TRIES = 5
#: Counters written in one call: it must be over within the store's timeout.
CHUNK = 500
#: How often the drain's progress is looked at (seconds).
LOOK_SECONDS = 0.02


async def rebuild_shard(store: Store, snapshot: Snapshot, shard: int) -> bool:
    """Put a shard's counters back; False when the drain did not catch up in time. Raises what store and database do."""
    if await store.command("EXISTS", epoch_key(shard)):
        return True
    for _ in range(TRIES):
        seen = await newest_entry(store, shard)
        if not await drained(store, shard, seen):
            return False
        found = await asyncio.to_thread(read_counters, snapshot, shard, store.now_ms())
        if await _restore(store, shard, found, seen):
            logger.debug("counters restored", extra={"shard": shard, "counters": len(found)})
            return True
    return False


async def _restore(store: Store, shard: int, found: list[Counter], seen: str) -> bool:
    """Write the counters, and with the last of them the epoch. False when requests were settled after `seen`."""
    chunks = [found[start : start + CHUNK] for start in range(0, len(found), CHUNK)] or [[]]
    for number, chunk in enumerate(chunks, 1):
        epoch = uuid.uuid4().hex if number == len(chunks) else ""
        keys = [epoch_key(shard), late_key(shard), *(counter.key for counter in chunk)]
        spent = [number for counter in chunk for number in (counter.spent, counter.expires_ms)]
        status = (await store.run(RESTORE, keys, [epoch, seen, *spent]))[0]
        if status != b"part":
            return status in (b"restored", b"warm")
    return False


async def newest_entry(store: Store, shard: int) -> str:
    """Id of the newest entry that the shard's stream ever had; `0-0` when it never had one."""
    try:
        info = await store.command("XINFO", "STREAM", stream_key(shard))
    except StoreError:
        return "0-0"  # there is no stream
    facts = dict(zip(info[::2], info[1::2], strict=True))
    newest: str = facts[b"last-generated-id"].decode()
    return newest


async def drained(store: Store, shard: int, newest: str, seconds: float = PATIENCE_SECONDS) -> bool:
    """Wait until the entry `newest` and all before it are in the ledger; False when that takes too long."""
    deadline = asyncio.get_running_loop().time() + seconds
    while await store.command("XRANGE", stream_key(shard), "-", newest, "COUNT", "1"):
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(LOOK_SECONDS)
    return True


def read_counters(snapshot: Snapshot, shard: int, now_ms: int) -> list[Counter]:
    """`proxy.counters.counters` for a thread that has no database connection of its own."""
    close_old_connections()
    try:
        with consistent_reads():
            return counters(snapshot, shard, now_ms)
    finally:
        close_old_connections()
