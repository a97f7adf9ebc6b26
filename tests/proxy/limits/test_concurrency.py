"""Requests in flight: places that are leases, so that a killed worker leaks none."""

import asyncio
from collections import Counter

import pytest

from proxy.admission import read_limits
from proxy.errors import RateLimited
from proxy.settle import extend, settle
from tests.proxy.limits.conftest import ask, details_of, entry, make_key, make_tenant, wait_of


async def finish(side, admitted):
    await settle(side, admitted, tokens=1, cost_nano=1, entry=entry(admitted.event_id, admitted.now_ms))


async def test_100_at_once_on_7_places_admit_exactly_7(side):
    tenant = make_tenant(limits={"concurrency": 7})
    outcomes = await asyncio.gather(*(ask(side, tenant) for _ in range(100)), return_exceptions=True)
    assert Counter(type(outcome).__name__ for outcome in outcomes) == {"Admitted": 7, "RateLimited": 93}


async def test_a_place_is_free_as_soon_as_its_request_is_settled(side):
    tenant = make_tenant()
    key = make_key(tenant, limits={"concurrency": 1, "rpm": 2})
    first = await ask(side, tenant, key)
    with pytest.raises(RateLimited) as refused:
        await ask(side, tenant, key)
    assert refused.value.code == "concurrency_limit_exceeded"
    assert wait_of(refused) == 1000
    await finish(side, first)
    await ask(side, tenant, key)  # the refused request took none of the two per minute


async def test_a_refusal_names_when_the_first_place_is_free_at_the_latest(side):
    tenant = make_tenant(limits={"concurrency": 2})
    now_ms = side.store.now_ms()
    for wait_ms in (90_000, 30_000):
        await ask(side, tenant, deadline_ms=now_ms + wait_ms)
    with pytest.raises(RateLimited) as refused:
        await ask(side, tenant)
    details = details_of(refused)
    assert (details["used"], details["limit"], details["window"]) == (2, 2, "now")
    seconds = (now_ms + 30_000) // 1000 % 60
    assert details["resets_at"].endswith(f"{seconds:02d}.{now_ms % 1000:03d}Z")


async def test_a_lease_ends_at_its_deadline_without_anybody(side):
    tenant = make_tenant(limits={"concurrency": 1})
    await ask(side, tenant, deadline_ms=side.store.now_ms() + 80)
    with pytest.raises(RateLimited):
        await ask(side, tenant)
    await asyncio.sleep(0.09)
    await ask(side, tenant)
    assert (await read_limits(side.store, tenant, None))[0].used == 1


async def test_a_request_that_goes_on_keeps_its_place(side):
    tenant = make_tenant(limits={"concurrency": 1})
    admitted = await ask(side, tenant, deadline_ms=side.store.now_ms() + 80)
    assert await extend(side, admitted, side.store.now_ms() + 60_000)
    await asyncio.sleep(0.09)
    with pytest.raises(RateLimited):
        await ask(side, tenant)
    await finish(side, admitted)
    await ask(side, tenant)


async def test_a_settled_request_cannot_be_extended(side):
    tenant = make_tenant(limits={"concurrency": 1})
    admitted = await ask(side, tenant)
    await finish(side, admitted)
    admitted.settled = False  # as another process would see it
    assert not await extend(side, admitted, side.store.now_ms() + 60_000)
    assert (await read_limits(side.store, tenant, None))[0].used == 0
