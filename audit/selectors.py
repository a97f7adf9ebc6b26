"""Reading the record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from audit.consistent_reads import consistent_reads
from audit.models import AuditEvent

CHUNK = 2_000


def told(event: AuditEvent) -> dict[str, Any]:
    """An event as it is told outside: its body and its place in the chain."""
    body: dict[str, Any] = json.loads(event.body)
    return body | {"chain": event.chain, "seq": event.seq, "prev_hash": event.prev_hash, "hash": event.hash}


def exported(*, tenant: str = "", start: datetime | None = None, end: datetime | None = None) -> Iterator[str]:
    """Lines of an export, in the order of the chains: the hashed text itself, and in it the event's place.

    `end` is not included. The format is audit/verifier.py's and docs/audit.md's business too.
    """
    events = AuditEvent.objects.order_by("chain", "seq")
    if tenant:
        events = events.filter(tenant=tenant)
    if start is not None:
        events = events.filter(time__gte=start)
    if end is not None:
        events = events.filter(time__lt=end)
    links = events.values_list("body", "chain", "seq", "prev_hash", "hash")
    with consistent_reads():
        for body, chain, seq, prev_hash, own_hash in links.iterator(chunk_size=CHUNK):
            yield f'{body[:-1]},"chain":{chain},"seq":{seq},"prev_hash":"{prev_hash}","hash":"{own_hash}"}}'
