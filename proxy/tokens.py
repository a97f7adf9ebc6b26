"""JSON Web Tokens as credentials (RFC 7519): a tenant's issuer, a pinned algorithm, audience and expiry required.

Claims read: `iss`, `aud`, `exp`, `nbf`, `sub` (the user), and optionally `tenant_id`, `allowed_models`, `scope`.
Tokens signed with a shared secret are checked here; key sets (JWKS) are fetched by nobody yet and refused.
"""

from __future__ import annotations

from typing import Any

import jwt

from proxy.errors import Unauthenticated
from proxy.exchange import Principal
from proxy.plane import DataPlane
from proxy.snapshot import TenantSpec

MAX_TOKEN_LENGTH = 8192


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
    if claims.get("tenant_id") not in (None, tenant.slug):
        raise _invalid()
    allowed = claims.get("allowed_models")
    models = tuple(str(name) for name in allowed) if isinstance(allowed, list) else ("*",)
    scopes = frozenset(str(claims.get("scope", "inference")).split())
    subject = claims.get("sub")
    return Principal(tenant=tenant, key=None, user=str(subject) if subject else None, scopes=scopes, models=models)


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
