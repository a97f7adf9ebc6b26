"""The request id of everything Django answers, and what every answer to a program carries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

import structlog
from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase

from proxy.consumers import request_id_of

Response = HttpResponseBase | Awaitable[HttpResponseBase]

_HEADER = "HTTP_X_REQUEST_ID"
_NOT_STORED = ("/v1/", "/api/")


class RequestIdMiddleware:
    """Keeps the caller's id when it has the allowed form, else makes one; both spellings go out with every answer.

    First in MIDDLEWARE: everything behind it reads the settled id from the request's own X-Request-ID header.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Response]) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Response:
        given = str(request.META.get(_HEADER, ""))
        request.META[_HEADER] = request_id_of({b"x-request-id": given.encode("latin-1", "replace")})
        if self.is_async:
            return self._answer(request)
        with structlog.contextvars.bound_contextvars(request_id=request.META[_HEADER]):
            response = self.get_response(request)
        return _marked(request, cast(HttpResponseBase, response))

    async def _answer(self, request: HttpRequest) -> HttpResponseBase:
        with structlog.contextvars.bound_contextvars(request_id=request.META[_HEADER]):
            response = cast(Awaitable[HttpResponseBase], self.get_response(request))
            return _marked(request, await response)


def _marked(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    response.headers["X-Request-ID"] = response.headers["request-id"] = request.META[_HEADER]
    if request.path.startswith(_NOT_STORED):
        response.headers["Cache-Control"] = "no-store"
    return response
