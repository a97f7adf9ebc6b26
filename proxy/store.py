"""What every store of the data plane does: batched calls, a clock, and news of its loss and return."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from proxy.errors import StoreUnavailable
from proxy.redis_scripts import Script

logger = logging.getLogger(__name__)

Argument = str | bytes | int
OnUp = Callable[[], Awaitable[None]]


class StoreError(Exception):
    """The store understood a call and refused it. `code` is the first word of its answer (BUSYGROUP, WRONGTYPE...)."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.code = text.partition(" ")[0]


class OutcomeUnknown(StoreUnavailable):
    """The store was lost after a call was handed to it: it may have been executed, or may be later."""


class Store:
    """Base of RedisStore and EmbeddedStore. One per process and event loop; every call comes from the loop's thread.

    `up`     whether calls can succeed now; while it is False they raise StoreUnavailable at once
    `on_up`  called (one after the other) each time the store came, or came back
    """

    #: The store's clock counts as set back when a reply is this far behind it (ms).
    CLOCK_STEP_MS = 1000

    def __init__(self) -> None:
        self.up = False
        self.on_up: list[OnUp] = []
        self._later: dict[tuple[str, str], tuple[Script, Sequence[str], Sequence[Argument]]] = {}
        self._offset_ms = time.time() * 1000 - time.monotonic() * 1000
        self._tasks: set[asyncio.Task[None]] = set()

    def now_ms(self) -> int:
        """Epoch milliseconds by the store's clock."""
        return int(time.monotonic() * 1000 + self._offset_ms)

    def observe_clock(self, now_ms: int) -> None:
        """Learn from a reply that carried the store's time: it is at least that now."""
        ahead = now_ms - (time.monotonic() * 1000 + self._offset_ms)
        if ahead > 0 or ahead < -self.CLOCK_STEP_MS:
            self._offset_ms += ahead

    async def start(self) -> None:
        """Connect. Returns also when the store is away (then it goes on trying)."""
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError

    async def command(self, *args: Argument) -> Any:
        """One Redis command; the reply as the protocol has it (bytes, int, None, lists). None that block."""
        raise NotImplementedError

    async def run(self, script: Script, keys: Sequence[str], args: Sequence[Argument]) -> Any:
        """One script. Raises StoreUnavailable (OutcomeUnknown when it may have run), StoreError for a wrong call."""
        raise NotImplementedError

    def run_later(self, script: Script, keys: Sequence[str], args: Sequence[Argument]) -> None:
        """Run an idempotent script beside the caller: now, or when the store is back (while this process lives)."""
        name = (script.name, keys[0])
        self._later[name] = (script, keys, args)
        if self.up:
            self.spawn(self._run_one(name))

    def spawn(self, job: Awaitable[None]) -> None:
        """Run `job` beside the callers; close() cancels it."""
        task = asyncio.ensure_future(job)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def came_up(self) -> None:
        """Do what waited for the store, then tell `on_up`."""
        for name in list(self._later):
            await self._run_one(name)
        for callback in list(self.on_up):
            await callback()

    async def _run_one(self, name: tuple[str, str]) -> None:
        waiting = self._later.get(name)
        if waiting is None:
            return
        try:
            await self.run(*waiting)
        except StoreUnavailable:
            return  # it waits for the next time
        except StoreError as error:
            logger.error("a call that waited for the store was refused", extra={"script": name[0], "why": str(error)})
        if self._later.get(name) is waiting:
            del self._later[name]

    async def _end_tasks(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
