"""The admin as a whole. Its looks are in gatewaysite.unfold, its first page in gatewaysite.dashboard."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from unfold.sites import UnfoldAdminSite

from audit import events
from audit.mixins import actor_of, address_of
from audit.recorder import record_change


class TollbarAdminSite(UnfoldAdminSite):
    """Unfold's, with our name, and with the one change that no admin class makes: that of one's own password."""

    site_title = site_header = "Tollbar"
    index_title = "Overview"
    empty_value_display = "–"

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Callable[..., Any]:
        """No row has a NUL in its key, and PostgreSQL refuses to look for one."""
        inner = super().admin_view(view, cacheable)

        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            if "\x00" in request.path:
                raise Http404
            return inner(request, *args, **kwargs)

        return update_wrapper(guarded, view)

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        with transaction.atomic():
            before = request.user.password  # type: ignore[union-attr]
            response: HttpResponse = super().password_change(request, extra_context)
            if request.user.password != before:  # type: ignore[union-attr]
                name = request.user.get_username()
                record_change(
                    events.OBJECT_UPDATED,
                    actor=actor_of(request),
                    subject=f"user:{name}",
                    before={"username": name},
                    after={"username": name, "secrets_changed": ["password"]},
                    address=address_of(request),
                )
        return response
