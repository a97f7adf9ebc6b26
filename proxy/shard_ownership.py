"""Which shards this process works on: a lock in the store for each, which its owner renews.

Two owners at once (a process that was stopped and goes on) do no harm: what they do is idempotent.
"""

from __future__ import annotations

import asyncio
import os
import uuid

from proxy.redis_keys import drain_lock_key
from proxy.store import Store

#: How long an owner may be silent before another takes its shard (ms), and how often it says that it lives (seconds).
OWNER_MS, RENEW_SECONDS = 10_000, 3.0
#: How often free shards are asked for (seconds).
ASK_SECONDS = 1.0


class ShardOwnership:
    """`owned`: the shards of `shards` that this process holds."""

    def __init__(self, store: Store, shards: tuple[int, ...]) -> None:
        self.store = store
        self.shards = shards
        self.name = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.owned: list[int] = []
        self._renewed = self._asked = float("-inf")

    async def renew(self) -> list[int]:
        """Renew what is owned and take what is free, when it is time to; gives the shards that are newly owned."""
        now = asyncio.get_running_loop().time()
        wanted: list[int] = []
        if now - self._renewed >= RENEW_SECONDS:
            self._renewed = self._asked = now
            wanted = list(self.shards)
        elif now - self._asked >= ASK_SECONDS:
            self._asked = now
            wanted = [shard for shard in self.shards if shard not in self.owned]
        if not wanted:
            return []
        held = await asyncio.gather(*(self._hold(shard) for shard in wanted))
        holding = {shard for shard, is_held in zip(wanted, held, strict=True) if is_held}
        fresh = sorted(holding.difference(self.owned))
        kept = [shard for shard in self.owned if shard in holding or shard not in wanted]
        self.owned = sorted([*kept, *fresh])
        return fresh

    async def _hold(self, shard: int) -> bool:
        key = drain_lock_key(shard)
        if await self.store.command("SET", key, self.name, "NX", "PX", str(OWNER_MS)):
            return True
        if await self.store.command("GET", key) != self.name.encode():
            return False
        return bool(await self.store.command("PEXPIRE", key, str(OWNER_MS)))

    async def release(self) -> None:
        """Let others take our shards at once."""
        for shard in self.owned:
            key = drain_lock_key(shard)
            if await self.store.command("GET", key) == self.name.encode():
                await self.store.command("DEL", key)
        self.forget()

    def forget(self) -> None:
        """Whatever we had is asked for anew."""
        self.owned = []
        self._renewed = self._asked = float("-inf")
