"""Errors for programs are JSON: whatever Django itself answers under /v1 and /api comes out in the error shape.

One rule for 400 (a Host that is not ours), 403 (CSRF), 404 (no such path), 405 and 500, with DEBUG on or off: an error
under those paths that is no JSON yet is replaced. People's pages (the admin) keep theirs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from proxy.errors import BadRequest
from proxy.v1_errors import error_of_status, error_response

Response = HttpResponseBase | Awaitable[HttpResponseBase]

PROGRAMS_PREFIXES = ("/v1/", "/api/")
PROGRAMS_PATHS = ("/v1", "/api", "/healthz", "/readyz", "/metrics")
WRONG_HOST_MESSAGE = "The Host header names no host of this gateway."


class JsonErrorsMiddleware:
    """Second in MIDDLEWARE, behind the request id that the errors tell."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Response]) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Response:
        if self.is_async:
            return self._answer(request)
        response = _refused_host(request) or self.get_response(request)
        return _in_our_shape(request, cast(HttpResponseBase, response))

    async def _answer(self, request: HttpRequest) -> HttpResponseBase:
        response = _refused_host(request) or self.get_response(request)
        if not isinstance(response, HttpResponseBase):
            response = await response
        return _in_our_shape(request, response)


def _refused_host(request: HttpRequest) -> HttpResponse | None:
    """Looked at before anything else does, because Django's own page about it names the setting."""
    try:
        request.get_host()
    except DisallowedHost:
        return error_response(request, BadRequest(WRONG_HOST_MESSAGE))
    return None


def _in_our_shape(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if response.status_code < 400 or not _is_for_programs(request.path):
        return response
    if response.headers.get("Content-Type", "").startswith("application/json"):
        return response
    allow = response.headers.get("Allow", "")
    replacement = error_response(request, error_of_status(response.status_code, allow=allow))
    response.close()
    return replacement


def _is_for_programs(path: str) -> bool:
    path = "/" + path.lstrip("/")  # a base URL with one slash too many is a program's, too
    return path in PROGRAMS_PATHS or path.startswith(PROGRAMS_PREFIXES)
