"""From stream to record: the drain reads each shard's events and writes them in transactions (DESIGN section 5).

A shard has one owner at a time (a lock that its owner renews). Entries are read under one consumer name, first those
read before and not acknowledged, so what a dead owner left behind is taken up by the next. Acknowledged and deleted is
only what was committed; writing is idempotent, so a crash anywhere loses nothing and doubles nothing.
"""

from __future__ import annotations

import asyncio
import logging
import os
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import msgspec
from django.db import DataError, IntegrityError, close_old_connections
from django.db import Error as DatabaseError

from proxy.drain_write import Entry, read_entry, write_batch
from proxy.errors import StoreUnavailable
from proxy.redis_keys import shard_prefix, stream_key
from proxy.store import Store, StoreError
from proxy.sweeper import sweep

logger = logging.getLogger(__name__)

GROUP = CONSUMER = "drain"
#: Entries of one shard taken at once.
BATCH = 500
#: Pause when nothing was there (seconds), and after an error.
IDLE_SECONDS, ERROR_SECONDS = 0.05, 1.0
#: How long an owner may be silent before another takes its shard (ms), and how often it says that it lives (seconds).
OWNER_MS, RENEW_SECONDS = 10_000, 3.0
SWEEP_SECONDS = 1.0


class Taken(msgspec.Struct):
    """An entry as read: its place in the stream, and what it says (None: not understood)."""

    shard: int
    place: bytes
    raw: bytes
    entry: Entry | None


class Drain:
    """Drains the shards it can get hold of. One per process."""

    def __init__(self, store: Store, shards: Iterable[int]) -> None:
        self.store = store
        self.shards = tuple(shards)
        self.name = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.owned: list[int] = []
        self.reread: set[int] = set()  # shards whose unacknowledged entries come first
        self.written = 0
        self.stopping = asyncio.Event()
        self.idle = asyncio.Event()
        self._database = ThreadPoolExecutor(1, thread_name_prefix="tollbar-drain")
        self._renewed = self._swept = -1e9

    async def run(self) -> None:
        """Drain until `finish`."""
        while not self.stopping.is_set():
            pause = IDLE_SECONDS
            try:
                await self.keep_shards()
                if await self.step():
                    pause = 0.0
                await self.sweep_sometimes()
            except StoreUnavailable:
                self.owned, self._renewed = [], -1e9
                pause = ERROR_SECONDS
            except DatabaseError as error:
                logger.warning("events wait for the database", extra={"why": str(error)[:200]})
                self.reread.update(self.owned)
                pause = ERROR_SECONDS
            if pause:
                await self._wait(pause)
        self.idle.set()

    async def once(self) -> int:
        """Drain what is there now, of the shards it can get; gives how many entries were written."""
        await self.keep_shards()
        while await self.step():
            pass
        await self.release()
        return self.written

    async def finish(self) -> None:
        """Write what is there and stop."""
        self.stopping.set()
        await self.idle.wait()
        try:
            await self.once()
        except (StoreUnavailable, DatabaseError) as error:
            logger.warning("events stay in the stream", extra={"why": str(error)[:200]})
        self._database.shutdown(wait=False)

    async def step(self) -> int:
        """One batch of every owned shard, in one transaction. Gives how many entries were taken."""
        taken = await self._read()
        if not taken:
            return 0
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._database, _write, taken)
        await self._acknowledge(taken)
        self.written += sum(item.entry is not None for item in taken)
        return len(taken)

    # ---------------------------------------------------------------- ownership

    async def keep_shards(self) -> None:
        """Renew the shards we own and take those that nobody does."""
        now = asyncio.get_running_loop().time()
        if now - self._renewed < RENEW_SECONDS:
            return
        self._renewed = now
        owned = await asyncio.gather(*(self._hold(shard) for shard in self.shards))
        fresh = [shard for shard, held in zip(self.shards, owned, strict=True) if held and shard not in self.owned]
        self.owned = [shard for shard, held in zip(self.shards, owned, strict=True) if held]
        for shard in fresh:
            await self._ensure_group(shard)
            self.reread.add(shard)

    async def _hold(self, shard: int) -> bool:
        key = shard_prefix(shard) + "drain"
        if await self.store.command("SET", key, self.name, "NX", "PX", str(OWNER_MS)):
            return True
        if await self.store.command("GET", key) != self.name.encode():
            return False
        return bool(await self.store.command("PEXPIRE", key, str(OWNER_MS)))

    async def release(self) -> None:
        """Let others take our shards at once."""
        for shard in self.owned:
            key = shard_prefix(shard) + "drain"
            if await self.store.command("GET", key) == self.name.encode():
                await self.store.command("DEL", key)
        self.owned, self._renewed = [], -1e9

    async def _ensure_group(self, shard: int) -> None:
        try:
            await self.store.command("XGROUP", "CREATE", stream_key(shard), GROUP, "0", "MKSTREAM")
        except StoreError as error:
            if error.code != "BUSYGROUP":
                raise

    # ---------------------------------------------------------------- reading and acknowledging

    async def _read(self) -> list[Taken]:
        replies = await asyncio.gather(*(self._read_shard(shard) for shard in self.owned))
        return [item for items in replies for item in items]

    async def _read_shard(self, shard: int) -> list[Taken]:
        key = stream_key(shard)
        if shard in self.reread:
            items = _taken(shard, await self._group_read(key, "0"))
            if items:
                return items
            self.reread.discard(shard)
        try:
            return _taken(shard, await self._group_read(key, ">"))
        except StoreError as error:
            if error.code != "NOGROUP":  # the store lost its data
                raise
            await self._ensure_group(shard)
            return []

    async def _group_read(self, key: str, place: str) -> object:
        return await self.store.command(
            "XREADGROUP", "GROUP", GROUP, CONSUMER, "COUNT", str(BATCH), "STREAMS", key, place
        )

    async def _acknowledge(self, taken: list[Taken]) -> None:
        for shard in {item.shard for item in taken}:
            key = stream_key(shard)
            mine = [item for item in taken if item.shard == shard]
            for item in mine:
                if item.entry is None and item.raw:
                    logger.error("an event was not understood and is set aside", extra={"shard": shard})
                    await self.store.command("XADD", shard_prefix(shard) + "dead", "*", "e", item.raw)
            places = [item.place for item in mine]
            await self.store.command("XACK", key, GROUP, *places)
            await self.store.command("XDEL", key, *places)

    async def sweep_sometimes(self) -> None:
        """Charge reservations that nobody settled."""
        now = asyncio.get_running_loop().time()
        if now - self._swept >= SWEEP_SECONDS:
            self._swept = now
            for shard in self.owned:
                await sweep(self.store, shard)

    async def _wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self.stopping.wait(), seconds)
        except TimeoutError:
            pass


def _taken(shard: int, reply: object) -> list[Taken]:
    items = []
    for _, entries in reply or []:  # type: ignore[attr-defined]
        for place, fields in entries:
            raw = fields[1] if fields else b""  # deleted meanwhile: nothing but its place
            items.append(Taken(shard, place, raw, _understood(raw)))
    return items


def _understood(raw: bytes) -> Entry | None:
    try:
        return read_entry(raw)
    except msgspec.MsgspecError:
        return None


#: What one entry that can never be written raises: it must not hold up the others.
_UNWRITABLE = (IntegrityError, DataError, KeyError, TypeError, ValueError)


def _write(taken: list[Taken]) -> None:
    """Write what was understood. When the batch as a whole cannot be written, each entry by itself: one that cannot be
    is marked as not understood."""
    close_old_connections()
    batch = [(item.shard, item.entry) for item in taken if item.entry is not None]
    try:
        write_batch(batch)
    except _UNWRITABLE:
        for item in taken:
            _write_alone(item)


def _write_alone(item: Taken) -> None:
    if item.entry is None:
        return
    try:
        write_batch([(item.shard, item.entry)])
    except _UNWRITABLE as error:
        logger.error("an event cannot be written", extra={"event": item.entry.id, "why": repr(error)[:300]})
        item.entry = None
