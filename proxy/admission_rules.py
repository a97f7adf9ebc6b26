"""Which limits stop a request, in which order, and how they are handed to the scripts.

A rule is policy: whose limit it is, how much, of what. What is used is the store's business. The rules of one caller
are built once per configuration; per period they are bound to keys; a request only fills in its amounts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from proxy import redis_keys
from proxy.periods import period_at
from proxy.reservation import BUCKET, COUNTER, LARGEST, LEASE, ROLLING, HeldRule
from proxy.snapshot import BudgetSpec, KeySpec, LimitSpec, QuotaSpec, TenantSpec

#: What a refusal by a rule of each kind is called.
CODES = {
    "requests": "rate_limit_exceeded",
    "tokens": "token_rate_limit_exceeded",
    "concurrency": "concurrency_limit_exceeded",
    "quota": "quota_exceeded",
    "budget": "budget_exceeded",
}
#: Kinds whose amounts must survive a loss of the store.
COUNTED = ("quota", "budget")

#: Callers, and users of one caller, whose rules are kept in memory.
CALLERS_KEPT, USERS_KEPT = 4096, 1024

_FOREVER = LARGEST


class Rule(msgspec.Struct, kw_only=True, frozen=True):
    """One limit of one owner. kind, scope and window as `proxy.reservation.LimitState` has them.

    `key` is whole for rates and leases; counters (quota, budget) have one key a period. `warn_at`: percentages of a
    counter that settlement reports when they are crossed.
    """

    kind: str
    scope: str
    window: str
    limit: int
    counting: bytes
    key: str = ""
    spec_id: int = 0
    owner: str = ""
    timezone: str = "UTC"
    warn_at: tuple[int, ...] = ()


def limit_rules(tenant: TenantSpec, key: KeySpec | None, user: str | None = None) -> list[Rule]:
    """Every limit that can stop this caller, in the order in which they are checked."""
    rules: list[Rule] = []
    for kind in ("requests", "tokens", "concurrency"):
        rules += _rates(kind, tenant, key, user)
    if key is not None:
        owner = redis_keys.key_owner(key.id)
        rules += [_quota(quota, "key", owner) for quota in key.quotas]
    owner = redis_keys.tenant_owner(tenant.id)
    rules += [_quota(quota, "tenant", owner) for quota in tenant.quotas]
    order = ("user", "key", "tenant")
    return rules + sorted(_budgets(tenant, key, user), key=lambda rule: order.index(rule.scope))


def _rates(kind: str, tenant: TenantSpec, key: KeySpec | None, user: str | None) -> Iterator[Rule]:
    """Limits of one kind that are no counters: of the user, the key, the tenant."""
    prefix = redis_keys.shard_prefix(tenant.shard)
    if user is not None and key is not None:
        yield from _rate(kind, "user", key.limits, prefix, redis_keys.key_user_owner(key.id, user))
    if user is not None:
        yield from _rate(kind, "user", tenant.limits, prefix, redis_keys.user_owner(tenant.id, user))
    if key is not None:
        yield from _rate(kind, "key", key.limits, prefix, redis_keys.key_owner(key.id))
    yield from _rate(kind, "tenant", tenant.limits, prefix, redis_keys.tenant_owner(tenant.id))


def _rate(kind: str, scope: str, limits: LimitSpec, prefix: str, owner: str) -> Iterator[Rule]:
    of_user = scope == "user"
    if kind == "concurrency":
        limit = None if of_user else limits.concurrency
        if limit is not None:
            yield Rule(kind=kind, scope=scope, window="now", limit=limit, counting=LEASE, key=f"{prefix}ls:{owner}")
        return
    if kind == "requests":
        limit, name = (limits.user_rpm if of_user else limits.rpm), "rq"
    else:
        limit, name = (limits.user_tpm if of_user else limits.tpm), "tk"
    if limit is None:
        return
    rolling = limits.algorithm == "sliding_window"
    yield Rule(
        kind=kind,
        scope=scope,
        window="minute",
        limit=limit,
        counting=ROLLING if rolling else BUCKET,
        key=f"{prefix}{name}{'w' if rolling else ''}:{owner}",
    )


def _quota(quota: QuotaSpec, scope: str, owner: str) -> Rule:
    return Rule(
        kind="quota",
        scope=scope,
        window=quota.per,
        limit=min(quota.tokens, LARGEST),
        counting=COUNTER,
        spec_id=quota.id,
        owner=owner,
        timezone=quota.timezone,
        warn_at=(100,),
    )


def _budgets(tenant: TenantSpec, key: KeySpec | None, user: str | None) -> Iterator[Rule]:
    """A tenant's budget of scope key or user is one counter for each key or user; a key's own is for that key."""
    for budget in tenant.budgets:
        if budget.scope == "tenant":
            yield _budget(budget, "tenant", redis_keys.tenant_owner(tenant.id))
        elif budget.scope == "key" and key is not None:
            yield _budget(budget, "key", redis_keys.key_owner(key.id))
        elif budget.scope == "user" and user is not None:
            yield _budget(budget, "user", redis_keys.user_owner(tenant.id, user))
    if key is None:
        return
    for budget in key.budgets:
        if budget.scope != "user":
            yield _budget(budget, "key", redis_keys.key_owner(key.id))
        elif user is not None:
            yield _budget(budget, "user", redis_keys.key_user_owner(key.id, user))


def _budget(budget: BudgetSpec, scope: str, owner: str) -> Rule:
    return Rule(
        kind="budget",
        scope=scope,
        window=budget.per,
        limit=min(budget.nano, LARGEST),
        counting=COUNTER,
        spec_id=budget.id,
        owner=owner,
        timezone=budget.timezone,
        warn_at=tuple(sorted({*budget.warn_at, 100})),
    )


class BoundRules:
    """A caller's rules with the keys of the periods in force, and the scripts' arguments but for the amounts.

    `keys`, `ends` and `rules` go together (`ends`: epoch ms, None without a period). `admit_args` has four a rule,
    `settle_args` five a hold (settle.lua); a request copies them and writes its amounts at the `*_at` places.
    """

    def __init__(self, shard: int, key_id: str | None, rules: tuple[Rule, ...], now_ms: int) -> None:
        self.shard = shard
        self.rules = rules
        self.keys: list[str] = []
        self.ends: list[int | None] = []
        self.holds_from, self.holds_until = 0, _FOREVER
        self.admit_args: list[Any] = []
        self.settle_keys: list[str] = []
        self.settle_args: list[Any] = []
        self.admit_at: dict[str, list[int]] = {"tokens": [], "quota": [], "budget": []}
        self.settle_at: dict[str, list[int]] = {"tokens": [], "quota": [], "budget": []}
        self.hold_rules: list[Rule] = []
        self.counted = any(rule.kind in COUNTED for rule in rules)
        self.leases = [rule for rule in rules if rule.kind == "concurrency"]
        self.epoch = redis_keys.epoch_key(shard)
        self.revoked = redis_keys.revoked_key(shard, key_id or "-")
        self.open = redis_keys.open_key(shard)
        self.stream = redis_keys.stream_key(shard)
        self.late = redis_keys.late_key(shard)
        held = [hold for rule in rules if (hold := self._bind(rule, now_ms)) is not None]
        self.record_rules = msgspec.json.encode(held)

    def _bind(self, rule: Rule, now_ms: int) -> HeldRule | None:
        """Append one rule; gives the hold to be settled, None when what it takes is never given back."""
        key, end = rule.key, None
        if rule.counting == COUNTER:
            period = period_at(rule.window, rule.timezone, now_ms)
            name = "qu" if rule.kind == "quota" else "bu"
            key, end = redis_keys.counter_key(self.shard, name, rule.spec_id, rule.owner, period.label), period.end_ms
            self.holds_from = max(self.holds_from, period.start_ms)
            self.holds_until = min(self.holds_until, period.end_ms or _FOREVER)
        self.keys.append(key)
        self.ends.append(end)
        if rule.kind in self.admit_at:
            self.admit_at[rule.kind].append(len(self.admit_args) + 2)
        self.admit_args += [rule.counting, b"%d" % rule.limit, b"1", b"%d" % (end or 0)]
        if rule.kind == "requests":
            return None
        extra = _thresholds(rule, end) if rule.counting == COUNTER else ""
        if rule.kind in self.settle_at:
            self.settle_at[rule.kind].append(len(self.settle_args) + 2)
        self.settle_keys.append(key)
        self.settle_args += [rule.counting, b"%d" % rule.limit, b"1", b"0", extra.encode()]
        self.hold_rules.append(rule)
        return HeldRule(rule.kind, rule.counting.decode(), key, rule.limit, extra)


def _thresholds(rule: Rule, end: int | None) -> str:
    """`extra` of a counter for settle.lua: the period's end, then percent and amount of each threshold, rounded up."""
    pairs = (f" {percent} {-(-rule.limit * percent // 100)}" for percent in rule.warn_at)
    return f"{end or 0}{''.join(pairs)}"


class CallerRules:
    """The rules of one tenant and key, bound as needed; per user where the user matters."""

    def __init__(self, tenant: TenantSpec, key: KeySpec | None) -> None:
        self.tenant, self.key = tenant, key
        without = limit_rules(tenant, key)
        self.user_matters = len(limit_rules(tenant, key, "")) > len(without)
        self._bound: dict[str | None, BoundRules] = {}

    def bound(self, user: str | None, now_ms: int) -> BoundRules:
        """The rules with the keys of the periods that `now_ms` lies in."""
        if not self.user_matters:
            user = None
        known = self._bound.get(user)
        if known is None or not known.holds_from <= now_ms < known.holds_until:
            rules = tuple(limit_rules(self.tenant, self.key, user))
            known = BoundRules(self.tenant.shard, self.key.id if self.key else None, rules, now_ms)
            if len(self._bound) >= USERS_KEPT:
                del self._bound[next(iter(self._bound))]
            self._bound[user] = known
        return known


_callers: dict[tuple[int, int], CallerRules] = {}


def rules_of(tenant: TenantSpec, key: KeySpec | None) -> CallerRules:
    """The rules of a caller, built once for each version of its tenant and key."""
    name = (id(tenant), id(key))
    known = _callers.get(name)
    if known is None or known.tenant is not tenant or known.key is not key:
        known = CallerRules(tenant, key)
        if len(_callers) >= CALLERS_KEPT:
            del _callers[next(iter(_callers))]
        _callers[name] = known
    return known
