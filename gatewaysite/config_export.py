"""The configuration in force as the configuration file has it. No secret is read, let alone written.

Values that are the file's defaults are left out. Applied where it was made, the export changes nothing; elsewhere the
secrets have to be filled in (`api_key: env:…`, `secret: env:…`), and `apply_config` says where.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec
from django.db.models import Prefetch

from billing.models import Budget, Price, Quota
from gatewaysite.config_schema import (
    ALWAYS,
    Breaker,
    CacheEntry,
    Limits,
    ModelEntry,
    ProviderLimits,
    Retries,
    Timeout,
)
from proxy.models import ModelAlias, Provider, Target
from tenants.models import ApiKey, JwtIssuer, Tenant, Tier
from webhooks.models import Endpoint

HEADING = """\
# Tollbar's configuration (docs/configuration.md). Secrets are not exported: where one is left out it stays as it is.
# To set up another installation, add them: api_key: env:NAME to providers, secret: env:NAME to keys and receivers."""

Section = dict[str, Any]


def exported_config() -> Section:
    """Plain data in the order of the file's sections."""
    quotas, budgets = _quotas(), _budgets()
    config: Section = {
        "version": 1,
        "providers": [_provider(row) for row in Provider.objects.defer("api_key")],
        "models": [_model(row) for row in _aliases()],
        "prices": [_price(row) for row in Price.objects.all()],
        "tiers": [_tier(row, quotas) for row in Tier.objects.all()],
        "tenants": _tenants(quotas, budgets),
    }
    return {name: value for name, value in config.items() if value}


def _aliases() -> Any:
    targets = Target.objects.select_related("provider").defer("provider__api_key").order_by("position", "id")
    return ModelAlias.objects.prefetch_related(Prefetch("targets", queryset=targets))


def _different(values: Mapping[str, Any], defaults: msgspec.Struct) -> Section:
    """Values that are not the default of the entry's type."""
    return {name: value for name, value in values.items() if value != getattr(defaults, name)}


def _without_empty(values: Section) -> Section:
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def _provider(row: Provider) -> Section:
    timeout = {
        "connect": row.timeout_connect,
        "first_byte": row.timeout_first_byte,
        "idle": row.timeout_idle,
        "total": row.timeout_total,
    }
    breaker = {
        "failures": row.breaker_failures,
        "window": row.breaker_window,
        "open_for": row.breaker_open_for,
        "close_after": row.breaker_close_after,
    }
    retries = {"max_attempts": row.max_attempts, "backoff": row.backoff, "max_backoff": row.max_backoff}
    limits = {"rpm": row.rpm, "tpm": row.tpm, "concurrency": row.concurrency}
    return _without_empty(
        {
            "name": row.name,
            "kind": row.kind,
            "base_url": row.base_url,
            "region": row.region,
            "api_version": row.api_version,
            "headers": row.headers,
            "timeout": _different(timeout, Timeout()),
            "retries": _different(retries, Retries()),
            "breaker": _different(breaker, Breaker()),
            "limits": _different(limits, ProviderLimits()),
        }
    )


def _model(row: ModelAlias) -> Section:
    cache = {
        "exact_ttl": row.cache_exact_ttl,
        "semantic_ttl": row.cache_semantic_ttl,
        "semantic_threshold": row.cache_semantic_threshold,
    }
    found: Section = {
        "name": row.name,
        "strategy": row.strategy,
        "targets": [
            {"provider": target.provider.name, "model": target.model, "weight": target.weight}
            for target in row.targets.all()
        ],
        "cache": _different(cache, CacheEntry()),
    }
    default_cap = {field.name: field.default for field in msgspec.structs.fields(ModelEntry)}["max_output_tokens"]
    if row.max_output_tokens != default_cap:
        found["max_output_tokens"] = row.max_output_tokens
    return _without_empty(found)


def _price(row: Price) -> Section:
    found: Section = {"provider": row.provider, "model": row.model}
    for name in ("input", "output", "cache_read", "cache_write", "cache_write_1h"):
        amount = getattr(row, name)
        if amount is not None:
            found[name] = _usd(amount)
    found["per"] = row.per
    if row.effective_from != ALWAYS:
        found["effective_from"] = row.effective_from.isoformat()
    return found


def _usd(amount: Decimal) -> str:
    """At least two decimals, no useless zeros: "2.50", "0.000105"."""
    whole, _, rest = f"{amount:f}".partition(".")
    return f"{whole}.{rest.rstrip('0').ljust(2, '0')}"


def _limits(row: Any) -> Section:
    return _different({name: getattr(row, name) for name in Limits.__struct_fields__}, Limits())


def _tier(row: Tier, quotas: dict[Any, list[Section]]) -> Section:
    return _without_empty({"name": row.name, "limits": _limits(row), "quotas": quotas[row.pk, None, None]})


def _quotas() -> dict[Any, list[Section]]:
    """By (tier, tenant, key)."""
    found = defaultdict(list)
    for row in Quota.objects.all():
        entry: Section = {"tokens": row.tokens, "per": row.per}
        if row.timezone != "UTC":
            entry["timezone"] = row.timezone
        found[row.tier_id, row.tenant_id, row.key_id].append(entry)
    return found


def _budgets() -> dict[Any, list[Section]]:
    """By (tenant, key)."""
    found = defaultdict(list)
    for row in Budget.objects.all():
        entry: Section = {
            "usd": _usd(row.usd),
            "per": row.per,
            "scope": row.scope,
            "warn_at": row.warn_at,
            "timezone": row.timezone,
        }
        found[row.tenant_id, row.key_id].append(entry)
    return found


def _tenants(quotas: dict[Any, list[Section]], budgets: dict[Any, list[Section]]) -> list[Section]:
    keys, webhooks = defaultdict(list), defaultdict(list)
    for key in ApiKey.objects.filter(revoked_at=None):
        keys[key.tenant_id].append(_key(key, quotas, budgets))
    for endpoint in Endpoint.objects.defer("secret"):
        webhooks[endpoint.tenant_id].append({"url": endpoint.url, "events": endpoint.events})
    issuers = {row.tenant_id: row for row in JwtIssuer.objects.defer("secret")}
    found = []
    for row in Tenant.objects.select_related("tier").defer("webhook_secret"):
        tenant: Section = {
            "slug": row.slug,
            "name": row.name,
            "tier": row.tier.name if row.tier else None,
            "priority": row.priority,
            "models": row.allowed_models,
            "unpriced": row.unpriced,
            "limits": _limits(row),
            "quotas": quotas[None, row.pk, None],
            "budgets": budgets[row.pk, None],
            "jwt": _jwt(issuers[row.pk]) if row.pk in issuers else None,
            "keys": keys[row.pk],
            "webhooks": webhooks[row.pk],
        }
        # An empty list of models allows none: it is said, not left out.
        found.append(_without_empty(tenant) | {"models": row.allowed_models})
    return found


def _key(row: ApiKey, quotas: dict[Any, list[Section]], budgets: dict[Any, list[Section]]) -> Section:
    found: Section = {
        "name": row.name,
        "cidrs": row.cidrs,
        "expires_at": row.expires_at.isoformat() if row.expires_at else None,
        "limits": _limits(row),
        "quotas": quotas[None, None, row.pk],
        "budgets": budgets[row.tenant_id, row.pk],
    }
    found = _without_empty(found) | {"scopes": row.scopes, "models": row.allowed_models}
    if not row.may_speak_for_users:
        found["may_speak_for_users"] = False
    return found


def _jwt(row: JwtIssuer) -> Section:
    return _without_empty(
        {"issuer": row.issuer, "audience": row.audience, "jwks_url": row.jwks_url, "algorithms": row.algorithms}
    )
