"""Requests and tokens per minute: exact under concurrency, all or nothing, and a refusal that explains itself."""

import asyncio
from collections import Counter

import msgspec
import pytest

from proxy.admission import read_limits
from proxy.errors import GatewayError, RateLimited, Unauthenticated
from proxy.redis_keys import revoked_key
from proxy.settle import settle
from proxy.snapshot import LimitSpec
from tests.proxy.limits.conftest import Side, ask, details_of, entry, make_key, make_tenant, request_of, wait_of


async def outcomes(side: Side, count: int, *callers: tuple) -> Counter:
    """Admissions of `count` requests at the same instant, shared out among callers: "ok" or the code of the refusal."""

    async def one(i: int) -> str:
        try:
            await ask(side, *callers[i % len(callers)])
        except GatewayError as error:
            return error.code
        return "ok"

    return Counter(await asyncio.gather(*(one(i) for i in range(count))))


async def test_100_at_once_on_a_bucket_admit_exactly_its_capacity(side):
    tenant = make_tenant(limits={"rpm": 37})
    assert await outcomes(side, 100, (tenant,)) == {"ok": 37, "rate_limit_exceeded": 63}


async def test_all_keys_of_a_tenant_draw_from_its_bucket(side):
    tenant = make_tenant(limits={"rpm": 7})
    callers = [(tenant, make_key(tenant, limits={"rpm": 50})) for _ in range(3)]
    assert await outcomes(side, 60, *callers) == {"ok": 7, "rate_limit_exceeded": 53}


async def test_the_tightest_of_user_key_and_tenant_refuses_and_says_who(side):
    tenant = make_tenant(limits={"rpm": 5, "user_rpm": 1})
    key = make_key(tenant, limits={"rpm": 2})

    async def refused_by(key, user):
        try:
            await ask(side, tenant, key, user=user)
        except RateLimited as error:
            return error.details and error.details["scope"]
        return None

    assert await refused_by(key, "ann") is None
    assert await refused_by(key, "ann") == "user"
    assert await refused_by(key, "bob") is None
    assert await refused_by(key, "cyd") == "key"
    assert [await refused_by(make_key(tenant), user) for user in ("cyd", "dan", "eve", "fay")] == [None] * 3 + [
        "tenant"
    ]


async def test_a_refusal_by_one_limit_takes_from_no_other(side):
    tenant = make_tenant(limits={"rpm": 10, "tpm": 100, "concurrency": 5})
    key = make_key(tenant, limits={"rpm": 10})
    with pytest.raises(RateLimited) as refused:
        await ask(side, tenant, key, expected_tokens=101)
    assert refused.value.code == "token_rate_limit_exceeded"
    assert [state.used for state in await read_limits(side.store, tenant, key)] == [0, 0, 0, 0]
    assert await side.command("KEYS", f"tb:{{s{tenant.shard}}}*") == []


async def test_a_request_larger_than_the_limit_is_told_that_it_can_never_pass(side):
    tenant = make_tenant(limits={"tpm": 1000})
    with pytest.raises(RateLimited, match="can never pass") as refused:
        await ask(side, tenant, expected_tokens=1001)
    assert details_of(refused)["limit"] == 1000
    assert refused.value.should_retry is False


async def test_retry_after_is_exactly_when_the_request_fits(side):
    tenant = make_tenant(limits={"rpm": 600})
    for _ in range(600):
        await ask(side, tenant)
    for _ in range(3):
        with pytest.raises(RateLimited) as refused:
            await until_refused(side, tenant)  # the bucket gives one request back every 100 ms
        wait_ms = wait_of(refused)
        assert 1 <= wait_ms <= 100
        await asyncio.sleep(wait_ms / 1000 + 0.001)
        await ask(side, tenant)


async def until_refused(side, tenant):
    while True:
        await ask(side, tenant)


async def test_a_bucket_gives_back_its_limit_per_minute_to_the_unit(side):
    tenant = make_tenant(limits={"tpm": 7})
    await ask(side, tenant, expected_tokens=5)
    (key,) = await side.command("KEYS", f"*s{tenant.shard}}}:tk:*")
    used, at = map(int, (await side.command("GET", key)).split())
    assert used == 5 * 60_000
    await side.command("SET", key, f"{used} {at - 10_000}")  # as if 10 s had passed
    admitted = await ask(side, tenant, expected_tokens=1)
    now_used, now = map(int, (await side.command("GET", key)).split())
    assert now_used == used - (now - at + 10_000) * 7 + 60_000
    assert admitted.states[0].used == -(-now_used // 60_000)


async def test_a_clock_that_goes_back_gives_nothing_back(side):
    tenant = make_tenant(limits={"rpm": 2})
    await ask(side, tenant)
    await ask(side, tenant)
    (key,) = await side.command("KEYS", f"*s{tenant.shard}}}:rq:*")
    used, at = map(int, (await side.command("GET", key)).split())
    await side.command("SET", key, f"{used} {at + 3_600_000}")  # as if the clock had been an hour ahead
    with pytest.raises(RateLimited) as refused:
        await ask(side, tenant)
    assert wait_of(refused) <= 30_000


async def test_editing_a_limit_leaves_what_was_used(side):
    tenant = make_tenant(limits={"rpm": 10})
    for _ in range(8):
        await ask(side, tenant)
    raised, lowered = (msgspec.structs.replace(tenant, limits=LimitSpec(rpm=rpm)) for rpm in (20, 4))
    assert (await read_limits(side.store, raised, None))[0].used == 8
    assert (await read_limits(side.store, raised, None))[0].remaining == 12
    with pytest.raises(RateLimited):
        await ask(side, lowered)
    assert (await read_limits(side.store, lowered, None))[0].remaining == 0


async def test_the_largest_limit_is_exact(side):
    tenant = make_tenant(limits={"tpm": 150_000_000_000})
    await ask(side, tenant, expected_tokens=149_999_999_999)
    (key,) = await side.command("KEYS", f"*s{tenant.shard}}}:tk:*")
    assert int((await side.command("GET", key)).split()[0]) == 149_999_999_999 * 60_000


async def test_settlement_gives_back_what_was_not_used_and_charges_what_was_more(side):
    tenant = make_tenant(limits={"tpm": 1000})

    async def used_after(held: int, actual: int) -> int:
        admitted = await ask(side, tenant, expected_tokens=held)
        await settle(side, admitted, tokens=actual, cost_nano=0, entry=entry(admitted.event_id, admitted.now_ms))
        return (await read_limits(side.store, tenant, None))[0].used

    assert await used_after(800, 100) in (99, 100)
    assert await used_after(100, 900) in range(995, 1001)
    with pytest.raises(RateLimited):
        await ask(side, tenant, expected_tokens=100)


async def test_a_debt_is_never_deeper_than_the_limit(side):
    tenant = make_tenant(limits={"tpm": 1000})
    admitted = await ask(side, tenant, expected_tokens=10)
    await settle(side, admitted, tokens=10**9, cost_nano=0, entry=entry(admitted.event_id, admitted.now_ms))
    with pytest.raises(RateLimited) as refused:
        await ask(side, tenant, expected_tokens=1)
    assert 59_000 < wait_of(refused) <= 60_100


async def test_a_revoked_key_is_refused_like_an_unknown_one(side):
    tenant = make_tenant(limits={"rpm": 5})
    key, other = make_key(tenant), make_key(tenant)
    await side.command("SET", revoked_key(tenant.shard, key.id), "1")
    with pytest.raises(Unauthenticated) as refused:
        await ask(side, tenant, key)
    assert refused.value.code == "invalid_api_key"
    assert (await read_limits(side.store, tenant, key))[0].used == 0
    await ask(side, tenant, other)


async def test_users_with_any_name_are_told_apart(side):
    tenant = make_tenant(limits={"user_rpm": 1})
    names = ["", "ann", "ann ", "tb:{s01}:x", "a" * 512, "\x00", "\ud800", "{}", "*"]
    for name in names:
        await ask(side, tenant, user=name)
    for name in names:
        with pytest.raises(RateLimited):
            await ask(side, tenant, user=name)


async def test_the_same_event_id_is_admitted_once(side):
    tenant = make_tenant(limits={"rpm": 5})
    request = request_of(side, tenant)
    await ask(side, tenant, event_id=request.event_id)
    with pytest.raises(ValueError, match="used before"):
        await ask(side, tenant, event_id=request.event_id)
    assert (await read_limits(side.store, tenant, None))[0].used == 1
