"""While the store is away: rates by this worker's share or refused, budgets refused unless opted out. Nothing hangs."""

import asyncio
import time
from collections import Counter

import msgspec
import pytest

from proxy.admission import read_limits
from proxy.config import Config
from proxy.errors import GatewayError, Unavailable
from proxy.redis_store import RedisStore
from proxy.settle import record, settle
from proxy.spool import spool_of
from tests.proxy.limits.conftest import Side, ask, budget, details_of, entry, make_tenant, quota, until, warm
from tests.proxy.limits.own_redis import own_redis


@pytest.fixture
def redis(tmp_path):
    with own_redis(tmp_path) as server:
        yield server


@pytest.fixture
async def frail(redis, tmp_path):
    """A caller's side on a Redis that the test can freeze."""
    store = RedisStore(redis.url)
    await store.start()
    side = Side(store, Config(redis_url=redis.url, spool_dir=str(tmp_path / "spool"), workers=4))
    yield side
    redis.thaw()
    spool_of(side.config).close()
    await store.close()


async def outcome(side, tenant, **fields):
    try:
        admitted = await ask(side, tenant, **fields)
    except GatewayError as error:
        return error.code
    return "degraded" if admitted.degraded else "ok"


async def burst(side, tenant, count, **fields):
    return Counter(await asyncio.gather(*(outcome(side, tenant, **fields) for _ in range(count))))


def with_policy(side, **policies):
    side.config = msgspec.structs.replace(side.config, **policies)


async def until_back(side):
    await until(lambda: side.store.up and not side.store._later)


async def test_rates_fall_back_to_this_workers_share(frail, redis):
    tenant = make_tenant(limits={"rpm": 40, "tpm": 4000, "concurrency": 400})
    redis.freeze()
    assert await burst(frail, tenant, 100) == {"degraded": 10, "rate_limit_exceeded": 90}


async def test_a_local_share_refuses_with_details_and_gives_places_back(frail, redis):
    tenant = make_tenant(limits={"concurrency": 4})
    redis.freeze()
    admitted = await ask(frail, tenant)
    assert admitted.states == []
    with pytest.raises(GatewayError) as refused:
        await ask(frail, tenant)
    assert refused.value.code == "concurrency_limit_exceeded"
    assert details_of(refused)["limit"] == 4
    await settle(frail, admitted, tokens=1, cost_nano=0, entry=entry(admitted.event_id, admitted.now_ms))
    await ask(frail, tenant)


async def test_rates_may_fail_closed(frail, redis):
    with_policy(frail, rate_limit_failure_policy="fail_closed")
    tenant = make_tenant(limits={"rpm": 40})
    redis.freeze()
    assert await burst(frail, tenant, 5) == {"rate_limit_unavailable": 5}
    assert await burst(frail, make_tenant(), 5) == {"degraded": 5}, "a caller without limits has nothing to wait for"


@pytest.mark.parametrize("counted", [{"budgets": (budget(10**9),)}, {"quotas": (quota(10**9),)}])
async def test_budgets_and_quotas_fail_closed(frail, redis, counted):
    tenant = await warm(frail, make_tenant(limits={"rpm": 1000}, **counted))
    redis.freeze()
    began = time.monotonic()
    assert await burst(frail, tenant, 50) == {"budget_unavailable": 50}
    assert time.monotonic() - began < 0.15
    with pytest.raises(Unavailable) as refused:
        await ask(frail, tenant)
    assert (refused.value.status, refused.value.retry_after_ms) == (503, 1000)


async def test_no_hold_is_left_by_an_admission_that_timed_out(frail, redis):
    """The frozen store executes what lies in its socket when it goes on: that must come to nothing."""
    tenant = await warm(frail, make_tenant(limits={"rpm": 50, "concurrency": 50}, budgets=(budget(10**9),)))
    redis.freeze()
    assert await burst(frail, tenant, 30) == {"budget_unavailable": 30}
    redis.thaw()
    await until_back(frail)
    states = await read_limits(frail.store, tenant, None)
    assert [(state.kind, state.used, state.reserved) for state in states] == [
        ("requests", 0, 0),
        ("concurrency", 0, 0),
        ("budget", 0, 0),
    ]


async def test_a_request_served_while_the_store_was_away_is_charged_when_it_is_back(frail, redis):
    with_policy(frail, budget_failure_policy="fail_open")
    tenant = await warm(frail, make_tenant(limits={"concurrency": 4}, budgets=(budget(10**9),)))
    redis.freeze()
    admitted = await ask(frail, tenant, worst_nano=100)
    assert admitted.degraded
    await settle(frail, admitted, tokens=1, cost_nano=70, entry=entry(admitted.event_id, admitted.now_ms))
    await record(frail, tenant.shard, entry("refused-1", 1, status="refused"))
    redis.thaw()
    await until_back(frail)
    for _ in range(3):
        await spool_of(frail.config).replay(frail.store)
    states = await read_limits(frail.store, tenant, None)
    assert [(state.used, state.reserved) for state in states] == [(0, 0), (70, 0)]
    assert sorted(event["id"] for event in await frail.events(tenant)) == sorted([admitted.event_id, "refused-1"])


@pytest.mark.parametrize("frozen_first", [True, False], ids=["never sent", "outcome unknown"])
async def test_a_settlement_during_the_outage_is_made_once_after_it(frail, redis, frozen_first):
    tenant = await warm(frail, make_tenant(limits={"concurrency": 4, "tpm": 1000}, budgets=(budget(10**9),)))
    admitted = await ask(frail, tenant, worst_nano=100)
    redis.freeze()
    if frozen_first:
        assert await outcome(frail, tenant) == "budget_unavailable"
        assert not frail.store.up
    await settle(frail, admitted, tokens=10, cost_nano=70, entry=entry(admitted.event_id, admitted.now_ms))
    redis.thaw()
    await until_back(frail)
    await spool_of(frail.config).replay(frail.store)
    states = await read_limits(frail.store, tenant, None)
    assert [(state.used, state.reserved) for state in states][1:] == [(0, 0), (70, 0)]
    assert {event["id"] for event in await frail.events(tenant)} == {admitted.event_id}


async def test_a_store_without_memory_is_as_good_as_away_and_does_nothing_by_halves(frail):
    tenant = await warm(frail, make_tenant(limits={"rpm": 100, "concurrency": 9}, budgets=(budget(10**9),)))
    admitted = await ask(frail, tenant)
    await frail.command("CONFIG", "SET", "maxmemory", "1")
    assert await outcome(frail, tenant) == "budget_unavailable"
    await settle(frail, admitted, tokens=1, cost_nano=7, entry=entry(admitted.event_id, admitted.now_ms))
    await frail.command("CONFIG", "SET", "maxmemory", "0")
    await spool_of(frail.config).replay(frail.store)
    states = await read_limits(frail.store, tenant, None)
    assert [(state.kind, state.used, state.reserved) for state in states] == [
        ("requests", 1, 0),
        ("concurrency", 0, 0),
        ("budget", 7, 0),
    ]
    assert {event["id"] for event in await frail.events(tenant)} == {admitted.event_id}
