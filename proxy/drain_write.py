"""One batch of stream entries into the database, in one transaction: audit chains, ledger, rollups, and the outbox of
whoever listens to the recorder. Idempotent: a batch that was committed before changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from django.db import transaction

from audit.recorder import NewEvent, record
from billing.ledger import post
from billing.models import LedgerEntry


class Entry(msgspec.Struct, kw_only=True):
    """A stream entry, see proxy.metering.entry."""

    id: str
    time_ms: int
    tenant_id: int
    key_pk: str | None
    charged: bool
    cost_nano: int | None
    price_id: int | None
    webhook_url: str | None = None
    event: dict[str, Any]


_decoder = msgspec.json.Decoder(Entry)


def read_entry(raw: bytes) -> Entry:
    """Raises msgspec.MsgspecError for what is none."""
    return _decoder.decode(raw)


def write_batch(batch: list[tuple[int, Entry]]) -> int:
    """Record (shard, entry) pairs; gives how many were new."""
    with transaction.atomic():
        fresh = record([_new_event(shard, entry) for shard, entry in batch])
        post([_ledger_entry(entry) for _, entry in batch if entry.charged])
    return len(fresh)


def _time(entry: Entry) -> datetime:
    return datetime.fromtimestamp(entry.time_ms / 1000, UTC)


def _new_event(shard: int, entry: Entry) -> NewEvent:
    event = entry.event
    return NewEvent(
        id=entry.id,
        chain=shard,
        time=_time(entry),
        body=event,
        tenant=event["tenant"],
        key_id=event["key_id"] or "",
        request_id=event["request_id"],
        status=event["status"],
        http_status=event["http_status"],
        error_code=event["error_code"] or "",
        extra={"tenant_id": entry.tenant_id, "webhook_url": entry.webhook_url},
    )


def _ledger_entry(entry: Entry) -> LedgerEntry:
    event = entry.event
    return LedgerEntry(
        event_id=entry.id,
        request_id=event["request_id"],
        time=_time(entry),
        tenant_id=entry.tenant_id,
        key_id=entry.key_pk,
        user=event["user"] or "",
        endpoint=event["endpoint"],
        model_requested=event["model_requested"] or "",
        model_served=event["model_served"] or "",
        provider=event["provider"] or "",
        status=event["status"],
        usage_source=event["usage_source"] or "",
        cost_nano=entry.cost_nano,
        price_id=entry.price_id,
        fallback_used=event["fallback_used"],
        cached=event["cached"],
        latency_ms=event["latency_ms"],
        input_tokens=event["input_tokens"] or 0,
        output_tokens=event["output_tokens"] or 0,
        cache_read_tokens=event["cache_read_tokens"] or 0,
        cache_write_tokens=event["cache_write_tokens"] or 0,
        reasoning_tokens=event["reasoning_tokens"] or 0,
    )
