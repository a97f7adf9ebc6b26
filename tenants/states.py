"""What an audit event shows of a tenant or a key before and after a change: every setting, never a secret."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tenants.limit_fields import RateLimits
from tenants.models import ApiKey, Tenant

LIMIT_FIELDS = ("rpm", "tpm", "concurrency", "user_rpm", "user_tpm", "algorithm")


def limits_state(owner: RateLimits) -> dict[str, Any]:
    return {name: getattr(owner, name) for name in LIMIT_FIELDS}


def tenant_state(tenant: Tenant) -> dict[str, Any]:
    return {
        "slug": tenant.slug,
        "name": tenant.name,
        "state": str(tenant.state),
        "tier": tenant.tier.name if tenant.tier else None,
        "priority": str(tenant.priority),
        "models": tenant.allowed_models,
        "unpriced": str(tenant.unpriced),
        "limits": limits_state(tenant),
    }


def key_state(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "tenant": key.tenant.slug,
        "scopes": key.scopes,
        "models": key.allowed_models,
        "cidrs": key.cidrs,
        "may_speak_for_users": key.may_speak_for_users,
        "expires_at": _moment(key.expires_at),
        "revoked_at": _moment(key.revoked_at),
        "limits": limits_state(key),
    }


def _moment(value: datetime | None) -> str | None:
    return value.isoformat() if value else None
