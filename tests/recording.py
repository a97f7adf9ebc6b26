"""Events, stream entries and ledger postings as the product makes them, for tests of the record."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection

from audit.append_only import create_statements, drop_statements
from audit.event_id import new_event_id
from audit.recorder import NewEvent
from billing.ledger import Posting
from proxy.metering import iso_ms

#: 2026-03-14 09:26:53.589 UTC
MOMENT_MS = 1_773_480_413_589


def body_of_request(tenant: str, *, at_ms: int = MOMENT_MS, **fields: Any) -> dict[str, Any]:
    """The audit event of a request that succeeded, with all its fields (but for its link)."""
    event_id = fields.pop("id", None) or new_event_id(at_ms)
    usual = {
        "id": event_id,
        "time": iso_ms(at_ms),
        "request_id": f"req_{event_id[-12:]}",
        "tenant": tenant,
        "key_id": None,
        "user": None,
        "endpoint": "/v1/chat",
        "stream": False,
        "model_requested": "smart",
        "model_served": "large-1",
        "provider": "north",
        "status": "success",
        "http_status": 200,
        "error_code": None,
        "input_tokens": 100,
        "output_tokens": 20,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "reasoning_tokens": 0,
        "usage_source": "provider",
        "cost_usd": "0.000250",
        "price": "north/large-1@2026-01-01",
        "latency_ms": 12,
        "ttft_ms": None,
        "overhead_ms": 0.5,
        "attempts": [{"provider": "north", "model": "large-1", "outcome": "success", "http_status": 200}],
        "fallback_used": False,
        "cached": False,
        "metadata": None,
        "decision": [],
    }
    return usual | fields


def request_event(chain: int, tenant: str = "acme", *, at_ms: int = MOMENT_MS, **fields: Any) -> NewEvent:
    body = body_of_request(tenant, at_ms=at_ms, **fields)
    return NewEvent(id=body["id"], chain=chain, time=moment(at_ms), body=body)


def stream_entry(
    tenant_id: int, slug: str, *, at_ms: int = MOMENT_MS, nano: int | None = 250_000, **fields: Any
) -> dict[str, Any]:
    """A stream entry as proxy.metering.entry writes it; `envelope` changes what is around the event."""
    envelope = fields.pop("envelope", {})
    cost = None if nano is None else f"{nano // 10**9}.{nano % 10**9:09d}"
    event = body_of_request(slug, at_ms=at_ms, cost_usd=cost, **fields)
    usual = {
        "id": event["id"],
        "time_ms": at_ms,
        "tenant_id": tenant_id,
        "key_pk": event["key_id"],
        "charged": True,
        "cost_nano": nano,
        "price_id": None,
        "webhook_url": None,
        "event": event,
    }
    return usual | envelope


def encoded(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry).encode()


def posting(tenant_id: int, *, at_ms: int = MOMENT_MS, **fields: Any) -> Posting:
    """A ledger entry of a request that succeeded: 100 + 20 tokens for 250,000 nano-USD."""
    event_id = fields.pop("event_id", None) or new_event_id(at_ms)
    usual: dict[str, Any] = {
        "event_id": event_id,
        "request_id": f"req_{event_id[-12:]}",
        "time": moment(at_ms),
        "tenant_id": tenant_id,
        "key_id": None,
        "user": "",
        "endpoint": "/v1/chat",
        "model_requested": "smart",
        "model_served": "large-1",
        "provider": "north",
        "status": "success",
        "usage_source": "provider",
        "cost_nano": 250_000,
        "price_id": None,
        "fallback_used": False,
        "cached": False,
        "latency_ms": 12,
        "input_tokens": 100,
        "output_tokens": 20,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "reasoning_tokens": 0,
    }
    return Posting(**usual | fields)


def close_connection() -> None:
    """Of the thread that this runs in: PostgreSQL drops no database that somebody is connected to."""
    connection.close()


def moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms // 1000, UTC) + timedelta(milliseconds=at_ms % 1000)


def tamper(table: str, *statements: str) -> None:
    """What somebody with all rights on the database can do: switch the protection off, change, switch it on again."""
    vendor = connection.vendor
    for some in (drop_statements(vendor, table), statements, create_statements(vendor, table)):
        connection.check_constraints()  # PostgreSQL alters no table that has checks to come
        with connection.cursor() as cursor:
            for statement in some:
                cursor.execute(statement)
