"""GET /v1/audit: the requests of the caller's tenant, newest first. There is no verb that changes one.

Changes by operators are in the same chains (export_audit tells them); who made them is not the tenants' to read.
"""

from __future__ import annotations

import json
import uuid
from typing import Any

from django.http import HttpRequest, JsonResponse
from ninja import Query, Router

from audit.models import AuditEvent
from proxy.v1_auth import caller, principal_of
from proxy.v1_database import read
from proxy.v1_parameters import only_known
from proxy.v1_schemas import ERRORS, AuditFilters, AuditPage

router = Router(tags=["audit"], auth=caller("audit:read"))


@router.get("/audit", response={200: AuditPage, **ERRORS}, summary="Audit log", operation_id="get_audit")
async def get_audit(request: HttpRequest, filters: Query[AuditFilters]) -> JsonResponse:
    """One event a request of the caller's tenant, with its place in the chain. Needs the scope `audit:read`."""
    only_known(request, AuditFilters)
    events = await read(tenant_events, principal_of(request).tenant.slug, filters)
    page = events[: filters.limit]
    more = len(events) > filters.limit
    # Not validated on the way out: what was recorded is told as it is.
    return JsonResponse({"data": page, "next_cursor": uuid.UUID(page[-1]["id"]).hex if more else None})


def tenant_events(tenant: str, filters: AuditFilters) -> list[dict[str, Any]]:
    """Up to one more than a page: UUIDv7 ids order events by time."""
    events = AuditEvent.objects.filter(tenant=tenant, kind="request")
    if filters.cursor is not None:
        events = events.filter(id__lt=str(uuid.UUID(filters.cursor)))
    if filters.request_id is not None:
        events = events.filter(request_id=filters.request_id)
    if filters.status is not None:
        events = events.filter(status=filters.status)
    return [_as_recorded(event) for event in events.order_by("-id")[: filters.limit + 1]]


def _as_recorded(event: AuditEvent) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(event.body)
    return body | {"chain": event.chain, "seq": event.seq, "prev_hash": event.prev_hash, "hash": event.hash}
