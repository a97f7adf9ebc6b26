"""Reading the ledger across tenants: what the commands of manage.py report. Days are UTC days, both ends included."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db.models import Count, F, QuerySet, Sum, Window
from django.db.models.functions import RowNumber, TruncDate

from billing.models import LedgerEntry, UsageRollup
from billing.money import nano_to_text
from billing.reports import COUNTS
from tenants.models import ApiKey

#: What usage may be grouped by -> the rollup's column.
GROUPINGS = {
    "tenant": "tenant__slug",
    "day": "day",
    "model": "model",
    "provider": "provider",
    "key": "key_ref",
}
#: Rows fetched at a time.
CHUNK = 2_000

Row = dict[str, Any]


def usage_columns(group_by: tuple[str, ...]) -> list[str]:
    """Fields of a row of `usage`, in order. A key is named by `key` and identified by `key_id`."""
    names = [name for group in group_by for name in (("key", "key_id") if group == "key" else (group,))]
    return [*names, *COUNTS, "unpriced_requests", "cost_usd"]


def usage(first: date, last: date, group_by: tuple[str, ...]) -> Iterator[Row]:
    """Usage of all tenants by some of GROUPINGS, in the order of the grouping fields."""
    columns = [GROUPINGS[group] for group in group_by]
    sums = {f"sum_{name}": Sum(name) for name in (*COUNTS, "unpriced", "cost_nano")}
    rows = _rollups(first, last).values(*columns).annotate(**sums).order_by(*columns)
    keys = dict(ApiKey.objects.values_list("id", "name")) if "key" in group_by else {}
    for record in rows.iterator(chunk_size=CHUNK):
        row: Row = {}
        for group, column in zip(group_by, columns, strict=True):
            value = record[column]
            if group == "key":
                row |= {"key": keys.get(value), "key_id": value or None}
            else:
                row[group] = value.isoformat() if isinstance(value, date) else value
        row |= {name: int(record[f"sum_{name}"] or 0) for name in COUNTS}
        row["unpriced_requests"] = int(record["sum_unpriced"] or 0)
        row["cost_usd"] = nano_to_text(int(record["sum_cost_nano"] or 0))
        yield row


def daily_costs(first: date, last: date) -> Iterator[Row]:
    """A row for each day and tenant with usage: spend, tokens, rates between 0 and 1, and the 95th percentile of
    latency (ms): the smallest that at least 95 of 100 requests did not exceed."""
    names = ("requests", "cost_nano", "input_tokens", "output_tokens", "cache_hits", "fallbacks", "failed")
    sums = {f"sum_{name}": Sum(name) for name in names}
    rows: Any = _rollups(first, last).values("day", "tenant__slug").annotate(**sums)
    slow = _p95_latencies(first, last)
    for record in rows.order_by("day", "tenant__slug"):
        requests = record["sum_requests"]
        yield {
            "day": record["day"].isoformat(),
            "tenant": record["tenant__slug"],
            "requests": requests,
            "cost_usd": nano_to_text(int(record["sum_cost_nano"])),
            "input_tokens": int(record["sum_input_tokens"]),
            "output_tokens": int(record["sum_output_tokens"]),
            "cache_hit_rate": round(record["sum_cache_hits"] / requests, 4),
            "fallback_rate": round(record["sum_fallbacks"] / requests, 4),
            "failure_rate": round(record["sum_failed"] / requests, 4),
            "p95_latency_ms": slow.get((record["day"], record["tenant__slug"])),
        }


def dearest_requests(since: datetime, limit: int) -> list[Row]:
    """The requests admitted from `since` on that cost most, the dearest first."""
    entries = LedgerEntry.objects.filter(time__gte=since, cost_nano__gt=0).select_related("tenant")
    return [
        {
            "time": entry.time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "tenant": entry.tenant.slug,
            "key_id": entry.key_id,
            "request_id": entry.request_id,
            "model": entry.model_requested,
            "provider": entry.provider,
            "model_served": entry.model_served,
            "status": entry.status,
            "input_tokens": entry.input_tokens,
            "output_tokens": entry.output_tokens,
            "latency_ms": entry.latency_ms,
            "cost_usd": nano_to_text(entry.cost_nano or 0),
        }
        for entry in entries.order_by("-cost_nano", "-time")[:limit]
    ]


def _rollups(first: date, last: date) -> QuerySet[UsageRollup]:
    return UsageRollup.objects.filter(day__gte=first, day__lte=last)


def _p95_latencies(first: date, last: date) -> dict[tuple[date, str], int]:
    begin = datetime.combine(first, time(), UTC)
    end = datetime.combine(last + timedelta(days=1), time(), UTC)
    cell = [F("day"), F("tenant_id")]
    ranked = (
        LedgerEntry.objects.filter(time__gte=begin, time__lt=end)
        .annotate(day=TruncDate("time", tzinfo=UTC))
        .annotate(
            place=Window(RowNumber(), partition_by=cell, order_by=["latency_ms", "id"]),
            count=Window(Count("id"), partition_by=cell),
        )
        .filter(place=(F("count") * 95 + 99) / 100)
    )
    return {(day, slug): latency for day, slug, latency in ranked.values_list("day", "tenant__slug", "latency_ms")}
