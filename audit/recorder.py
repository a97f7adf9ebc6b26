"""Writing the record: events into gap-free hash chains, inside the transaction of their cause.

A chain is one lock: its head row is taken for update, so sequence numbers have no gaps and no forks. Recording is
idempotent by event id: whoever delivers an event twice (a drain that crashed after its commit) changes nothing.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from audit.canonical import GENESIS, canonical, link_hash
from audit.chains import chain_of
from audit.models import AuditEvent, ChainHead

#: Names whose values are never recorded, wherever they occur in before and after.
SECRET_NAMES = frozenset(("api_key", "secret", "secrets", "digest", "password", "webhook_secret", "token"))


@dataclass(frozen=True, kw_only=True)
class NewEvent:
    """An event to record. `body` is what gets hashed, its `id` and `time` included; the rest are columns for searching."""

    id: str
    chain: int
    time: datetime
    body: dict[str, Any]
    kind: str = "request"
    tenant: str = ""
    key_id: str = ""
    request_id: str = ""
    status: str = ""
    http_status: int | None = None
    error_code: str = ""
    extra: dict[str, Any] = field(default_factory=dict)  # for listeners; not recorded


Listener = Callable[[list[NewEvent]], None]

#: Called in the transaction with what was newly recorded. Apps register here when they are ready.
listeners: list[Listener] = []


def record(events: Iterable[NewEvent]) -> list[NewEvent]:
    """Append `events` to their chains in order; those already recorded are left out. Gives the new ones.

    Call it inside a transaction: the chains' heads stay locked until it ends.
    """
    by_chain: dict[int, list[NewEvent]] = defaultdict(list)
    for event in events:
        by_chain[event.chain].append(event)
    fresh: list[NewEvent] = []
    with transaction.atomic():
        for chain in sorted(by_chain):  # always in this order: two writers never wait for each other in a circle
            fresh += _append(chain, by_chain[chain])
        if fresh:
            for listener in listeners:
                listener(fresh)
    return fresh


def _append(chain: int, events: list[NewEvent]) -> list[NewEvent]:
    head = _locked_head(chain)
    known = set(AuditEvent.objects.filter(id__in=[event.id for event in events]).values_list("id", flat=True))
    fresh, rows = [], []
    for event in events:
        if event.id in known:
            continue
        known.add(event.id)
        body = canonical(event.body)
        head.seq += 1
        previous, head.hash = head.hash, link_hash(chain, head.seq, head.hash, body)
        rows.append(_row(event, head, previous, body))
        fresh.append(event)
    if rows:
        AuditEvent.objects.bulk_create(rows)
        head.save(update_fields=["seq", "hash"])
    return fresh


def _locked_head(chain: int) -> ChainHead:
    head = ChainHead.objects.select_for_update().filter(chain=chain).first()
    if head is None:
        ChainHead.objects.bulk_create([ChainHead(chain=chain, seq=0, hash=GENESIS)], ignore_conflicts=True)
        head = ChainHead.objects.select_for_update().get(chain=chain)
    return head


def _row(event: NewEvent, head: ChainHead, previous: str, body: str) -> AuditEvent:
    return AuditEvent(
        id=event.id,
        chain=event.chain,
        seq=head.seq,
        prev_hash=previous,
        hash=head.hash,
        time=event.time,
        kind=event.kind,
        tenant=event.tenant,
        key_id=event.key_id,
        request_id=event.request_id,
        status=event.status,
        http_status=event.http_status,
        error_code=event.error_code,
        body=body,
    )


# ---------------------------------------------------------------- changes of the control plane


def record_change(  # noqa: PLR0913  (every part of who did what to what is needed, and named)
    kind: str,
    *,
    actor: str,
    subject: str,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
    tenant: str = "",
    key_id: str = "",
    reason: str = "",
    address: str = "",
) -> None:
    """Record a change made by a person or a command, in the caller's transaction. Secrets are left out by name."""
    now = datetime.now(UTC)
    event_id = new_event_id(now)
    body = {
        "id": event_id,
        "time": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "kind": kind,
        "actor": actor,
        "subject": subject,
        "before": _without_secrets(before),
        "after": _without_secrets(after),
        "tenant": tenant,
        "key_id": key_id or None,
        "reason": reason,
        "address": address,
    }
    chain = chain_of(tenant)
    record([NewEvent(id=event_id, chain=chain, time=now, body=body, kind=kind, tenant=tenant, key_id=key_id)])


def _without_secrets(values: Any) -> Any:
    if isinstance(values, dict):
        return {
            str(name): "[secret]" if name in SECRET_NAMES and value else _without_secrets(value)
            for name, value in values.items()
        }
    if isinstance(values, (list, tuple)):
        return [_without_secrets(value) for value in values]
    return values if values is None or isinstance(values, (bool, int, str)) else str(values)


def new_event_id(now: datetime) -> str:
    """UUIDv7 (RFC 9562) of this moment."""
    tail = os.urandom(10)
    milliseconds = int(now.timestamp() * 1000).to_bytes(6, "big")
    digits = (milliseconds + bytes((0x70 | tail[0] & 15, tail[1], 0x80 | tail[2] & 63)) + tail[3:]).hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
