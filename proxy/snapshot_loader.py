"""Builds the data plane's snapshot from the database: a handful of queries, then plain data.

The version is read first: a change that commits while the rows are read is seen half at worst, and the next poll finds
a newer version and reads again. What the data plane cannot use (a provider of a kind without an adapter) is left out
with a line in the log, never half present.
"""

from __future__ import annotations

import ipaddress
import logging
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from django.db.models import Prefetch, Q
from django.utils import timezone

from billing.models import Budget, Price, Quota
from billing.money import usd_to_nano
from proxy.context import ProviderTarget
from proxy.models import ModelAlias, Provider, Target
from proxy.providers.base import adapters
from proxy.snapshot import (
    BudgetSpec,
    JwtSpec,
    KeySpec,
    LimitSpec,
    ModelSpec,
    Network,
    PriceSpec,
    ProviderSpec,
    QuotaSpec,
    Snapshot,
    TargetSpec,
    TenantSpec,
)
from tenants.config_version import current_config_version
from tenants.limit_fields import RateLimits
from tenants.models import ApiKey, ApiKeySecret, JwtIssuer, Tenant, TenantState, Tier, Unpriced

logger = logging.getLogger(__name__)

ATTO_PER_USD = 10**18
LIMIT_NAMES = ("rpm", "tpm", "concurrency", "user_rpm", "user_tpm")
NOWHERE = ipaddress.ip_network("::/128")  # the unspecified address: nobody calls from there
Prices = dict[tuple[str, str], tuple[PriceSpec, ...]]


def load_snapshot() -> Snapshot:
    """Everything but the keys, as the database has it now."""
    version = current_config_version()
    providers = _providers()
    tenants = _tenants()
    return Snapshot(
        version=version,
        models=_models(providers, _prices()),
        tenants=tenants,
        tenants_by_issuer={tenant.jwt.issuer: tenant.id for tenant in tenants.values() if tenant.jwt},
        providers={provider.name: provider for provider in providers.values()},
    )


def load_keys(changed_since: int | None, limit: int) -> list[KeySpec]:
    """Keys changed after the version `changed_since`, revoked ones included (so that a cache drops them).

    None: the live keys, most recently used first, at most `limit`. A change of more keys than `limit` is given whole.
    """
    if changed_since is not None:
        return _key_specs(ApiKey.objects.filter(changed_in__gt=changed_since))
    now = timezone.now()
    live = ApiKey.objects.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)
    newest = live.order_by("-last_used_at", "-created_at").values_list("id", flat=True)[:limit]
    if len(newest) < limit:
        return _key_specs(live)
    return _key_specs(ApiKey.objects.filter(id__in=list(newest)))


def load_key_by_digest(digest: str) -> KeySpec | None:
    """The key that a secret belongs to, by the secret's digest (hex)."""
    found = _key_specs(ApiKey.objects.filter(secrets__digest=digest))
    return found[0] if found else None


def load_key_by_id(key_id: str) -> KeySpec | None:
    found = _key_specs(ApiKey.objects.filter(id=key_id))
    return found[0] if found else None


# --------------------------------------------------------------------------------------------------- where calls go


def _providers() -> dict[int, ProviderSpec]:
    known, found = adapters(), {}
    for row in Provider.objects.filter(enabled=True):
        adapter = known.get(row.kind)
        base_url = row.base_url.rstrip("/") or (adapter.default_base_url if adapter else None)
        if adapter is None or not base_url:
            missing = "adapter" if adapter is None else "base_url"
            logger.warning("provider left out", extra={"code": f"no_{missing}", "path": row.name})
            continue
        found[row.pk] = _provider(row, base_url)
    return found


def _provider(row: Provider, base_url: str) -> ProviderSpec:
    return ProviderSpec(
        id=row.pk,
        name=row.name,
        kind=row.kind,
        base_url=base_url,
        secret=row.api_key,
        region=row.region or None,
        api_version=row.api_version or None,
        headers=dict(row.headers),
        connect=row.timeout_connect,
        first_byte=row.timeout_first_byte,
        idle=row.timeout_idle,
        total=row.timeout_total,
        max_attempts=row.max_attempts,
        backoff=row.backoff,
        max_backoff=row.max_backoff,
        breaker_failures=row.breaker_failures,
        breaker_window=row.breaker_window,
        breaker_open_for=row.breaker_open_for,
        breaker_close_after=row.breaker_close_after,
        limits=LimitSpec(rpm=row.rpm, tpm=row.tpm, concurrency=row.concurrency),
    )


def _models(providers: dict[int, ProviderSpec], prices: Prices) -> dict[str, ModelSpec]:
    targets = Target.objects.order_by("position", "id")
    found = {}
    for alias in ModelAlias.objects.prefetch_related(Prefetch("targets", queryset=targets)):
        usable = tuple(
            _target(target, providers[target.provider_id], prices)
            for target in alias.targets.all()
            if target.provider_id in providers
        )
        found[alias.name] = ModelSpec(
            name=alias.name,
            strategy=alias.strategy,
            targets=usable,
            max_output_tokens=alias.max_output_tokens,
            cache_exact_ttl=alias.cache_exact_ttl,
        )
    return found


def _target(row: Target, provider: ProviderSpec, prices: Prices) -> TargetSpec:
    return TargetSpec(
        provider=provider,
        model=row.model,
        weight=row.weight,
        prices=prices.get((provider.name, row.model), ()),
        adapter_target=ProviderTarget(
            provider=provider.name,
            kind=provider.kind,
            model=row.model,
            base_url=provider.base_url,
            secret=provider.secret,
            region=provider.region,
            api_version=provider.api_version,
            headers=provider.headers,
        ),
    )


def _prices() -> Prices:
    """Prices by provider and model, newest first."""
    found = defaultdict(list)
    for row in Price.objects.order_by("-effective_from", "-id"):
        found[row.provider, row.model].append(_price(row))
    return {name: tuple(rows) for name, rows in found.items()}


def _price(row: Price) -> PriceSpec:
    cache_read = row.input if row.cache_read is None else row.cache_read
    cache_write = row.input if row.cache_write is None else row.cache_write
    cache_write_1h = cache_write if row.cache_write_1h is None else row.cache_write_1h
    return PriceSpec(
        id=row.pk,
        input=_atto_per_token(row.input, row.per),
        output=_atto_per_token(row.output, row.per),
        cache_read=_atto_per_token(cache_read, row.per),
        cache_write=_atto_per_token(cache_write, row.per),
        cache_write_1h=_atto_per_token(cache_write_1h, row.per),
        effective_from_ms=_midnight_ms(row.effective_from),
        label=f"{row.provider}/{row.model}@{row.effective_from.isoformat()}",
    )


def _atto_per_token(usd: Decimal, per: int) -> int:
    """Exact for every `per` that divides; otherwise the next atto-USD up."""
    numerator, denominator = usd.as_integer_ratio()
    return -(-numerator * ATTO_PER_USD // (denominator * per))


def _midnight_ms(day: date) -> int:
    return int(datetime.combine(day, time(), UTC).timestamp()) * 1000


# -------------------------------------------------------------------------------------------------------- who calls


def _tenants() -> dict[int, TenantSpec]:
    quotas_by_tenant: dict[int | None, list[QuotaSpec]] = defaultdict(list)
    quotas_by_tier: dict[int | None, list[QuotaSpec]] = defaultdict(list)
    for quota in Quota.objects.filter(key=None):
        owner = quotas_by_tenant[quota.tenant_id] if quota.tier_id is None else quotas_by_tier[quota.tier_id]
        owner.append(_quota(quota))
    budgets = defaultdict(list)
    for budget in Budget.objects.filter(key=None):
        budgets[budget.tenant_id].append(_budget(budget))
    tiers = {tier.pk: tier for tier in Tier.objects.all()}
    issuers = {issuer.tenant_id: _jwt(issuer) for issuer in JwtIssuer.objects.all()}
    found = {}
    for row in Tenant.objects.defer("webhook_secret"):
        found[row.pk] = TenantSpec(
            id=row.pk,
            slug=row.slug,
            shard=row.shard,
            active=row.state == TenantState.ACTIVE,
            priority=row.priority,
            models=tuple(row.allowed_models),
            unpriced_allowed=row.unpriced == Unpriced.ALLOW,
            limits=_limits(row, tiers.get(row.tier_id) if row.tier_id else None),
            quotas=_own_or_default(quotas_by_tenant[row.pk], quotas_by_tier[row.tier_id]),
            budgets=tuple(budgets[row.pk]),
            jwt=issuers.get(row.pk),
        )
    return found


def _limits(own: RateLimits, default: RateLimits | None = None) -> LimitSpec:
    """Each limit of `own`, or of `default` where `own` names none. The algorithm goes with the tenant's own limits."""
    values = {name: getattr(own, name) for name in LIMIT_NAMES}
    if default is None:
        return LimitSpec(**values, algorithm=own.algorithm)
    algorithm = own.algorithm if any(value is not None for value in values.values()) else default.algorithm
    merged = {name: getattr(default, name) if value is None else value for name, value in values.items()}
    return LimitSpec(**merged, algorithm=algorithm)


def _own_or_default(own: list[QuotaSpec], default: list[QuotaSpec]) -> tuple[QuotaSpec, ...]:
    """The tenant's quotas, and the tier's for periods that the tenant names none for."""
    named = {(quota.per, quota.timezone) for quota in own}
    return (*own, *(quota for quota in default if (quota.per, quota.timezone) not in named))


def _quota(row: Quota) -> QuotaSpec:
    return QuotaSpec(id=row.pk, tokens=row.tokens, per=row.per, timezone=row.timezone)


def _budget(row: Budget) -> BudgetSpec:
    return BudgetSpec(
        id=row.pk,
        nano=usd_to_nano(row.usd),
        per=row.per,
        scope=row.scope,
        timezone=row.timezone,
        warn_at=tuple(sorted(row.warn_at)),
    )


def _jwt(row: JwtIssuer) -> JwtSpec:
    algorithms = tuple(row.algorithms) or (("HS256",) if row.secret else ("RS256",))
    return JwtSpec(
        issuer=row.issuer, audience=row.audience, secret=row.secret, jwks_url=row.jwks_url, algorithms=algorithms
    )


def _key_specs(keys: Any) -> list[KeySpec]:
    now = timezone.now()
    live = ApiKeySecret.objects.filter(Q(expires_at=None) | Q(expires_at__gt=now)).order_by("-created_at", "-id")
    rows = keys.prefetch_related(Prefetch("secrets", queryset=live), Prefetch("quotas"), Prefetch("budgets"))
    return [_key(row) for row in rows]


def _key(row: ApiKey) -> KeySpec:
    return KeySpec(
        id=row.pk,
        name=row.name,
        tenant_id=row.tenant_id,
        digests=tuple((bytes.fromhex(secret.digest), _moment_ms(secret.expires_at)) for secret in row.secrets.all()),
        scopes=frozenset(row.scopes),
        models=tuple(row.allowed_models),
        cidrs=_networks(row.cidrs),
        may_speak_for_users=row.may_speak_for_users,
        expires_at_ms=_moment_ms(row.expires_at),
        revoked=row.revoked_at is not None,
        limits=_limits(row),
        quotas=tuple(_quota(quota) for quota in row.quotas.all()),
        budgets=tuple(_budget(budget) for budget in row.budgets.all()),
    )


def _networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """A network that cannot be read allows nothing: leaving it out might leave none, and that allows everything."""
    found = []
    for text in texts:
        try:
            found.append(ipaddress.ip_network(text))
        except ValueError:
            logger.warning("network of a key cannot be read", extra={"code": "bad_network"})
            found.append(NOWHERE)
    return tuple(found)


def _moment_ms(moment: datetime | None) -> int | None:
    return int(moment.timestamp() * 1000) if moment else None
