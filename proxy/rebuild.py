"""Counters after a loss of the store (or at the start of an embedded one): put back from the ledger.

First everything that the shard's stream holds must be in the ledger; then the sums of the current periods are read and
written in one script call, which does nothing when another process was first (restore.lua).
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Iterator

import msgspec
from django.db import close_old_connections

from billing.models import Budget, Quota
from billing.rebuild import Spent
from proxy.periods import Period, period_at
from proxy.redis_keys import (
    counter_key,
    epoch_key,
    key_owner,
    key_user_owner,
    late_key,
    stream_key,
    tenant_owner,
    user_owner,
)
from proxy.redis_scripts import RESTORE
from proxy.snapshot import BudgetSpec, Snapshot, TenantSpec
from proxy.store import Store, StoreError

logger = logging.getLogger(__name__)

#: As admit.lua keeps counters after their period.
KEPT_MS = 40 * 86_400_000
#: How long a rebuild waits for the drain before it gives up until the next request asks (seconds).
PATIENCE_SECONDS = 10.0
TRIES = 5


class Counter(msgspec.Struct):
    """One counter: its key, what is spent, and when it may go (epoch ms, 0: never)."""

    key: str
    spent: int
    expires_ms: int


async def rebuild_shard(store: Store, snapshot: Snapshot, shard: int) -> bool:
    """Put a shard's counters back; False when the drain did not catch up in time. Raises what store and database do."""
    if await store.command("EXISTS", epoch_key(shard)):
        return True
    for _ in range(TRIES):
        seen = await _drained_up_to(store, shard)
        if seen is None:
            return False
        now_ms = store.now_ms()
        counters = await asyncio.to_thread(_counters, snapshot, shard, now_ms)
        keys = [epoch_key(shard), late_key(shard), *(counter.key for counter in counters)]
        args: list[str | int] = [uuid.uuid4().hex, seen]
        for counter in counters:
            args += [counter.spent, counter.expires_ms]
        status = (await store.run(RESTORE, keys, args))[0]
        if status in (b"restored", b"warm"):
            logger.info("counters restored", extra={"shard": shard, "counters": len(counters)})
            return True
    return False


async def _drained_up_to(store: Store, shard: int) -> str | None:
    """The id of the newest entry of the stream, once that and all before it are in the ledger."""
    key = stream_key(shard)
    try:
        info = await store.command("XINFO", "STREAM", key)
    except StoreError:
        return "0-0"  # nothing was ever written
    facts = dict(zip(info[::2], info[1::2], strict=True))
    newest: str = facts[b"last-generated-id"].decode()
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while await store.command("XRANGE", key, "-", newest, "COUNT", "1"):
        if asyncio.get_running_loop().time() > deadline:
            return None
        await asyncio.sleep(0.02)
    return newest


def _counters(snapshot: Snapshot, shard: int, now_ms: int) -> list[Counter]:
    close_old_connections()
    found: list[Counter] = []
    for tenant in snapshot.tenants.values():
        if tenant.shard == shard:
            found.extend(_of_tenant(tenant, now_ms))
            found.extend(_of_keys(tenant, now_ms))
    return found


def _of_tenant(tenant: TenantSpec, now_ms: int) -> Iterator[Counter]:
    owner = tenant_owner(tenant.id)
    for quota in tenant.quotas:
        period = period_at(quota.per, quota.timezone, now_ms)
        yield _counter(tenant, "qu", quota.id, owner, period, Spent(tenant.id, period.start_ms).tokens())
    for budget in tenant.budgets:
        period = period_at(budget.per, budget.timezone, now_ms)
        for spender, nano in _by_scope(tenant, budget, Spent(tenant.id, period.start_ms)):
            yield _counter(tenant, "bu", budget.id, spender, period, nano)


def _by_scope(tenant: TenantSpec, budget: BudgetSpec, spent: Spent) -> Iterator[tuple[str, int]]:
    if budget.scope == "tenant":
        yield tenant_owner(tenant.id), spent.nano()
    elif budget.scope == "key":
        yield from ((key_owner(key), nano) for key, nano in spent.nano_by_key().items())
    else:
        yield from ((user_owner(tenant.id, user), nano) for user, nano in spent.nano_by_user().items())


def _of_keys(tenant: TenantSpec, now_ms: int) -> Iterator[Counter]:
    for quota in Quota.objects.filter(key__tenant_id=tenant.id):
        period = period_at(quota.per, quota.timezone, now_ms)
        tokens = Spent(tenant.id, period.start_ms, quota.key_id).tokens()
        yield _counter(tenant, "qu", quota.pk, key_owner(str(quota.key_id)), period, tokens)
    for budget in Budget.objects.filter(tenant_id=tenant.id, key__isnull=False):
        key_id = str(budget.key_id)
        period = period_at(budget.per, budget.timezone, now_ms)
        spent = Spent(tenant.id, period.start_ms, key_id)
        if budget.scope == "user":
            for user, nano in spent.nano_by_user().items():
                yield _counter(tenant, "bu", budget.pk, key_user_owner(key_id, user), period, nano)
        else:
            yield _counter(tenant, "bu", budget.pk, key_owner(key_id), period, spent.nano())


def _counter(tenant: TenantSpec, kind: str, spec_id: int, owner: str, period: Period, spent: int) -> Counter:
    expires = period.end_ms + KEPT_MS if period.end_ms is not None else 0
    return Counter(counter_key(tenant.shard, kind, spec_id, owner, period.label), spent, expires)
