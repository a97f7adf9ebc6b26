"""The Content-Security-Policy of every page Django serves: own files only, no inline script, no framing.

The admin's Alpine.js evaluates expressions in attributes, which needs 'unsafe-eval'; inline styles are its layout.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase

POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
Response = HttpResponseBase | Awaitable[HttpResponseBase]


class ContentSecurityMiddleware:
    """Sets the header unless a view has set one."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Response]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Response:
        response = self.get_response(request)
        if isinstance(response, HttpResponseBase):
            return _with_policy(response)
        return self._answer(response)

    async def _answer(self, pending: Awaitable[HttpResponseBase]) -> HttpResponseBase:
        return _with_policy(await pending)


def _with_policy(response: HttpResponseBase) -> HttpResponseBase:
    response.headers.setdefault("Content-Security-Policy", POLICY)
    return response
