"""Secrets that are shown once: kept encrypted in the session between the POST that made one and the page that shows it.

The page takes the secret out of the session, so that reloading it, going back to it or sending the form again shows
nothing. It is reached by a redirect, never rendered as the answer to the POST.
"""

from __future__ import annotations

import time
from typing import Any

from django.contrib.admin.utils import unquote
from django.contrib.sessions.backends.base import SessionBase
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.views.decorators.http import require_safe

from tenants.encryption import decrypt, encrypt

SESSION_KEY = "shown_once"
#: How long a secret waits for its page (seconds).
KEPT_SECONDS = 600
MAX_WAITING = 5
_PURPOSE = "secret shown once"


def put(session: SessionBase, subject: str, secret: str) -> None:
    """Keep `secret` for the next look at `subject`."""
    waiting = dict(session.get(SESSION_KEY, {}))
    waiting.pop(subject, None)
    waiting[subject] = {"secret": encrypt(secret, _PURPOSE), "until": time.time() + KEPT_SECONDS}
    session[SESSION_KEY] = dict(list(waiting.items())[-MAX_WAITING:])


def take(session: SessionBase, subject: str) -> str | None:
    """The secret waiting for `subject`, which waits no longer; None when there is none (any more)."""
    waiting = dict(session.get(SESSION_KEY, {}))
    entry = waiting.pop(subject, None)
    if entry is None:
        return None
    session[SESSION_KEY] = waiting
    return decrypt(entry["secret"], _PURPOSE) if entry["until"] > time.time() else None


class ShowsSecretOnce:
    """For admin classes of rows that get a secret: adds the page `<id>/secret/`."""

    secret_title = "Secret"
    secret_use = ""

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(require_safe(self.secret_view))  # type: ignore[attr-defined]
        own = path("<path:object_id>/secret/", view, name=self._url_name())
        return [own, *super().get_urls()]  # type: ignore[misc]

    def show_once(self, request: HttpRequest, row: Any, secret: str) -> str:
        """Keep `secret` for its page; gives the page's URL."""
        put(request.session, self._subject(row), secret)
        return reverse(f"{self.admin_site.name}:{self._url_name()}", args=(row.pk,))  # type: ignore[attr-defined]

    def secret_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        row = self.get_object(request, unquote(object_id))  # type: ignore[attr-defined]
        if not self.has_view_or_change_permission(request, row):  # type: ignore[attr-defined]
            raise PermissionDenied
        if row is None:
            raise Http404
        secret = take(request.session, self._subject(row)) if request.method == "GET" else None
        context = {
            **self.admin_site.each_context(request),  # type: ignore[attr-defined]
            "title": self.secret_title,
            "opts": self.opts,  # type: ignore[attr-defined]
            "row": row,
            "secret": secret,
            "secret_use": self.secret_use,
            "row_url": self.change_url(row),  # type: ignore[attr-defined]
        }
        response = TemplateResponse(request, "admin/shown_once.html", context)
        response.headers["Referrer-Policy"] = "no-referrer"
        return response

    def _url_name(self) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_secret"  # type: ignore[attr-defined]

    def _subject(self, row: Any) -> str:
        return f"{self.opts.label_lower}:{row.pk}"  # type: ignore[attr-defined]
