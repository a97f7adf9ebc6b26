"""Reading the record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from audit.models import AuditEvent

CHUNK = 2_000


def told(event: AuditEvent) -> dict[str, Any]:
    """An event as it is told outside: its body and its place in the chain (CONTRACT section 6)."""
    body: dict[str, Any] = json.loads(event.body)
    return body | {"chain": event.chain, "seq": event.seq, "prev_hash": event.prev_hash, "hash": event.hash}


def exported(
    *, tenant: str = "", start: datetime | None = None, end: datetime | None = None
) -> Iterator[dict[str, Any]]:
    """Events in the order of their chains, for an offline check; `end` is not included."""
    events = AuditEvent.objects.order_by("chain", "seq")
    if tenant:
        events = events.filter(tenant=tenant)
    if start is not None:
        events = events.filter(time__gte=start)
    if end is not None:
        events = events.filter(time__lt=end)
    for event in events.iterator(chunk_size=CHUNK):
        yield told(event)
