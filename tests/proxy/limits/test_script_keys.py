"""Redis Cluster runs a script only when all its keys lie in one slot: every key of every call is looked at."""

import pytest
from redis.crc import key_slot

from proxy.admission import read_limits
from proxy.redis_scripts import SCRIPTS
from proxy.settle import extend, settle
from proxy.store import Store, StoreError
from proxy.sweeper import sweep
from tenants.shards import SHARDS
from tests.proxy.limits.conftest import Side, ask, budget, entry, make_key, make_tenant, quota, warm


class Watched(Store):
    """The embedded store, with a list of what scripts were given."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store, self.up = store, True
        self.calls: list[tuple[str, tuple[str, ...]]] = []

    def now_ms(self) -> int:
        return self.store.now_ms()

    async def run(self, script, keys, args):
        self.calls.append((script.name, tuple(keys)))
        return await self.store.run(script, keys, args)

    async def command(self, *args):
        return await self.store.command(*args)


async def test_all_keys_of_a_script_lie_in_one_slot(side):
    watched = Watched(side.store)
    side = Side(watched, side.config)
    for shard in range(SHARDS):
        limits = {"rpm": 9, "tpm": 900, "concurrency": 9, "user_rpm": 9, "user_tpm": 900}
        budgets = tuple(budget(10**9, scope=scope, per="month") for scope in ("tenant", "key", "user"))
        quotas = (quota(10**6, per="day"),)
        tenant = await warm(side, make_tenant(limits=limits, quotas=quotas, budgets=budgets, shard=shard))
        key = make_key(tenant, limits=limits | {"algorithm": "sliding_window"}, quotas=(quota(10**6),), budgets=budgets)
        first, second = [await ask(side, tenant, key, user=user) for user in ("ann", "{s99}")]
        await extend(side, first, side.store.now_ms() + 90_000)
        await read_limits(watched, tenant, key, "ann")
        await settle(side, first, tokens=1, cost_nano=1, entry=entry(first.event_id, first.now_ms))
        await ask(side, tenant, key, deadline_ms=side.store.now_ms() - 1)
        await sweep(watched, shard)
        await settle(side, second, tokens=1, cost_nano=1, entry=entry(second.event_id, second.now_ms))
    slots = {keys: {key_slot(key.encode()) for key in keys} for _, keys in watched.calls}
    assert [keys for keys, found in slots.items() if len(found) != 1] == []
    assert len({slot for found in slots.values() for slot in found}) == SHARDS, "shards share slots"
    assert {name for name, _ in watched.calls} == {"admit", "settle", "extend", "read_limits"}


def test_shards_lie_in_different_slots():
    assert len({key_slot(f"tb:{{s{shard:02d}}}:epoch".encode()) for shard in range(SHARDS)}) == SHARDS


@pytest.mark.parametrize(("keys", "args"), [((), ()), (("a",) * 9, ("1",) * 8)], ids=["nothing", "too much"])
async def test_a_call_with_the_wrong_number_of_arguments_is_refused_by_every_script(side, keys, args):
    for script in SCRIPTS:
        with pytest.raises(StoreError, match=script.name):
            await side.store.run(script, [f"tb:{{s00}}:{key}" for key in keys], args)
