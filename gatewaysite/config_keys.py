"""Applies the keys of the configuration file and their secrets.

Decisions made elsewhere stand: a revoked key stays revoked, and a secret that a rotation has replaced is not brought
back by a file that still names it. A secret that the key never had replaces the current one at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.utils import timezone

from gatewaysite.config_callers import limit_values
from gatewaysite.config_changes import Change, ChangeLog, Wanted, sync_rows
from gatewaysite.config_file import ConfigFileError
from gatewaysite.config_schema import ConfigFile, KeyEntry
from gatewaysite.config_values import Secret
from tenants.keys import new_id
from tenants.models import ApiKey, ApiKeySecret, Tenant
from tenants.services import digest_of

KeyIdentity = tuple[int, str]
Entries = dict[KeyIdentity, tuple[str, str, KeyEntry]]  # -> (path, tenant slug, entry)


class KeySection:
    """The keys of one file, and which of them a change touched."""

    def __init__(self, log: ChangeLog, config: ConfigFile, tenants: dict[str, Tenant]) -> None:
        self.log = log
        self.tenants = tenants
        self.entries: Entries = {
            (tenants[slug].pk, str(entry.name)): (path, slug, entry) for path, slug, entry in _entries(config)
        }
        self.rows: dict[KeyIdentity, ApiKey] = {}
        self.created: list[ApiKey] = []
        self.reissued: list[ApiKey] = []
        self.touched: set[str] = set()
        self._digests = {
            identity: digest_of(entry.secret.text)
            for identity, (_, _, entry) in self.entries.items()
            if isinstance(entry.secret, Secret)
        }

    def apply(self) -> None:
        """Make and change keys and secrets. Raises ConfigFileError."""
        tenant_ids = {tenant_id for tenant_id, _ in self.entries}
        names = {name for _, name in self.entries}
        found = ApiKey.objects.filter(tenant_id__in=tenant_ids, name__in=names).select_related("tenant")
        existing = {(row.tenant_id, row.name): row for row in found}
        known = self._known_secrets()
        self._check_secrets(existing, known)
        wanted = {
            identity: self._wanted(identity)
            for identity in self.entries
            if identity not in existing or existing[identity].revoked_at is None
        }
        self._note_revoked(existing)
        self.created, updated = sync_rows(self.log, ApiKey, existing, wanted)
        self.touched |= {row.pk for row in updated}
        by_id = {tenant.pk: tenant for tenant in self.tenants.values()}
        for row in self.created:
            row.tenant = by_id[row.tenant_id]
        made = {(row.tenant_id, row.name): row for row in self.created}
        self.rows = {identity: row for identity, row in (existing | made).items() if identity in wanted}
        self._apply_secrets(known)

    def finish(self) -> None:
        """Put the version of this application on every key that it touched, so that workers load them again."""
        if self.log.version is not None:
            touched = self.touched | {row.pk for row in self.created}
            ApiKey.objects.filter(pk__in=touched).update(changed_in=self.log.version)

    def _wanted(self, identity: KeyIdentity) -> Wanted:
        _, slug, entry = self.entries[identity]
        values = {
            "tenant_id": identity[0],
            "name": str(entry.name),
            "scopes": [str(scope) for scope in entry.scopes],
            "allowed_models": list(entry.models),
            "cidrs": [str(network) for network in entry.cidrs],
            "may_speak_for_users": entry.may_speak_for_users,
            "expires_at": entry.expires_at.at if entry.expires_at else None,
            **limit_values(entry.limits),
        }
        return Wanted(subject=key_subject(slug, entry.name), tenant=slug, values=values, only_new={"id": new_id()})

    def _known_secrets(self) -> dict[str, ApiKeySecret]:
        return {row.digest: row for row in ApiKeySecret.objects.filter(digest__in=list(self._digests.values()))}

    def _check_secrets(self, existing: dict[KeyIdentity, ApiKey], known: dict[str, ApiKeySecret]) -> None:
        faults = []
        for identity, (path, _, _) in self.entries.items():
            key, digest = existing.get(identity), self._digests.get(identity)
            if digest is None:
                if key is None:
                    faults.append(f"{path}.secret: is required for a new key")
            elif digest in known and (key is None or known[digest].key_id != key.pk):
                faults.append(f"{path}.secret: is or was the secret of another key: give this one a new one")
        if faults:
            raise ConfigFileError(faults)

    def _note_revoked(self, existing: dict[KeyIdentity, ApiKey]) -> None:
        for identity, row in existing.items():
            if row.revoked_at is not None and identity in self.entries:
                path, slug, entry = self.entries[identity]
                self.log.notes.append(f"{path}: {key_subject(slug, entry.name)} is revoked and stays revoked")

    def _apply_secrets(self, known: dict[str, ApiKeySecret]) -> None:
        new = {identity for identity, digest in self._digests.items() if digest not in known and identity in self.rows}
        made = {row.pk for row in self.created}
        replaced = [self.rows[identity] for identity in new if self.rows[identity].pk not in made]
        now = timezone.now()
        for key in replaced:
            key.secrets.exclude(expires_at__lte=now).update(expires_at=now)
            self.log.add(
                Change(
                    action="update",
                    subject=f"{key_subject(key.tenant.slug, key.name)}/secret",
                    tenant=key.tenant.slug,
                    before={"secret": "set"},
                    after={"secret": "set (changed)"},
                )
            )
        self.reissued = replaced
        self.touched |= {key.pk for key in replaced}
        ApiKeySecret.objects.bulk_create(
            [self._new_secret(identity, now) for identity in self.entries if identity in new], batch_size=500
        )

    def _new_secret(self, identity: KeyIdentity, now: Any) -> ApiKeySecret:
        secret = self.entries[identity][2].secret
        last4 = secret.text[-4:] if isinstance(secret, Secret) else ""
        return ApiKeySecret(key_id=self.rows[identity].pk, digest=self._digests[identity], last4=last4, created_at=now)


def key_subject(slug: str, name: str) -> str:
    return f"tenants/{slug}/keys/{name}"


def _entries(config: ConfigFile) -> Iterator[tuple[str, str, KeyEntry]]:
    for tenant_number, tenant in enumerate(config.tenants):
        for number, key in enumerate(tenant.keys):
            yield f"tenants[{tenant_number}].keys[{number}]", str(tenant.slug), key
