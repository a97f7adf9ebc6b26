"""Whether the books agree: the ledger, the daily sums made from it, and the audit events it was made with."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Count, Sum

from audit.models import AuditEvent
from billing.models import LedgerEntry, UsageRollup
from billing.money import nano_to_text, usd_to_nano

CHUNK = 5_000
#: Differences told one by one.
TOLD = 20


def reconcile() -> dict[str, Any]:
    """Sums of each record and a sentence for each difference. One transaction, so that a running drain does not matter."""
    with transaction.atomic():
        ledger = LedgerEntry.objects.aggregate(requests=Count("id"), cost=Sum("cost_nano"))
        rollup = UsageRollup.objects.aggregate(requests=Sum("requests"), cost=Sum("cost_nano"))
        differences = _compare("rollups", ledger, rollup)
        differences += _against_audit()
    return {
        "requests": ledger["requests"],
        "cost_usd": nano_to_text(ledger["cost"] or 0),
        "differences": differences,
    }


def _compare(name: str, ledger: dict[str, Any], other: dict[str, Any]) -> list[str]:
    found = []
    for what in ("requests", "cost"):
        mine, theirs = ledger[what] or 0, other[what] or 0
        if mine != theirs:
            found.append(f"{what}: the ledger says {mine}, the {name} say {theirs}")
    return found


def _against_audit() -> list[str]:
    """Every ledger entry has its audit event with the same cost, and every charged event its entry."""
    costs = dict(LedgerEntry.objects.values_list("event_id", "cost_nano").iterator(chunk_size=CHUNK))
    found = []
    events = AuditEvent.objects.filter(kind="request").values_list("id", "status", "body")
    for event_id, status, body in events.iterator(chunk_size=CHUNK):
        told = json.loads(body)["cost_usd"]
        if event_id not in costs:
            if status != "refused" and told is not None and usd_to_nano(Decimal(told)):
                found.append(f"event {event_id} cost {told} USD and is not in the ledger")
            continue
        charged = costs.pop(event_id)
        if charged != (None if told is None else usd_to_nano(Decimal(told))):
            found.append(f"event {event_id}: the ledger says {charged} nano-USD, the audit log says {told} USD")
    found += [f"ledger entry {event_id} has no audit event" for event_id in costs]
    return found[:TOLD] + ([f"and {len(found) - TOLD} more"] if len(found) > TOLD else [])
