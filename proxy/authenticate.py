"""Who calls: a key or a token, from one of four headers, to a Principal.

A malformed credential costs no I/O. A known key costs one HMAC and one dictionary look-up. An unknown one asks the
database once, off the loop, and is then remembered as unknown until the configuration changes.
"""

from __future__ import annotations

import hmac

from proxy.errors import Unauthenticated
from proxy.exchange import Principal
from proxy.plane import DataPlane
from proxy.tokens import looks_like_token, verify_token
from tenants.keys import looks_like_generated, parse

#: One body for missing, malformed, unknown, revoked and expired keys.
INVALID_KEY_MESSAGE = "Invalid API key."

MIN_KEY_LENGTH, MAX_KEY_LENGTH = 24, 512
_KEY_HEADERS = (b"x-api-key", b"api-key")


def invalid_key() -> Unauthenticated:
    return Unauthenticated(INVALID_KEY_MESSAGE)


def credential_of(headers: dict[bytes, bytes]) -> str | None:
    """The one credential of the request; None when there is none or two differ."""
    found = []
    authorization = headers.get(b"authorization")
    if authorization is not None:
        scheme, _, value = authorization.partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        found.append(value)
    for name in _KEY_HEADERS:
        value = headers.get(name, b"")
        if value:
            found.append(value)
    if not found or any(value != found[0] for value in found):
        return None
    try:
        return found[0].decode("ascii")
    except UnicodeDecodeError:
        return None


async def authenticate(plane: DataPlane, credential: str | None) -> Principal:
    """The principal of `credential`. Raises Unauthenticated (401), Unavailable when it cannot be checked now."""
    if credential is None:
        raise invalid_key()
    if looks_like_token(credential):
        return verify_token(plane, credential)
    if not _well_formed(credential):
        raise invalid_key()
    digest = hmac.digest(plane.config.pepper, credential.encode(), "sha256")
    key = plane.keys.get(digest)
    if key is None and not plane.keys.is_unknown(digest):
        key = await plane.lookup_key(digest)
        if key is None:
            plane.keys.remember_unknown(digest)
        else:
            plane.keys.add(key)
    if key is None or not key.accepts(digest, plane.store.now_ms()):
        raise invalid_key()
    tenant = plane.snapshot.tenants.get(key.tenant_id)
    if tenant is None:
        raise invalid_key()
    return Principal(tenant=tenant, key=key, scopes=key.scopes, models=key.models)


def _well_formed(credential: str) -> bool:
    if not MIN_KEY_LENGTH <= len(credential) <= MAX_KEY_LENGTH or not credential.isprintable() or " " in credential:
        return False
    return not looks_like_generated(credential) or parse(credential) is not None
