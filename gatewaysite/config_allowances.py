"""Applies quotas and budgets of the configuration file: an owner has exactly those of its entry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.db.models import Q

from billing.models import Budget, Quota
from gatewaysite.config_changes import ChangeLog, Wanted, remove_rows, sync_rows
from gatewaysite.config_file import budget_identity, quota_identity
from gatewaysite.config_keys import KeySection, key_subject
from gatewaysite.config_schema import BudgetEntry, ConfigFile, QuotaEntry
from tenants.models import Tenant, Tier


class Owner(NamedTuple):
    """Who a quota or budget belongs to: ids as columns (tier_id, tenant_id, key_id), and how people see it."""

    tier_id: int | None
    tenant_id: int | None
    key_id: str | None
    subject: str
    tenant: str


class AllowanceSection:
    """Quotas and budgets of the file's tiers, tenants and keys."""

    def __init__(
        self,
        log: ChangeLog,
        config: ConfigFile,
        *,
        tiers: dict[str, Tier],
        tenants: dict[str, Tenant],
        keys: KeySection,
    ) -> None:
        self.log, self.config, self.tiers, self.tenants, self.keys = log, config, tiers, tenants, keys
        self.key_ids = {row.pk for row in keys.rows.values()}
        self.subjects = {owner[:3]: owner for owner, _ in self._quotas()} | {
            owner[:3]: owner for owner, _ in self._budgets()
        }

    def apply(self) -> None:
        self._apply_quotas()
        self._apply_budgets()

    def _apply_quotas(self) -> None:
        tier_ids = [self.tiers[entry.name].pk for entry in self.config.tiers]
        tenant_ids = [tenant.pk for tenant in self.tenants.values()]
        rows = Quota.objects.filter(Q(tier_id__in=tier_ids) | Q(tenant_id__in=tenant_ids) | Q(key_id__in=self.key_ids))
        existing = {(row.tier_id, row.tenant_id, row.key_id, row.per, row.timezone): row for row in rows}
        wanted = {}
        for owner, entries in self._quotas():
            for entry in entries:
                wanted[(*owner[:3], *quota_identity(entry))] = _wanted_quota(owner, entry)
        self._sync(Quota, existing, wanted, "quotas")

    def _apply_budgets(self) -> None:
        tenant_ids = [tenant.pk for tenant in self.tenants.values()]
        rows = Budget.objects.filter(Q(tenant_id__in=tenant_ids, key=None) | Q(key_id__in=self.key_ids))
        existing = {(None, row.tenant_id, row.key_id, row.scope, row.per, row.timezone): row for row in rows}
        wanted = {}
        for owner, entries in self._budgets():
            for entry in entries:
                identity = budget_identity(entry, "key" if owner.key_id else "tenant")
                wanted[(*owner[:3], *identity)] = _wanted_budget(owner, entry, identity)
        self._sync(Budget, existing, wanted, "budgets")

    def _sync(self, model: Any, existing: dict[Any, Any], wanted: dict[Any, Wanted], section: str) -> None:
        gone = []
        for identity, row in existing.items():
            if identity not in wanted:
                owner = self.subjects[identity[:3]]
                gone.append((row, f"{owner.subject}/{section}/{'/'.join(identity[3:])}", owner.tenant))
        removed = remove_rows(self.log, gone)
        created, updated = sync_rows(self.log, model, existing, wanted)
        self.keys.touched |= {row.key_id for row in (*removed, *created, *updated) if row.key_id}

    def _quotas(self) -> Iterator[tuple[Owner, tuple[QuotaEntry, ...]]]:
        for tier in self.config.tiers:
            yield Owner(self.tiers[tier.name].pk, None, None, f"tiers/{tier.name}", ""), tier.quotas
        for tenant in self.config.tenants:
            yield (
                Owner(None, self.tenants[tenant.slug].pk, None, f"tenants/{tenant.slug}", tenant.slug),
                tenant.quotas,
            )
        for identity, row in self.keys.rows.items():
            _, slug, entry = self.keys.entries[identity]
            yield Owner(None, None, row.pk, key_subject(slug, entry.name), slug), entry.quotas

    def _budgets(self) -> Iterator[tuple[Owner, tuple[BudgetEntry, ...]]]:
        for tenant in self.config.tenants:
            yield (
                Owner(None, self.tenants[tenant.slug].pk, None, f"tenants/{tenant.slug}", tenant.slug),
                tenant.budgets,
            )
        for identity, row in self.keys.rows.items():
            _, slug, entry = self.keys.entries[identity]
            yield Owner(None, row.tenant_id, row.pk, key_subject(slug, entry.name), slug), entry.budgets


def _wanted_quota(owner: Owner, entry: QuotaEntry) -> Wanted:
    return Wanted(
        subject=f"{owner.subject}/quotas/{entry.per}/{entry.timezone}",
        tenant=owner.tenant,
        values={
            "tier_id": owner.tier_id,
            "tenant_id": owner.tenant_id,
            "key_id": owner.key_id,
            "tokens": entry.tokens,
            "per": str(entry.per),
            "timezone": str(entry.timezone),
        },
    )


def _wanted_budget(owner: Owner, entry: BudgetEntry, identity: tuple[str, str, str]) -> Wanted:
    scope, per, timezone = identity
    return Wanted(
        subject=f"{owner.subject}/budgets/{scope}/{per}/{timezone}",
        tenant=owner.tenant,
        values={
            "tenant_id": owner.tenant_id,
            "key_id": owner.key_id,
            "scope": scope,
            "usd": entry.usd,
            "per": per,
            "timezone": str(timezone),
            "warn_at": sorted(set(entry.warn_at)),
        },
    )
