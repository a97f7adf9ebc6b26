"""algorithm: sliding_window. In any 60 seconds no more than the limit, for requests and tokens."""

import asyncio

import msgspec
import pytest

from proxy.admission import read_limits
from proxy.errors import RateLimited
from proxy.settle import settle
from tests.proxy.limits.conftest import ask, entry, make_tenant, wait_of

WINDOW = {"algorithm": "sliding_window"}


async def age(side, tenant, by_ms):
    """Move everything in the tenant's windows `by_ms` into the past."""
    for key in await side.command("KEYS", f"tb:{{s{tenant.shard}}}:*w:*"):
        members = await side.command("ZRANGE", key, "0", "-1", "WITHSCORES")
        for member, score in zip(members[::2], members[1::2], strict=True):
            if member != b"=":
                await side.command("ZADD", key, str(int(float(score)) - by_ms), member)


async def test_100_at_once_admit_exactly_the_limit(side):
    tenant = make_tenant(limits={"rpm": 37, **WINDOW})
    admitted = await asyncio.gather(*(ask(side, tenant) for _ in range(100)), return_exceptions=True)
    assert sum(not isinstance(outcome, RateLimited) for outcome in admitted) == 37


async def test_nothing_comes_back_before_its_minute_is_over(side):
    tenant = make_tenant(limits={"rpm": 2, **WINDOW})
    await ask(side, tenant)
    await age(side, tenant, 59_000)
    await ask(side, tenant)
    with pytest.raises(RateLimited) as refused:
        await ask(side, tenant)
    assert 900 <= wait_of(refused) <= 1000
    await age(side, tenant, 1001)
    await ask(side, tenant)
    with pytest.raises(RateLimited) as refused:
        await ask(side, tenant)
    assert 58_000 <= wait_of(refused) <= 60_000


async def test_tokens_wait_until_enough_of_the_oldest_have_left(side):
    tenant = make_tenant(limits={"tpm": 100, **WINDOW})
    for tokens, passed in ((30, 10_000), (30, 10_000), (40, 10_000)):
        await ask(side, tenant, expected_tokens=tokens)
        await age(side, tenant, passed)
    with pytest.raises(RateLimited) as refused:
        await ask(side, tenant, expected_tokens=50)  # needs the first two to leave: 40 s more
    assert 39_000 <= wait_of(refused) <= 40_000
    assert (await read_limits(side.store, tenant, None))[0].used == 100


async def test_settlement_corrects_the_window(side):
    tenant = make_tenant(limits={"tpm": 100, **WINDOW})
    first = await ask(side, tenant, expected_tokens=80)
    second = await ask(side, tenant, expected_tokens=20)
    await settle(side, first, tokens=10, cost_nano=0, entry=entry(first.event_id, first.now_ms))
    await settle(side, second, tokens=25, cost_nano=0, entry=entry(second.event_id, second.now_ms))
    assert (await read_limits(side.store, tenant, None))[0].used == 35
    await age(side, tenant, 60_001)
    assert (await read_limits(side.store, tenant, None))[0].used == 0


async def test_a_settlement_after_the_minute_changes_nothing(side):
    tenant = make_tenant(limits={"tpm": 100, **WINDOW})
    first = await ask(side, tenant, expected_tokens=80)
    await age(side, tenant, 61_000)
    await ask(side, tenant, expected_tokens=50)
    await settle(side, first, tokens=5, cost_nano=0, entry=entry(first.event_id, first.now_ms))
    assert (await read_limits(side.store, tenant, None))[0].used == 50


async def test_changing_the_algorithm_does_not_break_the_next_request(side):
    tenant = make_tenant(limits={"rpm": 5, "tpm": 50})
    other = msgspec.structs.replace(tenant, limits=msgspec.structs.replace(tenant.limits, algorithm="sliding_window"))
    for caller in (tenant, other, tenant):
        await ask(side, caller)
