"""The record in the admin: events can be found and read, never changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import DropdownFilter, TextFilter
from unfold.decorators import display

from audit.events import REQUEST
from audit.json_text import pretty_json
from audit.models import AuditEvent
from audit.newest_rows import NewestRowsAdmin, UntilFilter, filter_text

#: Rows of one request id that a search gives.
MAX_FOUND = 200
STATUSES = ("success", "failed", "refused", "cancelled", "indeterminate")
STATUS_COLOURS = {
    "success": "success",
    "failed": "danger",
    "refused": "warning",
    "cancelled": "info",
    "indeterminate": "warning",
}


class TenantFilter(TextFilter):
    """Exactly this tenant."""

    title = "tenant (slug)"
    parameter_name = "tenant"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        slug = filter_text(self.value())
        return queryset.filter(tenant=slug) if slug else queryset


class StatusFilter(DropdownFilter):
    title = "status"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(status, status) for status in STATUSES]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(status=self.value()) if self.value() in STATUSES else queryset


class WhatFilter(DropdownFilter):
    title = "kind"
    parameter_name = "what"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("requests", "Requests"), ("changes", "Changes and other events")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == "requests":
            return queryset.filter(kind=REQUEST)
        return queryset.exclude(kind=REQUEST) if self.value() == "changes" else queryset


@admin.register(AuditEvent)
class AuditEventAdmin(NewestRowsAdmin[AuditEvent]):
    """`known_tenants` give the slugs that a request id is looked for under, so that the index of both serves; the
    layer that knows tenants adds itself."""

    known_tenants: ClassVar[list[Callable[[], Any]]] = []

    not_listed = ("body",)
    list_display = ("time", "kind", "tenant", "request_id", "status_badge", "http_status", "error_code")
    list_filter = (TenantFilter, UntilFilter, WhatFilter, StatusFilter)
    search_fields = ("id__exact",)
    search_help_text = "An event's id or a request id, whole."
    fieldsets = (
        (None, {"fields": (("time", "kind"), ("tenant", "key_id"), "request_id")}),
        ("Outcome", {"fields": (("status", "http_status", "error_code"),)}),
        ("Event", {"fields": ("body_json",)}),
        ("Place in the chain", {"fields": ("id", ("chain", "seq"), "prev_hash", "hash"), "classes": ("collapse",)}),
    )
    readonly_fields = ("body_json",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditEvent], search_term: str
    ) -> tuple[QuerySet[AuditEvent], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        same_request = AuditEvent.objects.filter(request_id=term)
        for slugs in self.known_tenants:
            same_request = same_request.filter(tenant__in=slugs())
        ids = [*same_request.values_list("id", flat=True)[:MAX_FOUND], term]
        return queryset.filter(id__in=ids), False

    @display(description="status", label=STATUS_COLOURS)
    def status_badge(self, event: AuditEvent) -> str | None:
        return event.status or None

    @display(description="body")
    def body_json(self, event: AuditEvent) -> SafeString:
        return pretty_json(event.body)
