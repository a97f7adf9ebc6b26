"""The store without a service: fakeredis with Lua, in this process, the same scripts as on a real Redis.

A call runs at once on the event loop's thread; nothing else may use the store. What it holds dies with the process:
counters are rebuilt from the ledger at start, exactly as after a loss of Redis.

fakeredis compiles a script at every call, which takes longer than running it. So each script is compiled once, into a
function that is kept in the `redis` table of its Lua, and what is called is one line that calls the function.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from fakeredis import FakeServer, FakeStrictRedis
from redis.exceptions import NoScriptError, ResponseError

from proxy.redis_scripts import SCRIPTS, Script
from proxy.store import Argument, Store, StoreError


class EmbeddedStore(Store):
    """See `proxy.store.Store`. Stores made with the same `server` share their data."""

    def __init__(self, server: FakeServer | None = None) -> None:
        super().__init__()
        self._redis = FakeStrictRedis(server=server or FakeServer(), protocol=2)
        self._redis.response_callbacks.clear()  # replies as the protocol has them, as from RedisStore
        self._shas: dict[Script, bytes] = {}
        self._call: Callable[..., Any] = self._redis.execute_command

    def now_ms(self) -> int:
        """Its TIME is this machine's clock."""
        return time.time_ns() // 1_000_000

    def observe_clock(self, now_ms: int) -> None:
        """Nothing to learn: there is one clock."""

    async def start(self) -> None:
        for script in SCRIPTS:
            self._call("EVAL", f"redis.{script.name} = function()\n{script.text}\nend", 0)
            self._shas[script] = self._call("SCRIPT LOAD", f"return redis.{script.name}()")
        self.up = True
        self.spawn(self.came_up())

    async def close(self) -> None:
        self.up = False
        await self._end_tasks()
        self._redis.close()

    async def command(self, *args: Argument) -> Any:
        try:
            return self._call(*args)
        except ResponseError as error:
            raise StoreError(str(error)) from None

    async def run(self, script: Script, keys: Sequence[str], args: Sequence[Argument]) -> Any:
        try:
            return self._call("EVALSHA", self._shas[script], len(keys), *keys, *args)
        except NoScriptError:
            return await self.command("EVAL", f"return redis.{script.name}()", len(keys), *keys, *args)
        except ResponseError as error:
            raise StoreError(str(error)) from None
