"""One batch of stream entries into the database, in one transaction: audit chains, ledger, rollups, and the outbox of
whoever listens to the recorder. Idempotent: a batch that was committed before changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from django.db import connection, transaction
from msgspec import Meta

from audit.columns import storable
from audit.recorder import NewEvent, record
from billing.ledger import Posting, post

#: How long a batch waits for a lock (ms). Less than PostgreSQL's deadlock_timeout (1 s): when a change of the control
#: plane and a batch wait for each other, it is the batch that gives way and comes again.
LOCK_TIMEOUT_MS = 500

#: What PostgreSQL's bigint holds.
_Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_Text = str | None


class Recorded(msgspec.Struct):
    """What of an event the columns of audit events and ledger entries need. Other fields are only recorded."""

    id: Annotated[str, Meta(min_length=36, max_length=36)]
    time: Annotated[datetime, Meta(tz=True)]
    tenant: str
    request_id: str
    key_id: _Text = None
    user: _Text = None
    endpoint: _Text = None
    model_requested: _Text = None
    model_served: _Text = None
    provider: _Text = None
    status: _Text = None
    http_status: Annotated[int, Meta(ge=0, le=32767)] | None = None
    error_code: _Text = None
    usage_source: _Text = None
    cost_usd: _Text = None
    input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    cache_read_tokens: _Count | None = None
    cache_write_tokens: _Count | None = None
    reasoning_tokens: _Count | None = None
    latency_ms: _Count = 0
    fallback_used: bool = False
    cached: bool = False


class Envelope(msgspec.Struct, kw_only=True):
    """A stream entry, see proxy.metering.entry."""

    id: str
    time_ms: Annotated[int, Meta(ge=0, le=253_402_300_799_000)]  # to the end of the year 9999
    tenant_id: _Count
    key_pk: _Text = None
    charged: bool
    cost_nano: _Count | None = None
    price_id: _Count | None = None
    webhook_url: _Text = None
    event: msgspec.Raw


class Entry(msgspec.Struct):
    """A stream entry that was understood."""

    envelope: Envelope
    event: Recorded
    body: dict[str, Any]


_envelopes = msgspec.json.Decoder(Envelope)
_events = msgspec.json.Decoder(Recorded)


def read_entry(raw: bytes) -> Entry:
    """Raises ValueError for what is no entry, or could not be stored as one."""
    envelope = _envelopes.decode(raw)
    entry = Entry(envelope, _events.decode(envelope.event), msgspec.json.decode(envelope.event))
    if entry.event.id != envelope.id:
        raise ValueError("the entry's id is not its event's")
    return entry


def write_batch(batch: Sequence[tuple[int, Entry]], *, tell: bool = True, charge: bool = True) -> int:
    """Record (shard, entry) pairs and post what is charged; gives how many events were new.

    Without `tell` no listener hears of them, without `charge` the ledger does not. Raises DatabaseError, and what
    listeners raise.
    """
    with transaction.atomic():
        _wait_for_locks_only_so_long()
        fresh = record((_new_event(shard, entry) for shard, entry in batch), tell=tell)
        if charge:
            post(_posting(entry) for _, entry in batch if entry.envelope.charged)
    return len(fresh)


def _wait_for_locks_only_so_long() -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")


def _time(entry: Entry) -> datetime:
    return datetime.fromtimestamp(entry.envelope.time_ms / 1000, UTC)


def _new_event(shard: int, entry: Entry) -> NewEvent:
    told = {"tenant_id": entry.envelope.tenant_id, "webhook_url": entry.envelope.webhook_url}
    return NewEvent(id=entry.envelope.id, chain=shard, time=entry.event.time, body=entry.body, extra=told)


def _posting(entry: Entry) -> Posting:
    envelope, event = entry.envelope, entry.event
    return Posting(
        event_id=envelope.id,
        request_id=storable(event.request_id, 64),
        time=_time(entry),
        tenant_id=envelope.tenant_id,
        key_id=envelope.key_pk,
        user=storable(event.user or "", 512),
        endpoint=storable(event.endpoint or "", 40),
        model_requested=storable(event.model_requested or "", 200),
        model_served=storable(event.model_served or "", 200),
        provider=storable(event.provider or "", 63),
        status=storable(event.status or "", 16),
        usage_source=storable(event.usage_source or "", 10),
        cost_nano=envelope.cost_nano,
        price_id=envelope.price_id,
        fallback_used=event.fallback_used,
        cached=event.cached,
        latency_ms=min(event.latency_ms, 2**31 - 1),
        input_tokens=event.input_tokens or 0,
        output_tokens=event.output_tokens or 0,
        cache_read_tokens=event.cache_read_tokens or 0,
        cache_write_tokens=event.cache_write_tokens or 0,
        reasoning_tokens=event.reasoning_tokens or 0,
    )
