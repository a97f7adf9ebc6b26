"""Whether the books agree: the ledger, the daily sums made from it, and the audit events it was made with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC
from decimal import Decimal, InvalidOperation
from typing import Any

from django.db.models import Count, F, Q, Sum, Value
from django.db.models.functions import Coalesce, TruncDate

from audit.consistent_reads import consistent_reads
from audit.events import REQUEST
from audit.models import AuditEvent
from billing.ledger import SUMS, Cell
from billing.models import LedgerEntry, UsageRollup
from billing.money import nano_to_text, usd_to_nano

CHUNK = 5_000
#: Differences told one by one; the others are counted.
TOLD = 50


@dataclass
class Differences:
    """Sentences, the first TOLD of them, and how many there are."""

    count: int = 0
    told: list[str] = field(default_factory=list)

    def add(self, sentence: str) -> None:
        self.count += 1
        if len(self.told) < TOLD:
            self.told.append(sentence)


@dataclass
class Books:
    """The ledger's sums (nano-USD), and where the other books say something else."""

    requests: int
    cost_nano: int
    differences: Differences


def compare_books() -> Books:
    """Read all books as they are at one moment, so a drain that runs meanwhile makes no difference."""
    differences = Differences()
    with consistent_reads():
        total = LedgerEntry.objects.aggregate(requests=Count("id"), cost=Sum("cost_nano"))
        _compare_rollups(differences)
        _compare_audit(differences)
    return Books(total["requests"], int(total["cost"] or 0), differences)


# ---------------------------------------------------------------- rollups


def _compare_rollups(differences: Differences) -> None:
    names = (*Cell._fields, *SUMS)
    kept = {
        Cell(*row[: len(Cell._fields)]): row[len(Cell._fields) :]
        for row in UsageRollup.objects.values_list(*names).iterator(chunk_size=CHUNK)
    }
    for cell, sums in _sums_of_entries():
        _compare_cell(differences, cell, sums, kept.pop(cell, None))
    for cell in kept:
        differences.add(f"{_named(cell)}: the rollup has no ledger entries")


def _sums_of_entries() -> Iterator[tuple[Cell, tuple[int, ...]]]:
    """What the rollups must be, from the entries."""
    tokens = [name for name in SUMS if name.endswith("_tokens")]
    entries = LedgerEntry.objects.annotate(
        day=TruncDate("time", tzinfo=UTC), key_ref=Coalesce("key_id", Value("")), model=F("model_requested")
    )
    rows = entries.order_by().values(*Cell._fields)
    summed = rows.annotate(
        sum_requests=Count("id"),
        sum_failed=Count("id", filter=~Q(status="success")),
        sum_fallbacks=Count("id", filter=Q(fallback_used=True)),
        sum_cache_hits=Count("id", filter=Q(cached=True)),
        sum_unpriced=Count("id", filter=Q(cost_nano=None)),
        sum_cost_nano=Sum("cost_nano"),
        **{f"sum_{name}": Sum(name) for name in tokens},
    )
    for row in summed.iterator(chunk_size=CHUNK):
        cell = Cell(*(row[name] for name in Cell._fields))
        yield cell, tuple(int(row[f"sum_{name}"] or 0) for name in SUMS)


def _compare_cell(differences: Differences, cell: Cell, ledger: tuple[int, ...], rollup: Any) -> None:
    if rollup is None:
        differences.add(f"{_named(cell)}: {ledger[0]} ledger entries have no rollup")
        return
    for name, mine, theirs in zip(SUMS, ledger, rollup, strict=True):
        if mine != theirs:
            differences.add(f"{_named(cell)}: {name} is {mine} by the ledger, {theirs} by the rollup")


def _named(cell: Cell) -> str:
    return f"{cell.day} tenant {cell.tenant_id} key {cell.key_ref or '-'} {cell.model} at {cell.provider or '-'}"


# ---------------------------------------------------------------- audit


def _compare_audit(differences: Differences) -> None:
    """Every ledger entry has its audit event with the same cost, and every event that cost something its entry."""
    entries = LedgerEntry.objects.order_by("event_id").values_list("event_id", "cost_nano").iterator(chunk_size=CHUNK)
    events = AuditEvent.objects.filter(kind=REQUEST).order_by("id").values_list("id", "status", "body")
    entry = next(entries, None)
    for event_id, status, body in events.iterator(chunk_size=CHUNK):
        while entry is not None and entry[0] < event_id:
            differences.add(f"ledger entry {entry[0]} has no audit event")
            entry = next(entries, None)
        told = _nano_told(body)
        if entry is not None and entry[0] == event_id:
            if entry[1] != told:
                differences.add(f"event {event_id} cost {_usd(entry[1])} by the ledger, {_usd(told)} by the audit log")
            entry = next(entries, None)
        elif told and status != "refused":
            differences.add(f"event {event_id} cost {_usd(told)} and is not in the ledger")
    while entry is not None:
        differences.add(f"ledger entry {entry[0]} has no audit event")
        entry = next(entries, None)


def _nano_told(body: str) -> int | None:
    """Nano-USD that an event says it cost; -1 when it says nothing that can be read."""
    try:
        told = json.loads(body)["cost_usd"]
        return None if told is None else usd_to_nano(Decimal(told))
    except (ValueError, TypeError, LookupError, InvalidOperation):
        return -1


def _usd(nano: int | None) -> str:
    return "no price" if nano is None else f"{nano_to_text(nano)} USD"
