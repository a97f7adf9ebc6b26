"""Settlement is idempotent, tells thresholds once, and stays right when the store lost what it held."""

import asyncio

import pytest

from proxy import spool
from proxy.admission import read_limits
from proxy.redis_keys import epoch_key, late_key, open_key, record_key
from proxy.redis_scripts import RESTORE, SETTLE
from proxy.reservation import open_reservations
from proxy.settle import record, settle
from tests.proxy.limits.conftest import ask, budget, entry, make_tenant, quota, warm


async def spend(side, tenant, nano, *, held=100):
    """Admit and settle one request; gives what settlement told."""
    admitted = await ask(side, tenant, worst_nano=held)
    return await settle_for(side, admitted, nano)


async def settle_for(side, admitted, nano, tokens=10):
    return await settle(
        side, admitted, tokens=tokens, cost_nano=nano, entry=entry(admitted.event_id, admitted.now_ms, cost=nano)
    )


async def numbers(side, tenant):
    return [(state.used, state.reserved) for state in await read_limits(side.store, tenant, None)]


async def lose(side, tenant):
    """The store loses everything it has of the tenant's shard."""
    await side.command("DEL", *await side.command("KEYS", f"tb:{{s{tenant.shard}}}*"))


async def test_settling_releases_everything_and_writes_one_event(side):
    tenant = await warm(
        side, make_tenant(limits={"concurrency": 5, "tpm": 1000}, quotas=(quota(500),), budgets=(budget(500),))
    )
    admitted = await ask(side, tenant, expected_tokens=100, worst_tokens=200, worst_nano=300)
    assert [event for event, _ in await open_reservations(side.store, tenant.shard)] == [admitted.event_id]
    await settle_for(side, admitted, 30, tokens=20)
    tokens, places, quota_left, money = await numbers(side, tenant)
    assert tokens in ((20, 0), (19, 0))
    assert (places, quota_left, money) == ((0, 0), (20, 0), (30, 0))
    assert [event["id"] for event in await side.events(tenant)] == [admitted.event_id]
    assert await open_reservations(side.store, tenant.shard) == []
    assert await side.command("EXISTS", record_key(tenant.shard, admitted.event_id), open_key(tenant.shard)) == 0


async def test_settling_twice_changes_nothing(side):
    tenant = await warm(side, make_tenant(budgets=(budget(500),)))
    admitted = await ask(side, tenant)
    await settle_for(side, admitted, 30)
    await settle_for(side, admitted, 30)
    assert await numbers(side, tenant) == [(30, 0)]
    assert len(await side.events(tenant)) == 1


@pytest.mark.parametrize("mode", ["again", "spooled", "unheld", "sweep"])
async def test_repeating_a_settlement_in_any_way_charges_once(side, mode):
    tenant = await warm(side, make_tenant(limits={"tpm": 1000}, budgets=(budget(500),)))
    admitted = await ask(side, tenant, deadline_ms=side.store.now_ms() - 1)
    keys, args = call_of(admitted, "sweep" if mode == "sweep" else "spooled" if mode == "spooled" else "unheld", 30)
    await side.store.run(SETTLE, keys, args)
    args[1] = mode
    for _ in range(20):
        await side.store.run(SETTLE, keys, args)
    assert (await numbers(side, tenant))[1] == (30, 0)
    assert {event["id"] for event in await side.events(tenant)} == {admitted.event_id}


def call_of(admitted, mode, nano):
    bound = admitted.holds
    keys = [record_key(admitted.shard, admitted.event_id), bound.open, bound.stream, bound.epoch, bound.late]
    args = [admitted.event_id, mode, admitted.deadline_ms, entry(admitted.event_id, admitted.now_ms)]
    for rule in bound.hold_rules:
        held = admitted.tokens if rule.kind == "tokens" else admitted.nano
        used = 10 if rule.kind == "tokens" else nano
        args += [rule.counting, rule.limit, held, used, "0"]
    return keys + bound.settle_keys, args


async def test_each_threshold_is_told_once_a_period(side):
    tenant = await warm(side, make_tenant(budgets=(budget(100, warn_at=(50, 80)),), quotas=(quota(35),)))
    told = [
        [(crossed.kind, crossed.percent) for crossed in await spend(side, tenant, nano, held=nano)]
        for nano in (49, 1, 40)
    ]
    assert told == [[], [("budget", 50)], [("budget", 80)]]
    with pytest.raises(Exception, match="35 tokens"):
        await spend(side, tenant, 1, held=1)


async def test_one_settlement_may_cross_several_thresholds(side):
    tenant = await warm(side, make_tenant(budgets=(budget(100, warn_at=(80, 95)),)))
    told = await spend(side, tenant, 100)
    assert [crossed.percent for crossed in told] == [80, 95, 100]
    assert (told[0].limit, told[0].scope, told[0].window) == (100, "tenant", "total")


async def test_thresholds_are_told_by_one_of_many_at_once(side):
    tenant = await warm(side, make_tenant(budgets=(budget(1000, warn_at=(80,)),)))
    told = await asyncio.gather(*(spend(side, tenant, 10, held=10) for _ in range(100)))
    assert sorted(crossed.percent for some in told for crossed in some) == [80, 100]


async def test_a_request_whose_reservation_the_store_lost_is_charged_after_the_rebuild(side):
    tenant = await warm(side, make_tenant(limits={"concurrency": 3}, budgets=(budget(500),)))
    admitted = await ask(side, tenant)
    await lose(side, tenant)
    await warm(side, tenant)
    await settle_for(side, admitted, 40)
    assert await numbers(side, tenant) == [(0, 0), (40, 0)]
    assert len(await side.events(tenant)) == 1


async def test_before_the_rebuild_only_the_event_is_written_and_the_rebuild_must_see_it(side):
    tenant = await warm(side, make_tenant(budgets=(budget(500),)))
    admitted = await ask(side, tenant)
    counter = admitted.holds.keys[0]
    await lose(side, tenant)
    await settle_for(side, admitted, 40)
    assert await side.command("EXISTS", counter) == 0
    (event,) = await side.command("XRANGE", admitted.holds.stream, "-", "+")
    keys = [epoch_key(tenant.shard), late_key(tenant.shard), counter]
    assert (await side.store.run(RESTORE, keys, ["new", "0-0", 0, 0]))[0] == b"late"
    assert (await side.store.run(RESTORE, keys, ["new", event[0], 40, 0]))[0] == b"restored"
    assert (await side.store.run(RESTORE, keys, ["other", event[0], 7, 0]))[0] == b"warm"
    assert await numbers(side, tenant) == [(40, 0)]
    assert await side.command("GET", epoch_key(tenant.shard)) == b"new"


async def test_after_its_deadline_a_lost_reservation_is_not_charged_again(side):
    """The sweeper charged it in full; a worker that comes late must not charge it a second time."""
    tenant = await warm(side, make_tenant(budgets=(budget(500),)))
    admitted = await ask(side, tenant, deadline_ms=side.store.now_ms() + 20)
    await asyncio.sleep(0.03)
    keys, args = call_of(admitted, "sweep", 100)
    await side.store.run(SETTLE, keys, args)
    await settle_for(side, admitted, 40)
    assert await numbers(side, tenant) == [(100, 0)]


async def test_a_refusal_is_recorded_in_its_shards_stream(side):
    tenant = make_tenant()
    await record(side, tenant.shard, entry("e1", 1, status="refused"))
    assert [event["event"]["status"] for event in await side.events(tenant)] == ["refused"]
    assert not spool.spool_of(side.config).has_lines
