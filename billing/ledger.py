"""The ledger: one entry for each charged request, and the daily sums raised with it in the same transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC

from django.db import connection

from billing.models import LedgerEntry, UsageRollup

_IDENTITY = ("day", "tenant_id", "key_ref", "model", "provider")
_SUMS = (
    "requests",
    "failed",
    "fallbacks",
    "cache_hits",
    "unpriced",
    "cost_nano",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)


def post(entries: Iterable[LedgerEntry]) -> int:
    """Insert `entries` and raise the rollups by them, in the caller's transaction; gives how many were new.

    Idempotent by event id: an entry that is there already changes nothing.
    """
    wanted = {entry.event_id: entry for entry in entries}
    known = LedgerEntry.objects.filter(event_id__in=list(wanted)).values_list("event_id", flat=True)
    for event_id in known:
        del wanted[event_id]
    if wanted:
        LedgerEntry.objects.bulk_create(wanted.values())
        _raise_rollups(wanted.values())
    return len(wanted)


def _raise_rollups(entries: Iterable[LedgerEntry]) -> None:
    sums: dict[tuple[object, ...], list[int]] = defaultdict(lambda: [0] * len(_SUMS))
    for entry in entries:
        row = sums[_identity(entry)]
        for place, amount in enumerate(_amounts(entry)):
            row[place] += amount
    columns = ", ".join((*_IDENTITY, *_SUMS))
    marks = ", ".join(["%s"] * (len(_IDENTITY) + len(_SUMS)))
    table = UsageRollup._meta.db_table
    raised = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in _SUMS)
    statement = (  # names come from the constants above, values are bound
        f"INSERT INTO {table} ({columns}) VALUES ({marks}) ON CONFLICT ({', '.join(_IDENTITY)}) DO UPDATE SET {raised}"  # noqa: S608
    )
    # In a fixed order, so that two drains never wait for each other's rows in a circle.
    rows = [(*identity, *amounts) for identity, amounts in sorted(sums.items(), key=lambda item: str(item[0]))]
    with connection.cursor() as cursor:
        cursor.executemany(statement, rows)


def _identity(entry: LedgerEntry) -> tuple[object, ...]:
    day = entry.time.astimezone(UTC).date()
    return (day, entry.tenant_id, entry.key_id or "", entry.model_requested, entry.provider)


def _amounts(entry: LedgerEntry) -> tuple[int, ...]:
    return (
        1,
        int(entry.status != "success"),
        int(entry.fallback_used),
        int(entry.cached),
        int(entry.cost_nano is None),
        entry.cost_nano or 0,
        entry.input_tokens,
        entry.output_tokens,
        entry.cache_read_tokens,
        entry.cache_write_tokens,
        entry.reasoning_tokens,
    )
