"""Applies a configuration file to the database: whole or not at all, in one transaction, only what differs.

The row of the configuration's version is locked first, so two processes never apply at once, and a file that is in
force already costs a few reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from audit import events
from audit.recorder import record_change
from gatewaysite.config_allowances import AllowanceSection
from gatewaysite.config_callers import apply_issuers, apply_tenants, apply_tiers, apply_webhooks
from gatewaysite.config_changes import Change, ChangeLog
from gatewaysite.config_file import ReadFile
from gatewaysite.config_keys import KeySection
from gatewaysite.config_prune import prune_keys, prune_routing, prune_tenants, prune_tiers, prune_webhooks
from gatewaysite.config_routing import apply_models, apply_prices, apply_providers
from gatewaysite.config_schema import ConfigFile
from tenants.config_version import lock_config_version
from tenants.models import ApiKey, ConfigVersion
from tenants.services import announce_revocation
from tenants.states import key_state


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What applying a file did (or, dry, would do). `version` is None when nothing changed."""

    changes: list[Change] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    version: int | None = None
    skipped: bool = False  # another process had applied this very file


def apply_config(
    read: ReadFile, *, actor: str, prune: bool = False, dry_run: bool = False, unless_applied: bool = False
) -> Outcome:
    """Make the database as `read` says. Raises ConfigFileError, and then nothing has changed.

    `unless_applied` skips a file that was the last one applied (workers that all saw the same change).
    """
    with transaction.atomic():
        state = lock_config_version()
        if unless_applied and state.file_digest == read.digest:
            return Outcome(skipped=True)
        log = ChangeLog()
        revoked = _apply(log, read.config, actor=actor, prune=prune)
        if dry_run:
            transaction.set_rollback(True)
        elif state.file_digest != read.digest:
            ConfigVersion.objects.filter(id=1).update(file_digest=read.digest)
        announce_revocation(revoked)
    return Outcome(changes=log.changes, notes=log.notes, version=log.version)


def _apply(log: ChangeLog, config: ConfigFile, *, actor: str, prune: bool) -> list[ApiKey]:
    tiers = apply_tiers(log, config)
    providers = apply_providers(log, config)
    apply_models(log, config, providers)
    apply_prices(log, config, providers)
    tenants = apply_tenants(log, config, tiers)
    apply_issuers(log, config, tenants)
    keys = KeySection(log, config, tenants)
    keys.apply()
    AllowanceSection(log, config, tiers=tiers, tenants=tenants, keys=keys).apply()
    apply_webhooks(log, config, tenants)
    revoked = _prune(log, config, keys) if prune else []
    keys.finish()
    if log.changes:
        _record(log, keys, revoked, actor)
    return revoked


def _prune(log: ChangeLog, config: ConfigFile, keys: KeySection) -> list[ApiKey]:
    prune_tenants(log, config)
    revoked = prune_keys(log, keys)
    prune_webhooks(log, config)
    prune_tiers(log, config)
    prune_routing(log, config)
    return revoked


# --------------------------------------------------------------------------------------------------------------- audit


def _record(log: ChangeLog, keys: KeySection, revoked: list[ApiKey], actor: str) -> None:
    """One event for each tenant that changed and one for the rest; keys made, replaced and revoked have their own."""
    by_tenant: dict[str, list[Change]] = {}
    for change in log.changes:
        by_tenant.setdefault(change.tenant, []).append(change)
    for slug, changes in by_tenant.items():
        record_change(
            events.CONFIG_APPLIED,
            actor=actor,
            subject=f"tenant:{slug}" if slug else "configuration",
            before=_sides(changes, "before"),
            after=_sides(changes, "after"),
            tenant=slug,
        )
    for kind, rows in (
        (events.KEY_CREATED, keys.created),
        (events.KEY_ROTATED, keys.reissued),
        (events.KEY_REVOKED, revoked),
    ):
        for row in rows:
            record_change(
                kind,
                actor=actor,
                subject=f"key:{row.pk}",
                before=None if kind == events.KEY_CREATED else {"id": row.pk, "name": row.name},
                after=key_state(row),
                tenant=row.tenant.slug,
                key_id=row.pk,
            )


def _sides(changes: list[Change], side: str) -> dict[str, Any]:
    return {change.subject: getattr(change, side) for change in changes}
