"""Reads of tenants and keys."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Prefetch, QuerySet
from django.utils import timezone

from tenants.models import ApiKey, ApiKeySecret, Tenant


def tenant_by_slug(slug: str) -> Tenant | None:
    return Tenant.objects.filter(slug=slug).first()


def live_keys(*, tenant: Tenant | None = None) -> QuerySet[ApiKey]:
    """Keys that are neither revoked nor expired."""
    found = ApiKey.objects.filter(revoked_at=None).exclude(expires_at__lte=timezone.now())
    return found.filter(tenant=tenant) if tenant else found


def keys_for_listing(*, tenant: Tenant | None = None) -> QuerySet[ApiKey]:
    """All keys with their tenant and secrets (digests, newest first), in two queries."""
    secrets = ApiKeySecret.objects.order_by("-created_at", "-id")
    found = ApiKey.objects.select_related("tenant").prefetch_related(Prefetch("secrets", queryset=secrets))
    found = found.order_by("tenant__slug", "name")
    return found.filter(tenant=tenant) if tenant else found


def keys_with_secrets_before(moment: datetime, *, tenant: Tenant | None = None) -> QuerySet[ApiKey]:
    """Live keys whose current secret was made before `moment`."""
    old = ApiKeySecret.objects.filter(expires_at=None, created_at__lt=moment)
    return live_keys(tenant=tenant).filter(id__in=old.values("key_id"))
