"""Rate limits while the store is away and the policy is fail_open: each worker applies its share of every limit.

Requests and tokens: buckets of limit / workers per minute, kept in this process. Concurrency: limit / workers places.
A request that alone is larger than the share passes when the bucket is untouched, and is paid back at the share's rate.
"""

from __future__ import annotations

import msgspec

from proxy.admission_rules import BoundRules, Rule

#: Buckets kept; the oldest go first. One that is forgotten is full again.
BUCKETS_KEPT = 20_000


class LocalRefusal(msgspec.Struct):
    """The rule that refused, what is used of the share, and when the request could pass."""

    rule: Rule
    used: int
    wait_ms: int


class LocalShare:
    """`workers`: how many processes share the limits."""

    def __init__(self, workers: int) -> None:
        self._workers = max(workers, 1)
        self._buckets: dict[str, tuple[float, int]] = {}  # key -> tokens used, at (ms)
        self._leases: dict[str, dict[str, int]] = {}  # key -> event id -> deadline (ms)

    def admit(
        self, bound: BoundRules, event_id: str, tokens: int, now_ms: int, deadline_ms: int
    ) -> LocalRefusal | None:
        """Take from all rates, or from none and say which refused. Quotas and budgets are not its business."""
        taken: list[tuple[str, float]] = []
        for rule in bound.rules:
            if rule.kind == "concurrency":
                refusal = self._lease_refused(rule, now_ms)
            elif rule.kind in ("requests", "tokens"):
                amount = 1 if rule.kind == "requests" else tokens
                refusal = self._bucket_refused(rule, amount, now_ms, taken)
            else:
                continue
            if refusal is not None:
                return refusal
        for key, used in taken:
            self._buckets.pop(key, None)
            self._buckets[key] = (used, now_ms)
        while len(self._buckets) > BUCKETS_KEPT:
            del self._buckets[next(iter(self._buckets))]
        for rule in bound.leases:
            self._leases.setdefault(rule.key, {})[event_id] = deadline_ms
        return None

    def release(self, keys: tuple[str, ...], event_id: str) -> None:
        """Give back the places of a request."""
        for key in keys:
            leases = self._leases.get(key, {})
            leases.pop(event_id, None)
            if not leases:
                self._leases.pop(key, None)

    def _bucket_refused(
        self, rule: Rule, amount: int, now_ms: int, taken: list[tuple[str, float]]
    ) -> LocalRefusal | None:
        share = rule.limit / self._workers  # per minute
        capacity = max(share, 1.0)
        used, at = self._buckets.get(rule.key, (0.0, now_ms))
        used = max(used - max(now_ms - at, 0) * share / 60_000, 0.0)
        over = used + amount - capacity
        if amount > rule.limit or (over > 0 and used > 0):
            return LocalRefusal(
                rule, min(round(used * self._workers), rule.limit), max(round(over / share * 60_000), 1)
            )
        taken.append((rule.key, used + amount))
        return None

    def _lease_refused(self, rule: Rule, now_ms: int) -> LocalRefusal | None:
        leases = self._leases.get(rule.key, {})
        for event_id in [event for event, deadline in leases.items() if deadline <= now_ms]:
            del leases[event_id]
        if len(leases) >= max(rule.limit // self._workers, 1):
            return LocalRefusal(rule, rule.limit, 1000)
        return None


_shares: dict[int, LocalShare] = {}


def local_share(workers: int) -> LocalShare:
    """This process's share, kept from one loss of the store to the next."""
    if workers not in _shares:
        _shares[workers] = LocalShare(workers)
    return _shares[workers]
