"""Reservations of killed workers are charged in full at their deadline, with their event."""

import asyncio
from typing import Any

from proxy.admission import read_limits
from proxy.settle import extend, settle
from proxy.sweeper import sweep
from tests.proxy.limits.conftest import ask, budget, entry, make_tenant, quota, warm


def rules():
    return {"limits": {"concurrency": 9, "tpm": 1000}, "quotas": (quota(5000),), "budgets": (budget(5000),)}


async def numbers(side, tenant):
    return [(state.used, state.reserved) for state in await read_limits(side.store, tenant, None)][1:]


async def test_what_nobody_settled_is_charged_in_full_as_indeterminate(side):
    tenant = await warm(side, make_tenant(**rules()))
    amounts: Any = {"expected_tokens": 30, "worst_tokens": 200, "worst_nano": 700}
    admitted = await ask(side, tenant, deadline_ms=side.store.now_ms() + 20, **amounts)
    assert await sweep(side.store, tenant.shard) == 0
    await asyncio.sleep(0.03)
    assert await sweep(side.store, tenant.shard) == 1
    assert await numbers(side, tenant) == [(0, 0), (200, 0), (700, 0)]
    (event,) = await side.events(tenant)
    assert (event["id"], event["charged"], event["cost_nano"]) == (admitted.event_id, True, 700)
    told = event["event"]
    assert (told["status"], told["usage_source"], told["cost_usd"]) == ("indeterminate", "estimated", "0.0000007")
    assert told["input_tokens"] + told["output_tokens"] == 30
    assert told["latency_ms"] >= 20


async def test_without_a_price_the_cost_stays_unknown(side):
    tenant = await warm(side, make_tenant(**rules()))
    await ask(side, tenant, deadline_ms=side.store.now_ms() - 1, worst_nano=None)
    assert await sweep(side.store, tenant.shard) == 1
    (event,) = await side.events(tenant)
    assert (event["cost_nano"], event["event"]["cost_usd"]) == (None, None)


async def test_sweepers_at_the_same_time_charge_once(side):
    tenant = await warm(side, make_tenant(**rules()))
    for _ in range(9):
        await ask(side, tenant, deadline_ms=side.store.now_ms() - 1, worst_nano=10)
    swept = await asyncio.gather(*(sweep(side.store, tenant.shard) for _ in range(5)))
    assert sum(swept) == 9
    assert (await numbers(side, tenant))[-1] == (90, 0)
    assert len(await side.events(tenant)) == 9


async def test_more_than_one_batch_is_swept(side):
    tenant = await warm(side, make_tenant(budgets=(budget(5000),)))
    past = side.store.now_ms() - 1
    await asyncio.gather(*(ask(side, tenant, deadline_ms=past, worst_nano=10) for _ in range(250)))
    assert await sweep(side.store, tenant.shard) == 250
    assert [(s.used, s.reserved) for s in await read_limits(side.store, tenant, None)] == [(2500, 0)]


async def test_grace_and_extension_keep_the_sweeper_away(side):
    tenant = await warm(side, make_tenant(**rules()))
    past = side.store.now_ms() - 1
    admitted = await ask(side, tenant, deadline_ms=past)
    assert await sweep(side.store, tenant.shard, grace_ms=60_000) == 0
    assert await extend(side, admitted, past + 60_000)
    assert await sweep(side.store, tenant.shard) == 0
    assert await sweep(side.store, tenant.shard, grace_ms=-60_001) == 0, "the record's own deadline has not passed"
    await settle(side, admitted, tokens=1, cost_nano=1, entry=entry(admitted.event_id, admitted.now_ms))
    assert (await numbers(side, tenant))[-1] == (1, 0)


async def test_an_entry_whose_record_is_gone_is_only_taken_off_the_list(side):
    tenant = await warm(side, make_tenant(**rules()))
    admitted = await ask(side, tenant, deadline_ms=side.store.now_ms() - 1)
    await side.command("DEL", f"tb:{{s{tenant.shard}}}:rs:{admitted.event_id}")
    assert await sweep(side.store, tenant.shard) == 0
    assert await side.command("ZCARD", admitted.holds.open) == 0
    assert await side.events(tenant) == []
