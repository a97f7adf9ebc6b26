"""From stream to record: the drain reads each shard's events and writes them in transactions.

A shard has one owner at a time (a lock that its owner renews). Entries are read under one consumer name, first those
read before and not acknowledged, so what a dead owner left behind is taken up by the next. Deleted and acknowledged is
only what was committed, and writing is idempotent, so a crash anywhere loses nothing and doubles nothing. Deleted comes
first: an entry that is gone but not acknowledged is found again and acknowledged; the other way round it would stay.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import msgspec
from django.db import Error as DatabaseError
from django.db import connection

from proxy.drain_batch import Taken, take, write_taken
from proxy.errors import StoreUnavailable
from proxy.redis_keys import dead_key, epoch_key, stream_key
from proxy.shard_ownership import ShardOwnership
from proxy.store import Store, StoreError
from proxy.sweeper import sweep

logger = logging.getLogger(__name__)

GROUP = CONSUMER = "drain"
#: Entries of one shard taken at once. A batch holds those of all owned shards.
COUNT = 250
#: Pause when less than COUNT was there, so that the next batch is worth its transaction (seconds). It grows to the
#: second while nothing comes: an idle process should look idle.
IDLE_SECONDS = (0.05, 0.2)
#: Pause after an error (seconds).
ERROR_SECONDS = 1.0
SWEEP_SECONDS = 1.0
#: How long the end of the process waits for the batch that is being written (seconds).
FINISH_SECONDS = 20.0
#: And for the database connection to be closed.
CLOSE_SECONDS = 2.0


class Stats(msgspec.Struct):
    """Since the drain began: entries written, entries set aside, batches, reservations charged by the sweeper."""

    written: int = 0
    dead: int = 0
    batches: int = 0
    swept: int = 0


class Drain:
    """Drains the shards it can get hold of. One per process."""

    def __init__(self, store: Store, shards: Iterable[int] = range(16)) -> None:
        self.store = store
        self.ownership = ShardOwnership(store, tuple(shards))
        self.stats = Stats()
        self.stopping = asyncio.Event()
        self._unread: set[int] = set()  # owned shards whose unacknowledged entries come first
        self._database = ThreadPoolExecutor(1, thread_name_prefix="tollbar-drain")
        self._running: list[asyncio.Future[None]] = []
        self._finished = False
        self._pause = IDLE_SECONDS[0]

    # ---------------------------------------------------------------- life

    async def run(self) -> None:
        """Drain and sweep until `finish`, whatever happens."""
        loops = [self._keep(self._drain, lambda: self._pause), self._keep(self._sweep, lambda: SWEEP_SECONDS)]
        self._running = [asyncio.ensure_future(loop) for loop in loops]
        try:
            await asyncio.gather(*self._running)
        finally:
            for loop in self._running:
                loop.cancel()

    async def finish(self) -> None:
        """Write what is there and stop, for good. Whatever cannot be written stays in the stream."""
        self.stopping.set()
        if self._finished:
            return
        self._finished = True
        try:
            async with asyncio.timeout(FINISH_SECONDS):
                if self._running:
                    await asyncio.wait(self._running)
                await self.drain_all()
                await self.ownership.release()
        except (StoreUnavailable, StoreError, DatabaseError, TimeoutError) as error:
            logger.warning("events stay in the stream", extra={"why": str(error)[:200]})
        closing = asyncio.get_running_loop().run_in_executor(self._database, _close_connection)
        self._database.shutdown(wait=False)
        await asyncio.wait([closing], timeout=CLOSE_SECONDS)

    async def drain_all(self) -> None:
        """Drain until the shards it can get are empty."""
        await self._take_shards()
        while await self.step():
            pass

    async def _keep(self, job: Callable[[], Awaitable[bool]], pause: Callable[[], float]) -> None:
        """Do a job again and again: at once when it says that there is more, after a pause otherwise."""
        while not self.stopping.is_set():
            doing = asyncio.ensure_future(job())
            try:
                await asyncio.wait([doing])
            finally:
                doing.cancel()  # nothing, unless we are cancelled ourselves
            seconds = pause()
            if (error := doing.exception()) is not None:
                self._note(error)
                seconds = ERROR_SECONDS
            elif doing.result():
                continue
            try:
                await asyncio.wait_for(self.stopping.wait(), seconds)
            except TimeoutError:
                pass

    def _note(self, error: BaseException) -> None:
        """After a failure everything is begun anew: ownership is asked for again, pending entries are read again."""
        self._unread.update(self.ownership.owned)
        if isinstance(error, StoreUnavailable):
            self.ownership.forget()
        elif isinstance(error, DatabaseError):
            logger.warning("events wait for the database", extra={"why": str(error)[:200]})
        else:
            logger.error("events wait, draining failed", exc_info=error)

    async def _drain(self) -> bool:
        await self._take_shards()
        taken = await self.step()
        self._pause = IDLE_SECONDS[0] if taken else min(self._pause * 1.25, IDLE_SECONDS[1])
        return taken >= COUNT

    async def _sweep(self) -> bool:
        """Charge reservations that nobody settled."""
        for shard in list(self.ownership.owned):
            self.stats.swept += await sweep(self.store, shard)
        return False

    # ---------------------------------------------------------------- one batch

    async def step(self) -> int:
        """One batch of every owned shard, in one transaction. Gives how many entries were taken."""
        taken = await self._read()
        if not taken:
            return 0
        await asyncio.get_running_loop().run_in_executor(self._database, write_taken, taken)
        await self._acknowledge(taken)
        self.stats.batches += 1
        self.stats.written += sum(item.entry is not None for item in taken)
        return len(taken)

    async def _take_shards(self) -> None:
        for shard in await self.ownership.renew():
            await self._begin_group(shard)
            self._unread.add(shard)

    async def _begin_group(self, shard: int) -> None:
        """Have everything delivered that the stream still holds, whatever was delivered before."""
        try:
            await self.store.command("XGROUP", "CREATE", stream_key(shard), GROUP, "0", "MKSTREAM")
        except StoreError as error:
            if error.code != "BUSYGROUP":
                raise
            await self.store.command("XGROUP", "SETID", stream_key(shard), GROUP, "0")

    async def _read(self) -> list[Taken]:
        replies = await asyncio.gather(*(self._read_shard(shard) for shard in self.ownership.owned))
        return [item for items in replies for item in items]

    async def _read_shard(self, shard: int) -> list[Taken]:
        try:
            if shard in self._unread:
                items = take(shard, await self._group_read(shard, "0"))
                if items:
                    return items
                self._unread.discard(shard)
            return take(shard, await self._group_read(shard, ">"))
        except StoreError as error:
            if error.code != "NOGROUP":  # the store lost its data
                raise
            await self._begin_group(shard)
            return []

    async def _group_read(self, shard: int, place: str) -> object:
        where = ("STREAMS", stream_key(shard), place)
        return await self.store.command("XREADGROUP", "GROUP", GROUP, CONSUMER, "COUNT", str(COUNT), *where)

    async def _acknowledge(self, taken: list[Taken]) -> None:
        dead = [item for item in taken if item.fault]
        for item in dead:
            logger.error("an event is set aside", extra={"shard": item.shard, "why": item.fault})
            await self.store.command("XADD", dead_key(item.shard), "*", "e", item.raw, "why", item.fault)
        self.stats.dead += len(dead)
        by_shard: dict[int, list[Taken]] = {}
        for item in taken:
            by_shard.setdefault(item.shard, []).append(item)
        await asyncio.gather(*(self._forget(shard, items) for shard, items in by_shard.items()))

    async def _forget(self, shard: int, items: list[Taken]) -> None:
        """Delete and acknowledge. Entries that are gone already mean that the store lost its data after they were read:
        then counters may have been rebuilt without them, and must be again."""
        places = [item.place for item in items]
        deleted = await self.store.command("XDEL", stream_key(shard), *places)
        if deleted < sum(not item.was_deleted for item in items):
            logger.warning(
                "the store lost events that are written now; its counters are rebuilt", extra={"shard": shard}
            )
            await self.store.command("DEL", epoch_key(shard))
        await self.store.command("XACK", stream_key(shard), GROUP, *places)


def _close_connection() -> None:
    """Of the thread that this runs in."""
    connection.close()
