"""`apply_config --prune`: what the file does not name is taken away, as far as history allows.

What a ledger entry, an audit event or a delivery refers to is never deleted: keys are revoked, tenants suspended,
receivers disabled, prices kept; a note says so.
"""

from __future__ import annotations

from django.utils import timezone

from audit import events
from audit.models import AuditEvent
from billing.models import LedgerEntry, Price, UsageRollup
from gatewaysite.config_changes import Change, ChangeLog, missing, remove_rows, shown
from gatewaysite.config_keys import KeySection, key_subject
from gatewaysite.config_routing import price_identity
from gatewaysite.config_schema import ConfigFile
from proxy.models import ModelAlias, Provider
from tenants.models import ApiKey, Tenant, TenantState, Tier
from webhooks.models import Endpoint, Message


def prune_keys(log: ChangeLog, keys: KeySection) -> list[ApiKey]:
    """Revoke keys that the file does not name. Gives the keys revoked."""
    named = {(slug, str(entry.name)) for _, slug, entry in keys.entries.values()}
    live = ApiKey.objects.filter(revoked_at=None).select_related("tenant")
    gone = [row for row in live if (row.tenant.slug, row.name) not in named]
    now = timezone.now()
    for row in gone:
        log.add(
            Change(
                action="update",
                subject=key_subject(row.tenant.slug, row.name),
                tenant=row.tenant.slug,
                before={"revoked_at": None},
                after=shown({"revoked_at": now}),
            )
        )
        log.notes.append(f"{key_subject(row.tenant.slug, row.name)}: revoked, not deleted")
        row.revoked_at = now
    ApiKey.objects.filter(pk__in=[row.pk for row in gone]).update(revoked_at=now)
    keys.touched |= {row.pk for row in gone}
    return gone


def prune_webhooks(log: ChangeLog, config: ConfigFile) -> None:
    named = {(tenant.slug, str(webhook.url)) for tenant in config.tenants for webhook in tenant.webhooks}
    rows = Endpoint.objects.select_related("tenant")
    gone = [row for row in rows if (row.tenant.slug, row.url) not in named]
    used = set(Message.objects.filter(endpoint__in=gone).values_list("endpoint_id", flat=True).distinct())
    for row in gone:
        if row.pk in used and row.enabled:
            subject = _endpoint_subject(row)
            log.add(
                Change(
                    action="update",
                    subject=subject,
                    tenant=row.tenant.slug,
                    before={"enabled": True},
                    after={"enabled": False},
                )
            )
            log.notes.append(f"{subject}: disabled, not deleted (it has deliveries)")
            row.enabled, row.disabled_reason = False, "not in the configuration file"
            row.save(update_fields=["enabled", "disabled_reason"])
    remove_rows(log, [(row, _endpoint_subject(row), row.tenant.slug) for row in gone if row.pk not in used])


def prune_tenants(log: ChangeLog, config: ConfigFile) -> None:
    """Delete tenants without history, suspend the others."""
    named = {entry.slug for entry in config.tenants}
    gone = [row for row in Tenant.objects.all() if row.slug not in named]
    ids, slugs = [row.pk for row in gone], [row.slug for row in gone]
    with_history = set(LedgerEntry.objects.filter(tenant__in=ids).values_list("tenant_id", flat=True).distinct())
    with_history |= set(UsageRollup.objects.filter(tenant__in=ids).values_list("tenant_id", flat=True).distinct())
    requests = AuditEvent.objects.filter(tenant__in=slugs, kind=events.REQUEST)
    audited = set(requests.values_list("tenant", flat=True).distinct())
    unused = []
    for row in gone:
        if row.pk not in with_history and row.slug not in audited:
            unused.append(row)
        elif row.state != TenantState.SUSPENDED:
            log.add(
                Change(
                    action="update",
                    subject=f"tenants/{row.slug}",
                    tenant=row.slug,
                    before={"state": str(row.state)},
                    after={"state": str(TenantState.SUSPENDED)},
                )
            )
            log.notes.append(f"tenants/{row.slug}: suspended, not deleted (it has a history)")
            row.state = TenantState.SUSPENDED
            row.save(update_fields=["state"])
    ApiKey.objects.filter(tenant__in=unused).delete()
    remove_rows(log, [(row, f"tenants/{row.slug}", row.slug) for row in unused])


def prune_tiers(log: ChangeLog, config: ConfigFile) -> None:
    gone = missing({row.name: row for row in Tier.objects.all()}, {entry.name for entry in config.tiers})
    used = set(Tenant.objects.exclude(tier=None).values_list("tier_id", flat=True).distinct())
    for name, row in gone:
        if row.pk in used:
            log.notes.append(f"tiers/{name}: kept (a tenant has it)")
    remove_rows(log, [(row, f"tiers/{name}", "") for name, row in gone if row.pk not in used])


def prune_routing(log: ChangeLog, config: ConfigFile) -> None:
    """Models, prices that no ledger entry names, and providers, in this order."""
    aliases = missing({row.name: row for row in ModelAlias.objects.all()}, {entry.name for entry in config.models})
    remove_rows(log, [(row, f"models/{name}", "") for name, row in aliases])
    prices = missing(
        {(row.provider, row.model, row.effective_from): row for row in Price.objects.all()},
        {price_identity(entry) for entry in config.prices},
    )
    ids = [row.pk for _, row in prices]
    charged = set(LedgerEntry.objects.filter(price_id__in=ids).values_list("price_id", flat=True).distinct())
    for _, row in prices:
        if row.pk in charged:
            log.notes.append(f"prices/{row.provider}/{row.model}@{row.effective_from}: kept (it was charged)")
    remove_rows(
        log,
        [
            (row, f"prices/{row.provider}/{row.model}@{row.effective_from}", "")
            for _, row in prices
            if row.pk not in charged
        ],
    )
    providers = missing({row.name: row for row in Provider.objects.all()}, {entry.name for entry in config.providers})
    remove_rows(log, [(row, f"providers/{name}", "") for name, row in providers])


def _endpoint_subject(row: Endpoint) -> str:
    return f"tenants/{row.tenant.slug}/webhooks/{row.url.partition('?')[0]}"
