"""Tokens of a tenant's issuer: what they may say, and that a restriction which cannot be applied opens nothing."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import jwt
import pytest

from proxy.errors import Unauthenticated
from proxy.plane import DataPlane
from proxy.snapshot import JwtSpec, LimitSpec, Snapshot, TenantSpec
from proxy.tokens import looks_like_token, verify_token

SECRET = "tests-only-jwt-secret-0123456789-abcdefghijklmnopqrstuvwxyz"
ISSUER = "https://id.example"
TENANT = TenantSpec(
    id=1,
    slug="acme",
    shard=0,
    active=True,
    priority="normal",
    models=("*",),
    unpriced_allowed=False,
    limits=LimitSpec(),
    jwt=JwtSpec(issuer=ISSUER, audience="tollbar", secret=SECRET, jwks_url="", algorithms=("HS256",)),
)
PLANE = cast(DataPlane, SimpleNamespace(snapshot=Snapshot(tenants={1: TENANT}, tenants_by_issuer={ISSUER: 1})))


def token(secret: str = SECRET, algorithm: str = "HS256", **changes: Any) -> str:
    claims = {"iss": ISSUER, "aud": "tollbar", "sub": "ada", "exp": int(time.time()) + 60, **changes}
    return jwt.encode({name: value for name, value in claims.items() if value is not None}, secret, algorithm)


def test_a_good_token_speaks_for_its_subject() -> None:
    principal = verify_token(PLANE, token(scope="inference audit:read", allowed_models=["gpt-*"]))
    assert (principal.tenant.slug, principal.user, principal.key) == ("acme", "ada", None)
    assert principal.scopes == {"inference", "audit:read"}
    assert principal.models == ("gpt-*",)


BAD: dict[str, dict[str, Any]] = {
    "expired": {"exp": 1},
    "without an end": {"exp": None},
    "for another audience": {"aud": "another"},
    "of another issuer": {"iss": "https://evil.example"},
    "signed with another secret": {"secret": "another-secret-another-secret-another-secret-another"},
    "signed with another algorithm": {"algorithm": "HS384"},
    "for another tenant": {"tenant_id": "other"},
    "whose models are no list": {"allowed_models": "gpt-4"},
    "whose models are no texts": {"allowed_models": [5]},
    "whose subject holds a NUL": {"sub": "a\x00b"},
    "whose subject is endless": {"sub": "a" * 3000},
    "whose subject holds a lone surrogate": {"sub": "\ud800"},
    "with a budget that nobody would hold": {"token_budget_daily": 10},
    "with a tier that nobody would apply": {"rate_limit_tier": "gold"},
}


@pytest.mark.parametrize("what", BAD)
def test_a_token_is_refused(what: str) -> None:
    with pytest.raises(Unauthenticated) as caught:
        verify_token(PLANE, token(**BAD[what]))
    assert (caught.value.code, caught.value.message) == ("invalid_token", "Invalid token.")


@pytest.mark.parametrize("credential", ["a.b.c", "..", "x" * 9000 + ".y.z"])
def test_what_only_looks_like_a_token_is_refused(credential: str) -> None:
    assert looks_like_token(credential)
    with pytest.raises(Unauthenticated):
        verify_token(PLANE, credential)
