"""The ledger: one entry for each charged request, and the daily sums raised with it in the same transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

from django.db import connection

from audit.bulk_insert import insert_rows, moment
from billing.models import LedgerEntry, UsageRollup


class Posting(NamedTuple):
    """One charged request on its way into the ledger: the columns of `billing.models.LedgerEntry`, in their order.

    `time` is when it was admitted; `cost_nano` None: its model had no price.
    """

    event_id: str
    request_id: str
    time: datetime
    tenant_id: int
    key_id: str | None
    user: str
    endpoint: str
    model_requested: str
    model_served: str
    provider: str
    status: str
    usage_source: str
    cost_nano: int | None
    price_id: int | None
    fallback_used: bool
    cached: bool
    latency_ms: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int


class Cell(NamedTuple):
    """What rollups are kept by: the identity of a `billing.models.UsageRollup`."""

    day: date
    tenant_id: int
    key_ref: str
    model: str
    provider: str


#: The sums of a rollup, in the order of `_amounts`.
SUMS = (
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


def post(postings: Iterable[Posting]) -> int:
    """Enter `postings` and raise the rollups by them, in the caller's transaction; gives how many were new.

    Idempotent by event id: an entry that is there already changes nothing. Who may post the same event at the same
    time must hold a lock before (the drain holds that of the event's chain).
    """
    wanted = {posting.event_id: posting for posting in postings}
    for event_id in LedgerEntry.objects.filter(event_id__in=list(wanted)).values_list("event_id", flat=True):
        del wanted[event_id]
    if wanted:
        rows = (posting._replace(time=moment(posting.time)) for posting in wanted.values())
        insert_rows(LedgerEntry._meta.db_table, Posting._fields, rows)
        _raise_rollups(wanted.values())
    return len(wanted)


def _raise_rollups(postings: Collection[Posting]) -> None:
    sums: dict[Cell, list[int]] = defaultdict(lambda: [0] * len(SUMS))
    for posting in postings:
        row = sums[_cell(posting)]
        for place, amount in enumerate(_amounts(posting)):
            row[place] += amount
    # In a fixed order, so that two drains never wait for each other's rows in a circle.
    rows: list[tuple[Any, ...]] = [(*cell, *amounts) for cell, amounts in sorted(sums.items())]
    with connection.cursor() as cursor:
        cursor.executemany(_UPSERT, rows)


def _upsert() -> str:
    """One statement for SQLite and PostgreSQL. Names come from the models, values are bound."""
    table, names = UsageRollup._meta.db_table, (*Cell._fields, *SUMS)
    raised = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in SUMS)
    marks = ", ".join(["%s"] * len(names))
    return (
        f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks}) "  # noqa: S608
        f"ON CONFLICT ({', '.join(Cell._fields)}) DO UPDATE SET {raised}"
    )


_UPSERT = _upsert()


def _cell(posting: Posting) -> Cell:
    day = posting.time.astimezone(UTC).date()
    return Cell(day, posting.tenant_id, posting.key_id or "", posting.model_requested, posting.provider)


def _amounts(posting: Posting) -> tuple[int, ...]:
    return (
        1,
        int(posting.status != "success"),
        int(posting.fallback_used),
        int(posting.cached),
        int(posting.cost_nano is None),
        posting.cost_nano or 0,
        posting.input_tokens,
        posting.output_tokens,
        posting.cache_read_tokens,
        posting.cache_write_tokens,
        posting.reasoning_tokens,
    )
