"""What the ledger says was spent: the truth that lost counters are put back from."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db.models import F, QuerySet, Sum

from billing.models import LedgerEntry


class Spent:
    """Sums over one tenant's entries since a moment. Nano-USD and tokens (input and output)."""

    def __init__(self, tenant_id: int, since_ms: int, key_id: str | None = None) -> None:
        since = datetime.fromtimestamp(since_ms / 1000, UTC)
        self._entries: QuerySet[LedgerEntry] = LedgerEntry.objects.filter(tenant_id=tenant_id, time__gte=since)
        if key_id is not None:
            self._entries = self._entries.filter(key_id=key_id)

    def nano(self) -> int:
        return self._entries.aggregate(total=Sum("cost_nano"))["total"] or 0

    def tokens(self) -> int:
        return self._entries.aggregate(total=Sum(F("input_tokens") + F("output_tokens")))["total"] or 0

    def nano_by_key(self) -> dict[str, int]:
        return self._nano_by("key_id")

    def nano_by_user(self) -> dict[str, int]:
        return self._nano_by("user")

    def _nano_by(self, name: str) -> dict[str, int]:
        rows = self._entries.values_list(name).order_by(name).annotate(total=Sum("cost_nano"))
        return {owner: total or 0 for owner, total in rows if owner}
