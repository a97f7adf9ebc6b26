"""What the ledger says was spent: the truth that lost counters are put back from."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db.models import F, Sum

from billing.models import LedgerEntry, UsageRollup

_DAY_MS = 86_400_000


class Spent(NamedTuple):
    """Nano-USD, and tokens of input and output."""

    nano: int = 0
    tokens: int = 0


#: (tenant id, key id or "") -> what was spent with the key.
ByKey = dict[tuple[int, str], Spent]
#: (tenant id, key id or "", user) -> nano-USD.
ByUser = dict[tuple[int, str, str], int]


def spent_by_key(tenants: Collection[int], since_ms: int) -> ByKey:
    """Everything admitted from `since_ms` (epoch ms) on, by tenant and key.

    From the beginning of a UTC day the rollups say the same as the entries, and there are far fewer of them.
    """
    since = datetime.fromtimestamp(since_ms / 1000, UTC)
    sums = {"nano": Sum("cost_nano"), "tokens": Sum(F("input_tokens") + F("output_tokens"))}
    rows: Any
    if since_ms % _DAY_MS == 0:
        rows = UsageRollup.objects.filter(tenant__in=tenants, day__gte=since.date())
        rows = rows.order_by().values_list("tenant_id", "key_ref").annotate(**sums)
    else:
        rows = LedgerEntry.objects.filter(tenant__in=tenants, time__gte=since)
        rows = rows.order_by().values_list("tenant_id", "key_id").annotate(**sums)
    return {(tenant, key or ""): Spent(int(nano or 0), int(tokens or 0)) for tenant, key, nano, tokens in rows}


def spent_by_user(tenants: Collection[int], since_ms: int) -> ByUser:
    """The same by tenant, key and user, of those that named one."""
    since = datetime.fromtimestamp(since_ms / 1000, UTC)
    entries = LedgerEntry.objects.filter(tenant__in=tenants, time__gte=since).exclude(user="").order_by()
    rows = entries.values_list("tenant_id", "key_id", "user").annotate(nano=Sum("cost_nano"))
    return {(tenant, key or "", user): int(nano or 0) for tenant, key, user, nano in rows}
