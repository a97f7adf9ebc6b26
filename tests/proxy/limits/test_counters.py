"""Quotas and budgets: never overspent, per period, and refused while they cannot be known."""

import asyncio
from collections import Counter
from typing import Any

import msgspec
import pytest

from proxy.admission import AdmissionRequest, admit, read_limits
from proxy.errors import GatewayError, PaymentRequired, Unavailable
from proxy.redis_keys import epoch_key
from proxy.settle import settle
from proxy.store import Store
from tests.proxy.limits.conftest import (
    Side,
    ask,
    budget,
    details_of,
    entry,
    make_key,
    make_tenant,
    quota,
    request_of,
    wait_of,
    warm,
)

USD = 1_000_000_000


async def test_200_at_once_on_a_budget_of_50_worst_cases_admit_exactly_50(side):
    tenant = await warm(side, make_tenant(budgets=(budget(50 * 70 + 69),)))

    async def one() -> str:
        try:
            await ask(side, tenant, worst_nano=70)
        except GatewayError as error:
            return error.code
        return "ok"

    assert Counter(await asyncio.gather(*(one() for _ in range(200)))) == {"ok": 50, "budget_exceeded": 150}


async def test_what_was_reserved_and_not_spent_can_be_spent_by_others(side):
    tenant = await warm(side, make_tenant(budgets=(budget(100),)))
    first = await ask(side, tenant, worst_nano=100)
    with pytest.raises(PaymentRequired):
        await ask(side, tenant, worst_nano=1)
    await settle(side, first, tokens=5, cost_nano=40, entry=entry(first.event_id, first.now_ms))
    second = await ask(side, tenant, worst_nano=60)
    (state,) = second.states
    assert (state.used, state.reserved, state.remaining) == (40, 60, 0)


async def test_a_refusal_by_the_budget_takes_nothing(side):
    tenant = await warm(
        side, make_tenant(limits={"rpm": 5, "tpm": 500, "concurrency": 2}, budgets=(budget(50),), quotas=(quota(500),))
    )
    with pytest.raises(PaymentRequired):
        await ask(side, tenant, worst_nano=51)
    assert [(s.used, s.reserved) for s in await read_limits(side.store, tenant, None)] == [(0, 0)] * 5
    assert await side.command("KEYS", f"tb:{{s{tenant.shard}}}*") == [epoch_key(tenant.shard).encode()]


async def test_a_refusal_tells_scope_limit_used_and_reset_in_dollars(side):
    tenant = await warm(side, make_tenant())
    key = make_key(tenant, budgets=(budget(USD // 100, per="month", scope="key"),))
    first = await ask(side, tenant, key, worst_nano=9_000_000)
    await settle(side, first, tokens=5, cost_nano=9_000_000, entry=entry(first.event_id, first.now_ms))
    with pytest.raises(PaymentRequired) as refused:
        await ask(side, tenant, key, worst_nano=2_000_000)
    error = refused.value
    assert (error.status, error.code, error.should_retry) == (402, "budget_exceeded", False)
    told = dict(details_of(refused))
    assert told.pop("resets_at").endswith("-01T00:00:00.000Z")
    assert told == {"scope": "key", "limit": "0.010000", "used": "0.009000", "reserved": "0.000000", "window": "month"}
    assert wait_of(refused) > 0
    assert tenant.slug not in error.message


async def test_a_total_budget_has_no_retry_after(side):
    tenant = await warm(side, make_tenant(budgets=(budget(10),)))
    await ask(side, tenant, worst_nano=10)
    with pytest.raises(PaymentRequired, match="does not reset") as refused:
        await ask(side, tenant, worst_nano=1)
    assert refused.value.retry_after_ms is None
    assert details_of(refused)["resets_at"] is None


async def test_a_quota_reserves_what_cannot_be_exceeded(side):
    tenant = await warm(side, make_tenant(quotas=(quota(1000, per="day"),)))
    await ask(side, tenant, expected_tokens=10, worst_tokens=600)
    with pytest.raises(PaymentRequired) as refused:
        await ask(side, tenant, expected_tokens=10, worst_tokens=401)
    assert refused.value.code == "quota_exceeded"
    await ask(side, tenant, expected_tokens=10, worst_tokens=400)


async def test_budgets_of_user_key_and_tenant_all_count(side):
    budgets = (budget(100), budget(60, scope="key"), budget(30, scope="user"))
    tenant = await warm(side, make_tenant(budgets=budgets))
    key, other = make_key(tenant), make_key(tenant)

    async def refused_by(key, user, nano):
        try:
            await ask(side, tenant, key, user=user, worst_nano=nano)
        except PaymentRequired as error:
            return error.details and error.details["scope"]
        return None

    assert await refused_by(key, "ann", 31) == "user"
    assert await refused_by(key, "ann", 30) is None
    assert await refused_by(other, "ann", 1) == "user"
    assert await refused_by(key, "bob", 30) is None
    assert await refused_by(key, "cyd", 1) == "key"
    assert await refused_by(other, "cyd", 30) is None
    assert await refused_by(other, "dan", 11) == "tenant"
    assert await refused_by(None, None, 10) is None


async def test_the_largest_budget_is_exact_to_the_nano_dollar(side):
    most = 9_000_000 * USD
    tenant = await warm(side, make_tenant(budgets=(budget(most),)))
    first = await ask(side, tenant, worst_nano=most - 1)
    await settle(side, first, tokens=1, cost_nano=most - 1, entry=entry(first.event_id, first.now_ms))
    with pytest.raises(PaymentRequired):
        await ask(side, tenant, worst_nano=2)
    await ask(side, tenant, worst_nano=1)
    (state,) = await read_limits(side.store, tenant, None)
    assert (state.used, state.reserved, state.remaining) == (most - 1, 1, 0)


async def test_a_request_without_a_price_takes_no_money_and_still_takes_its_tokens(side):
    tenant = await warm(side, make_tenant(budgets=(budget(0),), quotas=(quota(100),)))
    admitted = await ask(side, tenant, worst_nano=None, worst_tokens=60)
    assert [(s.kind, s.reserved) for s in admitted.states] == [("quota", 60), ("budget", 0)]


class ClockOff(Store):
    """The same store, seen by a worker whose idea of its clock is off."""

    def __init__(self, store: Store, by_ms: int) -> None:
        super().__init__()
        self.store, self.by_ms, self.up = store, by_ms, True

    def now_ms(self) -> int:
        return self.store.now_ms() + self.by_ms

    async def run(self, *call: Any) -> Any:
        return await self.store.run(*call)


@pytest.mark.parametrize("by_ms", [-86_400_000, -61_000, 61_000, 86_400_000])
async def test_periods_go_by_the_clock_of_the_store_however_wrong_a_workers_is(side, by_ms):
    tenant = await warm(side, make_tenant(budgets=(budget(100, per="minute"),)))
    off = Side(ClockOff(side.store, by_ms), side.config)
    deadline_ms = side.store.now_ms() + 60_000
    taken = await ask(side, tenant, worst_nano=100)
    try:
        other = await ask(off, tenant, worst_nano=1, deadline_ms=deadline_ms)
    except PaymentRequired:
        return
    assert other.holds.keys != taken.holds.keys, "the minute turned between the two"
    assert other.holds.holds_from <= other.now_ms < other.holds.holds_until


async def test_what_is_settled_after_the_period_goes_to_the_period_of_its_admission(side):
    tenant = await warm(side, make_tenant(budgets=(budget(100, per="minute"),)))
    admitted = await ask(side, tenant, worst_nano=80)
    (key,) = [name.decode() for name in await side.command("KEYS", f"tb:{{s{tenant.shard}}}:bu:*")]
    assert key == admitted.holds.keys[0]
    await settle(side, admitted, tokens=1, cost_nano=70, entry=entry(admitted.event_id, admitted.now_ms))
    assert await side.command("HGET", key, "s") == b"70"
    lives = await side.command("PTTL", key)
    assert 40 * 86_400_000 <= lives <= 40 * 86_400_000 + 60_000


async def test_a_total_counter_never_expires(side):
    tenant = await warm(side, make_tenant(budgets=(budget(100),)))
    admitted = await ask(side, tenant)
    assert await side.command("PTTL", admitted.holds.keys[0]) == -1


async def test_counters_are_not_trusted_while_the_store_has_lost_its_data(side):
    tenant = make_tenant(budgets=(budget(100),))
    with pytest.raises(Unavailable) as refused:
        await ask(side, tenant)
    assert (refused.value.code, refused.value.retry_after_ms) == ("budget_unavailable", 1000)
    assert side.cold == [tenant.shard]
    with pytest.raises(Unavailable):
        await read_limits(side.store, tenant, None)
    assert await side.command("KEYS", f"tb:{{s{tenant.shard}}}*") == []


async def test_rates_do_not_wait_for_a_rebuild(side):
    tenant = make_tenant(limits={"rpm": 1})
    await ask(side, tenant)
    assert side.cold == []


async def test_an_operator_may_let_budgets_fail_open(side):
    side.config = msgspec.structs.replace(side.config, budget_failure_policy="fail_open")
    tenant = make_tenant(budgets=(budget(100),))
    admitted = await ask(side, tenant, worst_nano=60)
    assert admitted.states[0].reserved == 60


async def test_negative_and_huge_amounts_never_loosen_a_budget(side):
    tenant = await warm(side, make_tenant(budgets=(budget(100),), quotas=(quota(100),)))
    await ask(side, tenant, worst_nano=-50, worst_tokens=-50, expected_tokens=-50)
    assert [(s.used, s.reserved) for s in await read_limits(side.store, tenant, None)] == [(0, 0), (0, 0)]
    with pytest.raises(PaymentRequired, match="can never pass"):
        await ask(side, tenant, worst_nano=2**70)
    request: AdmissionRequest = request_of(side, tenant, worst_nano=100)
    admitted = await admit(side, request)
    await settle(side, admitted, tokens=-5, cost_nano=-100, entry=entry(admitted.event_id, admitted.now_ms))
    assert [(s.used, s.reserved) for s in await read_limits(side.store, tenant, None)] == [(0, 0), (0, 0)]
