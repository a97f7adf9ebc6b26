"""JSON Web Tokens as credentials (RFC 7519): a tenant's issuer, a pinned algorithm, audience and expiry required.

Claims read: `iss`, `aud`, `exp`, `nbf`, `sub` (the user), and optionally `tenant_id`, `allowed_models`, `scope`.
Tokens signed with a shared secret are checked here; key sets (JWKS) are fetched by nobody yet and refused.
"""

from __future__ import annotations

import re
from typing import Any

import jwt

from proxy.dialects.fields import MAX_USER
from proxy.errors import Unauthenticated
from proxy.exchange import Principal
from proxy.plane import DataPlane
from proxy.snapshot import TenantSpec

MAX_TOKEN_LENGTH = 8192
#: Restrictions that an issuer may set and the gateway does not apply yet: such a token is refused, not taken as free.
_UNSUPPORTED = frozenset(("rate_limit_tier", "token_budget_daily"))
_SURROGATE = re.compile("[\ud800-\udfff]")


def looks_like_token(credential: str) -> bool:
    """Three dot-separated parts."""
    return credential.count(".") == 2 and not credential.startswith("tb_")


def verify_token(plane: DataPlane, credential: str) -> Principal:
    """The principal a token speaks for. Raises Unauthenticated `invalid_token`, one body for every reason."""
    if len(credential) > MAX_TOKEN_LENGTH:
        raise _invalid()
    try:
        issuer = jwt.decode(credential, options={"verify_signature": False}).get("iss")
        tenant = _tenant_of(plane, issuer)
        claims = _verified(credential, tenant)
    except jwt.InvalidTokenError:
        raise _invalid() from None
    if claims.get("tenant_id") not in (None, tenant.slug) or not _UNSUPPORTED.isdisjoint(claims):
        raise _invalid()
    scopes = frozenset(_text(claims, "scope", "inference").split())
    user = _text(claims, "sub", "") or None
    return Principal(tenant=tenant, key=None, user=user, scopes=scopes, models=_allowed_models(claims))


def _text(claims: dict[str, Any], name: str, default: str) -> str:
    """A claim that is recorded: a text without NUL and lone surrogates, no longer than a request's `user`."""
    value = claims.get(name, default)
    if not isinstance(value, str) or len(value) > MAX_USER or "\x00" in value or _SURROGATE.search(value):
        raise _invalid()
    return value


def _allowed_models(claims: dict[str, Any]) -> tuple[str, ...]:
    """Globs of models; without the claim any. A restriction that is malformed opens nothing."""
    allowed = claims.get("allowed_models", ["*"])
    if not isinstance(allowed, list) or not all(isinstance(name, str) for name in allowed):
        raise _invalid()
    return tuple(allowed)


def _tenant_of(plane: DataPlane, issuer: object) -> TenantSpec:
    tenant = plane.snapshot.tenants.get(plane.snapshot.tenants_by_issuer.get(str(issuer), -1))
    if tenant is None or tenant.jwt is None or not tenant.jwt.secret:
        raise _invalid()
    return tenant


def _verified(credential: str, tenant: TenantSpec) -> dict[str, Any]:
    spec = tenant.jwt
    assert spec is not None
    claims: dict[str, Any] = jwt.decode(
        credential,
        spec.secret,
        algorithms=list(spec.algorithms or ("HS256",)),
        audience=spec.audience,
        issuer=spec.issuer,
        options={"require": ["exp", "iss", "aud"]},
    )
    return claims


def _invalid() -> Unauthenticated:
    return Unauthenticated("Invalid token.", code="invalid_token")
