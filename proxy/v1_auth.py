"""Who reads: the same credentials, the same refusals and the same checks as on the data plane."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

from django.http import HttpRequest

from proxy.authenticate import authenticate, credential_of
from proxy.authorise import authorise
from proxy.exchange import Principal
from proxy.runtime import ensure_started
from proxy.snapshot import matches

Authenticator = Callable[[HttpRequest], Awaitable[Principal]]

_CREDENTIAL_HEADERS = ("Authorization", "X-Api-Key", "Api-Key")


def caller(scope: str | None = None) -> Authenticator:
    """A ninja authenticator. `scope` None: any valid credential may read. Raises Unauthenticated or Forbidden."""

    async def authenticated(request: HttpRequest) -> Principal:
        plane = await ensure_started()
        principal = await authenticate(plane, credential_of(_credential_headers(request)))
        authorise(principal, scope, request.META.get("REMOTE_ADDR", ""))
        return principal

    return authenticated


def principal_of(request: HttpRequest) -> Principal:
    """Who was authenticated for this view."""
    return cast(Principal, request.auth)  # type: ignore[attr-defined]


def may_use(principal: Principal, model: str) -> bool:
    """Whether both the credential and its tenant allow the alias `model`."""
    return matches(principal.models, model) and matches(principal.tenant.models, model)


def _credential_headers(request: HttpRequest) -> dict[bytes, bytes]:
    """Django joins a header that was sent twice with a comma, so two credentials are one that nobody has."""
    found = {}
    for name in _CREDENTIAL_HEADERS:
        value = request.META.get(f"HTTP_{name.upper().replace('-', '_')}")
        if value is not None:
            found[name.lower().encode()] = value.encode("latin-1", "replace")
    return found
