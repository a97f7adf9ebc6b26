"""The data plane's life in a process: it starts the store, the providers' side and the loops beside the requests.

Loops: the configuration's version is polled four times a second, so a change (a revoked key, a lower limit) is in force
on every worker within a second; with the embedded store this process also drains events, sweeps and rebuilds.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import Error as DatabaseError
from django.db import close_old_connections, connections

from proxy import rebuild, snapshot_loader, spool
from proxy.config import Config
from proxy.drain import Drain
from proxy.errors import StoreUnavailable, Unavailable
from proxy.metrics import Meters
from proxy.plane import DataPlane
from proxy.redis_store import open_store
from proxy.snapshot import KeySpec
from proxy.upstream import Upstream
from tenants.config_version import current_config_version
from tenants.shards import SHARDS

logger = logging.getLogger(__name__)

#: How often the configuration's version is looked at (seconds): well under the second a revocation may take.
POLL_SECONDS = 0.25
#: Keys held in memory from the start; others are loaded when they first call.
PRELOADED_KEYS = 50_000
#: How long a start waits for the counters to be put back (seconds).
REBUILD_SECONDS = 3.0
#: Threads that ask the database: the snapshot, keys, nothing slow.
DATABASE_THREADS = 4

Job = Callable[["Runtime"], Coroutine[Any, Any, None]]


class Runtime:
    """One per process and event loop."""

    def __init__(self, config: Config, jobs: tuple[Job, ...] = ()) -> None:
        self.config = config
        self.jobs = jobs
        self.loop = asyncio.get_running_loop()
        self.database = ThreadPoolExecutor(DATABASE_THREADS, thread_name_prefix="tollbar-db")
        self.store = open_store(config)
        self.plane = DataPlane(
            config=config,
            store=self.store,
            upstream=Upstream(),
            meters=Meters(),
            lookup_key=self.lookup_key,
            on_cold=self.on_cold,
        )
        self.rebuilding: set[int] = set()
        self.tasks: list[asyncio.Task[None]] = []
        self.drain: Drain | None = None

    @property
    def snapshot(self) -> Any:
        return self.plane.snapshot

    @property
    def keys(self) -> Any:
        return self.plane.keys

    async def start(self) -> None:
        await self.plane.upstream.start()
        await self.store.start()
        await self.reload()
        if not self.config.redis_url:
            self.drain = Drain(self.store, range(SHARDS))
            self.spawn(self.drain.run())
        await self.rebuild_all()
        self.spawn(self.poll())
        self.spawn(spool.replay_forever(self.store, self.config))
        for job in self.jobs:
            self.spawn(job(self))
        # What is loaded now stays: the collector need not walk it again. And it looks after 50,000 new objects, not
        # after 700: requests leave little in cycles, and looking for it took a quarter of the time.
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)

    async def stop(self) -> None:
        """End the loops; what the embedded store holds is drained first."""
        self.plane.draining = True
        if self.drain is not None:
            await self.drain.finish()
        tasks = list(self.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.plane.upstream.close()
        await self.store.close()
        await self.close_connections()
        self.database.shutdown(wait=False)

    def spawn(self, job: Coroutine[Any, Any, None], name: str | None = None) -> None:
        """Run `job` beside the requests until `stop`; its failure is logged."""
        task = self.loop.create_task(job, name=name)
        task.add_done_callback(self.ended)
        self.tasks.append(task)

    def ended(self, task: asyncio.Task[None]) -> None:
        if task in self.tasks:
            self.tasks.remove(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a loop of the data plane ended", exc_info=error)

    # ---------------------------------------------------------------- configuration

    async def in_database(self, function: Callable[..., Any], *args: Any) -> Any:
        """Run `function` in a database thread."""
        return await self.loop.run_in_executor(self.database, _with_fresh_connection, function, *args)

    async def close_connections(self) -> None:
        """A connection belongs to its thread: each database thread closes its own. The barrier brings all to work."""
        barrier = threading.Barrier(DATABASE_THREADS)

        def close() -> None:
            with contextlib.suppress(threading.BrokenBarrierError):
                barrier.wait(1)
            connections.close_all()

        await asyncio.gather(*(self.loop.run_in_executor(self.database, close) for _ in range(DATABASE_THREADS)))

    async def poll(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            try:
                if await self.in_database(current_config_version) != self.plane.snapshot.version:
                    await self.reload()
            except DatabaseError as error:
                logger.warning("configuration not readable, the last one stays", extra={"why": str(error)[:200]})

    async def reload(self) -> None:
        """Take the current configuration, and the keys that changed since the one in force, in one step."""
        before = self.plane.snapshot.version
        started = time.perf_counter()
        # The snapshot (and with it the version) first: a key that changes between the two reads is then read now or
        # belongs to a newer version. The other way round its change would be missed for good.
        snapshot = await self.in_database(snapshot_loader.load_snapshot)
        keys = await self.in_database(snapshot_loader.load_keys, before or None, PRELOADED_KEYS)
        self.plane.keys.replace(keys)
        self.plane.snapshot = snapshot
        self.plane.meters.models = snapshot.models
        logger.info(
            "configuration loaded",
            extra={"version": snapshot.version, "ms": int((time.perf_counter() - started) * 1000)},
        )

    async def lookup_key(self, digest: bytes) -> KeySpec | None:
        try:
            key: KeySpec | None = await self.in_database(snapshot_loader.load_key_by_digest, digest.hex())
        except DatabaseError:
            raise Unavailable(
                "The key cannot be checked at the moment.", code="rate_limit_unavailable", retry_after_ms=1000
            ) from None
        if key is not None and key.tenant_id not in self.plane.snapshot.tenants:
            await self.reload()
        return key

    # ---------------------------------------------------------------- counters

    def on_cold(self, shard: int) -> None:
        """A shard's counters are gone: rebuild them once, beside the requests."""
        if shard not in self.rebuilding:
            self.rebuilding.add(shard)
            self.spawn(self.rebuild(shard), name=f"rebuild-{shard}")

    async def rebuild(self, shard: int) -> None:
        try:
            await rebuild.rebuild_shard(self.store, self.plane.snapshot, shard)
        except (DatabaseError, StoreUnavailable) as error:
            logger.warning("counters not rebuilt yet", extra={"shard": shard, "why": str(error)[:200]})
        finally:
            self.rebuilding.discard(shard)

    async def rebuild_all(self) -> None:
        """All shards, as far as it goes quickly: the rest is done beside the first requests."""
        for shard in range(SHARDS):
            self.on_cold(shard)
        pending = [task for task in self.tasks if task.get_name().startswith("rebuild")]
        if pending:
            await asyncio.wait(pending, timeout=REBUILD_SECONDS)


def _with_fresh_connection(function: Callable[..., Any], *args: Any) -> Any:
    """PostgreSQL keeps a thread's connection while it works: opening one four times a second is felt by requests."""
    for connection in connections.all(initialized_only=True):
        if connection.vendor == "postgresql":
            connection.close_at = None
    close_old_connections()
    return function(*args)


class _Process:
    """What the process holds: its settings, set by `configure`, and the runtime of its loop."""

    config: Config | None = None
    jobs: tuple[Job, ...] = ()
    runtime: Runtime | None = None
    starting: asyncio.Task[None] | None = None


def configure(config: Config, *jobs: Job) -> None:
    """Say with which settings (and further background jobs) the runtime of this process will start."""
    _Process.config, _Process.jobs = config, jobs


def current() -> Runtime:
    """The running runtime. Raises RuntimeError before `ensure_started`."""
    if _Process.runtime is None:
        raise RuntimeError("the data plane has not started in this process")
    return _Process.runtime


async def ensure_started() -> DataPlane:
    """The data plane of this process, started at the first call (servers without lifespan events come here)."""
    runtime = _Process.runtime
    if runtime is not None and (_Process.starting is None or _Process.starting.done()):
        return runtime.plane
    if runtime is None:
        if _Process.config is None:
            raise RuntimeError("proxy.runtime.configure was not called")
        runtime = _Process.runtime = Runtime(_Process.config, _Process.jobs)
        _Process.starting = asyncio.ensure_future(runtime.start())
    assert _Process.starting is not None
    await asyncio.shield(_Process.starting)
    return runtime.plane


async def shut_down() -> None:
    """End the runtime of this process, if it has one."""
    runtime, _Process.runtime, _Process.starting = _Process.runtime, None, None
    if runtime is not None:
        await runtime.stop()
