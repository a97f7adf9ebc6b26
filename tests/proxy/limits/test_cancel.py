"""An admission whose outcome was never learned leaves no hold, whether it happened before, after or never."""

import asyncio

import pytest

from proxy.admission import admit, read_limits
from proxy.redis_keys import record_key
from proxy.redis_scripts import ADMIT, CANCEL
from tests.proxy.limits.conftest import ask, budget, make_tenant, quota, request_of, warm

LIMITS = {"rpm": 100, "tpm": 1000, "concurrency": 5}


async def taken(side, tenant):
    return [(state.used, state.reserved) for state in await read_limits(side.store, tenant, None)]


def cancel_call(admitted):
    bound = admitted.holds
    args = bound.admit_args.copy()
    for kind, amount in (("tokens", admitted.tokens), ("quota", admitted.worst_tokens), ("budget", admitted.nano)):
        for place in bound.admit_at[kind]:
            args[place] = amount
    return [record_key(bound.shard, admitted.event_id), bound.open, *bound.keys], [admitted.event_id, *args]


@pytest.mark.parametrize("algorithm", ["token_bucket", "sliding_window"])
async def test_cancelling_gives_everything_back_once(side, algorithm):
    limits = LIMITS | {"algorithm": algorithm}
    tenant = await warm(side, make_tenant(limits=limits, quotas=(quota(500),), budgets=(budget(500),)))
    kept = await ask(side, tenant)
    before = await taken(side, tenant)
    other = await ask(side, tenant, expected_tokens=300)
    keys, args = cancel_call(other)
    outcomes = [(await side.store.run(CANCEL, keys, args))[0] for _ in range(3)]
    assert outcomes == [b"cancelled", b"absent", b"absent"]
    assert await taken(side, tenant) == before
    assert await side.command("ZRANGE", kept.holds.open, "0", "-1") == [kept.event_id.encode()]
    assert await side.events(tenant) == []


async def test_an_admission_that_arrives_after_its_cancellation_does_nothing(side):
    tenant = await warm(side, make_tenant(limits=LIMITS))
    request = request_of(side, tenant)
    template = await ask(side, tenant)
    keys, args = cancel_call(template)
    keys[0], args[0] = record_key(tenant.shard, request.event_id), request.event_id
    assert (await side.store.run(CANCEL, keys, args))[0] == b"absent"
    before = await taken(side, tenant)
    with pytest.raises(ValueError, match="used before"):
        await admit(side, request)
    assert await taken(side, tenant) == before


async def test_an_admission_executed_long_after_it_was_asked_for_does_nothing(side):
    tenant = await warm(side, make_tenant(limits=LIMITS))
    admitted = await ask(side, tenant)
    before = await taken(side, tenant)
    bound, now_ms = admitted.holds, side.store.now_ms()
    keys = [bound.epoch, bound.revoked, record_key(tenant.shard, "late"), bound.open, *bound.keys]
    head = ["late", now_ms - 2001, now_ms + 60_000, "{}", "0", 0, 2**53 - 1]
    assert (await side.store.run(ADMIT, keys, head + bound.admit_args))[0] == b"stale"
    assert await taken(side, tenant) == before


async def test_a_caller_that_is_cancelled_while_it_waits_leaves_no_hold(side):
    tenant = await warm(side, make_tenant(limits=LIMITS, budgets=(budget(500),)))
    asking = [asyncio.ensure_future(ask(side, tenant)) for _ in range(20)]
    await asyncio.sleep(0)  # handed to the store, not answered by a real one
    for task in asking:
        task.cancel()
    outcomes = await asyncio.gather(*asking, return_exceptions=True)
    admitted = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    for _ in range(100):
        places, money = (await taken(side, tenant))[2:]
        if places == (len(admitted), 0):
            break
        await asyncio.sleep(0.01)
    assert places == (len(admitted), 0)
    assert money == (0, 100 * len(admitted))
