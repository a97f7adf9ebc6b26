"""GET /v1/usage: what the caller's tenant used and what it cost. Never behind a limit or a budget."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime
from typing import Any

from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.utils.cache import patch_vary_headers
from ninja import Query, Router

from billing.reports import UsageQuery, usage_csv, usage_rows, usage_total
from proxy.v1_auth import caller, principal_of
from proxy.v1_database import read, stream
from proxy.v1_parameters import only_known
from proxy.v1_schemas import ERRORS, UsageFilters, UsageReport

router = Router(tags=["usage"], auth=caller())

#: Days of a report whose beginning is not named, the last one included.
DEFAULT_DAYS = 30

_CSV_DOCUMENTED = {"responses": {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}}}


@router.get(
    "/usage",
    response={200: UsageReport, **ERRORS},
    summary="Usage and cost",
    operation_id="get_usage",
    by_alias=True,
    exclude_unset=True,
    openapi_extra=_CSV_DOCUMENTED,
)
async def get_usage(request: HttpRequest, filters: Query[UsageFilters]) -> Any:
    """Requests, tokens and cost of the caller's tenant by day, model and key, as JSON or CSV."""
    only_known(request, UsageFilters)
    last = filters.last or datetime.now(UTC).date()
    query = UsageQuery(
        tenant_id=principal_of(request).tenant.id,
        first=filters.first or _days_before(last, DEFAULT_DAYS - 1),
        last=last,
        group_by=tuple(dict.fromkeys(filters.group_by.split(","))),
    )
    if _wants_csv(request, filters):
        return await _csv(query)
    offset = int(filters.cursor or 0)
    rows = await read(usage_rows, query, offset=offset, limit=filters.limit + 1)
    return {
        "data": rows[: filters.limit],
        "next_cursor": str(offset + filters.limit) if len(rows) > filters.limit else None,
        "total": await read(usage_total, query),
        "from": query.first.isoformat(),
        "to": query.last.isoformat(),
    }


def _days_before(day: date, days: int) -> date:
    return date.fromordinal(max(day.toordinal() - days, date.min.toordinal()))


def _wants_csv(request: HttpRequest, filters: UsageFilters) -> bool:
    if filters.format is not None:
        return filters.format == "csv"
    return request.get_preferred_type(["application/json", "text/csv"]) == "text/csv"


async def _csv(query: UsageQuery) -> HttpResponseBase:
    """The report as a stream; its first piece is read before the answer begins, so that a failure is still an error."""
    pieces = stream(lambda: usage_csv(query))
    first = await anext(pieces)

    async def body() -> AsyncIterator[str]:
        yield first
        async for piece in pieces:
            yield piece

    response = StreamingHttpResponse(body(), content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="usage-{query.first}-{query.last}.csv"'
    patch_vary_headers(response, ["Accept"])
    return response
