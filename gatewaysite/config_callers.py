"""Applies the sections of the configuration file that say who may call: tiers, tenants, tokens, receivers."""

from __future__ import annotations

from typing import Any

from gatewaysite.config_changes import ChangeLog, Wanted, remove_rows, sync_rows
from gatewaysite.config_file import ConfigFileError
from gatewaysite.config_schema import ConfigFile, JwtEntry, Limits, TenantEntry
from gatewaysite.config_values import Secret
from tenants.models import JwtIssuer, Tenant, Tier
from tenants.shards import shard_of
from tenants.webhook_secrets import new_webhook_secret
from webhooks.models import Endpoint


def limit_values(limits: Limits) -> dict[str, Any]:
    return {
        "rpm": limits.rpm,
        "tpm": limits.tpm,
        "concurrency": limits.concurrency,
        "user_rpm": limits.user_rpm,
        "user_tpm": limits.user_tpm,
        "algorithm": str(limits.algorithm),
    }


def apply_tiers(log: ChangeLog, config: ConfigFile) -> dict[str, Tier]:
    """Tiers by name, those of the file included."""
    existing = {row.name: row for row in Tier.objects.all()}
    wanted = {
        entry.name: Wanted(
            subject=f"tiers/{entry.name}", values={"name": str(entry.name), **limit_values(entry.limits)}
        )
        for entry in config.tiers
    }
    created, _ = sync_rows(log, Tier, existing, wanted)
    if created:
        return {row.name: row for row in Tier.objects.all()}
    return existing


def apply_tenants(log: ChangeLog, config: ConfigFile, tiers: dict[str, Tier]) -> dict[str, Tenant]:
    """The file's tenants by slug."""
    faults = [
        f"tenants[{number}].tier: there is no tier {entry.tier}"
        for number, entry in enumerate(config.tenants)
        if entry.tier is not None and entry.tier not in tiers
    ]
    if faults:
        raise ConfigFileError(faults)
    slugs = [entry.slug for entry in config.tenants]
    existing = {row.slug: row for row in Tenant.objects.filter(slug__in=slugs)}
    wanted = {entry.slug: _wanted_tenant(entry, tiers) for entry in config.tenants}
    created, _ = sync_rows(log, Tenant, existing, wanted)
    if created:
        return {row.slug: row for row in Tenant.objects.filter(slug__in=slugs)}
    return existing


def apply_issuers(log: ChangeLog, config: ConfigFile, tenants: dict[str, Tenant]) -> None:
    """A tenant has the token issuer of its entry, or none."""
    ids = [tenant.pk for tenant in tenants.values()]
    slugs = {tenant.pk: tenant.slug for tenant in tenants.values()}
    existing = {row.tenant_id: row for row in JwtIssuer.objects.filter(tenant_id__in=ids)}
    _check_issuers(config, tenants, existing)
    wanted = {
        tenants[entry.slug].pk: Wanted(
            subject=f"tenants/{entry.slug}/jwt",
            tenant=entry.slug,
            values={"tenant_id": tenants[entry.slug].pk, **_issuer_values(entry.jwt)},
        )
        for entry in config.tenants
        if entry.jwt is not None
    }
    gone = [
        (row, f"tenants/{slugs[tenant_id]}/jwt", slugs[tenant_id])
        for tenant_id, row in existing.items()
        if tenant_id not in wanted
    ]
    remove_rows(log, gone)
    sync_rows(log, JwtIssuer, existing, wanted)


def apply_webhooks(log: ChangeLog, config: ConfigFile, tenants: dict[str, Tenant]) -> None:
    ids = [tenants[entry.slug].pk for entry in config.tenants if entry.webhooks]
    existing = {(row.tenant_id, row.url): row for row in Endpoint.objects.filter(tenant_id__in=ids)}
    wanted = {}
    for entry in config.tenants:
        for webhook in entry.webhooks:
            tenant = tenants[entry.slug]
            values: dict[str, Any] = {
                "tenant_id": tenant.pk,
                "url": str(webhook.url),
                "events": list(webhook.events),
            }
            only_new = {}
            if isinstance(webhook.secret, Secret):
                values["secret"] = webhook.secret.text
            else:
                only_new["secret"] = new_webhook_secret()
            wanted[tenant.pk, str(webhook.url)] = Wanted(
                subject=f"tenants/{entry.slug}/webhooks/{_without_query(webhook.url)}",
                tenant=entry.slug,
                values=values,
                only_new=only_new,
            )
    sync_rows(log, Endpoint, existing, wanted)


def _wanted_tenant(entry: TenantEntry, tiers: dict[str, Tier]) -> Wanted:
    values = {
        "slug": str(entry.slug),
        "name": str(entry.name or entry.slug),
        "tier_id": tiers[entry.tier].pk if entry.tier else None,
        "priority": str(entry.priority),
        "allowed_models": list(entry.models),
        "unpriced": str(entry.unpriced),
        **limit_values(entry.limits),
    }
    only_new: dict[str, Any] = {"shard": shard_of(entry.slug)}
    if isinstance(entry.webhook_secret, Secret):
        values["webhook_secret"] = entry.webhook_secret.text
    else:
        only_new["webhook_secret"] = new_webhook_secret()
    return Wanted(subject=f"tenants/{entry.slug}", tenant=entry.slug, values=values, only_new=only_new)


def _issuer_values(entry: JwtEntry) -> dict[str, Any]:
    values = {
        "issuer": entry.issuer,
        "audience": entry.audience,
        "jwks_url": str(entry.jwks_url or ""),
        "algorithms": [str(name) for name in entry.algorithms],
    }
    if isinstance(entry.secret, Secret):
        values["secret"] = entry.secret.text
    elif entry.secret is None or entry.jwks_url is not None:
        values["secret"] = ""
    return values


def _check_issuers(config: ConfigFile, tenants: dict[str, Tenant], existing: dict[int, JwtIssuer]) -> None:
    """An issuer decides the tenant, so no two tenants share one; and a check needs something to check with."""
    entries = [(number, entry) for number, entry in enumerate(config.tenants) if entry.jwt is not None]
    names = [entry.jwt.issuer for _, entry in entries if entry.jwt is not None]
    owners = dict(JwtIssuer.objects.filter(issuer__in=names).values_list("issuer", "tenant_id"))
    faults = []
    for number, entry in entries:
        if entry.jwt is None:
            continue
        tenant_id = tenants[entry.slug].pk
        if owners.get(entry.jwt.issuer, tenant_id) != tenant_id:
            faults.append(f"tenants[{number}].jwt.issuer: is also that of another tenant")
        kept = existing.get(tenant_id)
        if entry.jwt.jwks_url is None and not isinstance(entry.jwt.secret, Secret) and not (kept and kept.secret):
            faults.append(f"tenants[{number}].jwt: needs a secret or a jwks_url")
    if faults:
        raise ConfigFileError(faults)


def _without_query(url: str) -> str:
    """A receiver's URL may carry a token in its query."""
    return url.partition("?")[0]
