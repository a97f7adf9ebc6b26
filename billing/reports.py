"""What was used and what it cost, summed from the daily rollups, as rows and as CSV. Days are UTC days."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db.models import QuerySet, Sum

from billing.models import UsageRollup
from billing.money import nano_to_text
from tenants.models import ApiKey

#: What rows may be grouped by -> the rollup's column.
GROUPINGS = {"day": "day", "model": "model", "key": "key_ref"}
COUNTS = (
    "requests",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)
#: Rows taken from the database at a time when a whole report is written.
CHUNK_ROWS = 1000

#: A spreadsheet takes a cell that begins like this for a formula (OWASP, CSV injection; the last four are full-width).
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class UsageQuery:
    """One tenant's usage from `first` to `last` (both included), by some of GROUPINGS in that order."""

    tenant_id: int
    first: date
    last: date
    group_by: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        """The fields of a row. A key is named by `key` and identified by `key_id`, which outlives a rename."""
        names = [name for group in self.group_by for name in (("key", "key_id") if group == "key" else (group,))]
        return [*names, *COUNTS, "unpriced_requests", "cost_usd"]


def usage_rows(query: UsageQuery, *, offset: int, limit: int) -> list[Row]:
    """Rows in the order of the grouping fields."""
    names = key_names(query)
    return [_row(query, record, names) for record in _grouped(query)[offset : offset + limit]]


def usage_total(query: UsageQuery) -> Row:
    """The same sums over everything the query covers."""
    record = _rollups(query).aggregate(**_sums())
    return {name: _number(record, name) for name in COUNTS} | _money(record)


def usage_csv(query: UsageQuery) -> Iterator[str]:
    """The whole report as CSV text, a piece at a time; the first line names the columns."""
    names, columns = key_names(query), query.columns
    pending = [csv_line(columns)]
    for record in _grouped(query).iterator(chunk_size=CHUNK_ROWS):
        row = _row(query, record, names)
        pending.append(csv_line(row[column] for column in columns))
        if len(pending) >= CHUNK_ROWS:
            yield "".join(pending)
            pending.clear()
    yield "".join(pending)


def key_names(query: UsageQuery) -> dict[str, str]:
    """Names of the tenant's keys by id; revoked ones too."""
    if "key" not in query.group_by:
        return {}
    return dict(ApiKey.objects.filter(tenant_id=query.tenant_id).values_list("id", "name"))


def csv_line(cells: Iterable[object]) -> str:
    """One line (RFC 4180). Numbers stay numbers; a text that a spreadsheet would run begins with an apostrophe."""
    line = io.StringIO()
    csv.writer(line).writerow([neutralised(cell) if isinstance(cell, str) else cell for cell in cells])
    return line.getvalue()


def neutralised(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def _rollups(query: UsageQuery) -> QuerySet[UsageRollup]:
    return UsageRollup.objects.filter(tenant_id=query.tenant_id, day__gte=query.first, day__lte=query.last)


def _sums() -> dict[str, Sum]:
    return {f"sum_{name}": Sum(name) for name in (*COUNTS, "unpriced", "cost_nano")}


def _grouped(query: UsageQuery) -> QuerySet[UsageRollup, dict[str, Any]]:
    columns: Sequence[str] = [GROUPINGS[group] for group in query.group_by]
    grouped: QuerySet[UsageRollup, dict[str, Any]] = _rollups(query).values(*columns).annotate(**_sums())
    return grouped.order_by(*columns)


def _row(query: UsageQuery, record: dict[str, Any], names: dict[str, str]) -> Row:
    row: Row = {}
    for group in query.group_by:
        value = record[GROUPINGS[group]]
        if group == "key":
            row["key"], row["key_id"] = names.get(value), value or None
        else:
            row[group] = value.isoformat() if isinstance(value, date) else value
    return row | {name: _number(record, name) for name in COUNTS} | _money(record)


def _number(record: dict[str, Any], name: str) -> int:
    """Sums come as int or Decimal, and as None when there was nothing to sum."""
    return int(record[f"sum_{name}"] or 0)


def _money(record: dict[str, Any]) -> Row:
    cost = nano_to_text(_number(record, "cost_nano"))
    return {"unpriced_requests": _number(record, "unpriced"), "cost_usd": cost}
