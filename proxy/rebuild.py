"""Counters after a loss of the store (or at the start of an embedded one): put back from the ledger.

First everything that the shard's stream holds must be in the ledger; then the sums of the current periods are read and
written in one script call, which does nothing when another process was first (restore.lua). Meanwhile the shard's chain
is held: what a drain read before the loss and has not written is written before the sums are read, or after the script
(then the drain finds its entries gone from the stream and has the counters rebuilt again).
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from django.db import close_old_connections, transaction

from audit.consistent_reads import consistent_reads
from audit.recorder import hold_chain
from proxy.counters import Counter, counters
from proxy.errors import StoreUnavailable
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
        restore = partial(_restore, store, shard, seen)
        if await asyncio.to_thread(_count, snapshot, shard, store.now_ms(), asyncio.get_running_loop(), restore):
            return True
    return False


Restore = Callable[[list[Counter]], Coroutine[Any, Any, bool]]


def _count(snapshot: Snapshot, shard: int, now_ms: int, loop: asyncio.AbstractEventLoop, restore: Restore) -> bool:
    """Read the counters and have them restored (on the loop, where the store is), while nobody writes to the ledger."""
    close_old_connections()
    try:
        with transaction.atomic():
            hold_chain(shard)
            found = counters(snapshot, shard, now_ms)
            done = asyncio.run_coroutine_threadsafe(restore(found), loop).result(PATIENCE_SECONDS)
    except TimeoutError:
        raise StoreUnavailable("the counters were not restored in time") from None
    finally:
        close_old_connections()
    if done:
        logger.debug("counters restored", extra={"shard": shard, "counters": len(found)})
    return done


async def _restore(store: Store, shard: int, seen: str, found: list[Counter]) -> bool:
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
