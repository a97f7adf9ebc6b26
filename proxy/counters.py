"""What the counters of quotas and budgets must say, by the ledger: for a rebuild, and for verify_ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from django.db.models import Q

from billing.models import Budget, Quota
from billing.rebuild import ByKey, ByUser, Spent, spent_by_key, spent_by_user
from proxy.periods import period_at
from proxy.redis_keys import counter_key, key_owner, key_user_owner, tenant_owner, user_owner
from proxy.snapshot import Snapshot, TenantSpec

#: As admit.lua keeps counters after their period (ms).
KEPT_MS = 40 * 86_400_000


class Counter(NamedTuple):
    """One counter: its key, what is spent, and when it may go (epoch ms, 0: never)."""

    key: str
    spent: int
    expires_ms: int


class _Rule(NamedTuple):
    """A quota or budget in force for a tenant; `key_id` when a key has it. scope as in proxy.snapshot.BudgetSpec."""

    kind: str
    spec_id: int
    per: str
    timezone: str
    scope: str
    key_id: str | None = None


class _Sums:
    """Sums of a shard's tenants since a moment, each read once."""

    def __init__(self, tenants: list[int]) -> None:
        self._tenants = tenants
        self._by_key: dict[int, dict[int, ByKey]] = {}
        self._by_user: dict[int, dict[int, ByUser]] = {}

    def by_key(self, tenant: int, since_ms: int) -> ByKey:
        if since_ms not in self._by_key:
            found: dict[int, ByKey] = defaultdict(dict)
            for identity, spent in spent_by_key(self._tenants, since_ms).items():
                found[identity[0]][identity] = spent
            self._by_key[since_ms] = found
        return self._by_key[since_ms].get(tenant, {})

    def by_user(self, tenant: int, since_ms: int) -> ByUser:
        if since_ms not in self._by_user:
            found: dict[int, ByUser] = defaultdict(dict)
            for identity, nano in spent_by_user(self._tenants, since_ms).items():
                found[identity[0]][identity] = nano
            self._by_user[since_ms] = found
        return self._by_user[since_ms].get(tenant, {})


def counters(snapshot: Snapshot, shard: int, now_ms: int) -> list[Counter]:
    """Every counter of the periods in force that anything was spent of, and every tenant's own. Reads the database."""
    tenants = {tenant.id: tenant for tenant in snapshot.tenants.values() if tenant.shard == shard}
    rules: dict[int, list[_Rule]] = {tenant.id: _rules_of_tenant(tenant) for tenant in tenants.values()}
    for tenant_id, rule in _rules_of_keys(tenants):
        rules[tenant_id].append(rule)
    sums = _Sums([tenant for tenant, its in rules.items() if its])
    return [
        counter
        for tenant_id, its in rules.items()
        for rule in its
        for counter in _counters_of(tenants[tenant_id], rule, sums, now_ms)
    ]


def _rules_of_tenant(tenant: TenantSpec) -> list[_Rule]:
    quotas = [_Rule("qu", quota.id, quota.per, quota.timezone, "tenant") for quota in tenant.quotas]
    return quotas + [_Rule("bu", budget.id, budget.per, budget.timezone, budget.scope) for budget in tenant.budgets]


def _rules_of_keys(tenants: dict[int, TenantSpec]) -> Iterator[tuple[int, _Rule]]:
    """Keys are not in the snapshot."""
    live = Q(key__tenant__in=list(tenants), key__revoked_at=None)
    for quota in Quota.objects.filter(live).select_related("key"):
        if quota.key is not None:
            yield quota.key.tenant_id, _Rule("qu", quota.pk, quota.per, quota.timezone, "key", quota.key.pk)
    for budget in Budget.objects.filter(live):
        scope = "user" if budget.scope == "user" else "key"
        yield budget.tenant_id, _Rule("bu", budget.pk, budget.per, budget.timezone, scope, budget.key_id)


def _counters_of(tenant: TenantSpec, rule: _Rule, sums: _Sums, now_ms: int) -> Iterator[Counter]:
    period = period_at(rule.per, rule.timezone, now_ms)
    expires = period.end_ms + KEPT_MS if period.end_ms is not None else 0
    for owner, spent in _SPENDERS[rule.scope](tenant, rule, sums, period.start_ms).items():
        yield Counter(counter_key(tenant.shard, rule.kind, rule.spec_id, owner, period.label), spent, expires)


def _amount(rule: _Rule, spent: Spent) -> int:
    return spent.tokens if rule.kind == "qu" else spent.nano


def _of_tenant(tenant: TenantSpec, rule: _Rule, sums: _Sums, since_ms: int) -> dict[str, int]:
    by_key = sums.by_key(tenant.id, since_ms)
    return {tenant_owner(tenant.id): sum(_amount(rule, spent) for spent in by_key.values())}


def _of_keys(tenant: TenantSpec, rule: _Rule, sums: _Sums, since_ms: int) -> dict[str, int]:
    by_key = sums.by_key(tenant.id, since_ms)
    if rule.key_id is not None:
        return {key_owner(rule.key_id): _amount(rule, by_key.get((tenant.id, rule.key_id), Spent()))}
    return {key_owner(key): _amount(rule, spent) for (_, key), spent in by_key.items() if key}


def _of_users(tenant: TenantSpec, rule: _Rule, sums: _Sums, since_ms: int) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for (_, key, user), nano in sums.by_user(tenant.id, since_ms).items():
        if rule.key_id is None:
            found[user_owner(tenant.id, user)] += nano
        elif rule.key_id == key:
            found[key_user_owner(key, user)] += nano
    return found


_SPENDERS: dict[str, Callable[[TenantSpec, _Rule, _Sums, int], dict[str, int]]] = {
    "tenant": _of_tenant,
    "key": _of_keys,
    "user": _of_users,
}
