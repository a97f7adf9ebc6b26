"""What can be done with tenants and keys. Every change is one transaction with its audit event and a new version.

`actor` says who did it as the audit log shows it: `admin:alice`, `key:<id>`, `cli:<login>`, `config-file`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from audit import events
from audit.recorder import record_change
from tenants import keys as key_text
from tenants.checks import check_key, check_name
from tenants.config_version import bump_config_version, lock_config_version
from tenants.models import ApiKey, ApiKeySecret, Tenant, TenantState
from tenants.revocation import mark_revoked
from tenants.states import key_state, tenant_state
from tenants.webhook_secrets import new_webhook_secret

#: Secrets of one key that work at the same time: the current one and those of rotations whose overlap runs.
MAX_LIVE_SECRETS = 3


State = dict[str, Any] | None


class KeyRefused(ValidationError):
    """A key cannot be made or changed as asked; the message is for the one who asked."""


@dataclass(frozen=True, kw_only=True)
class IssuedKey:
    """A key with the one secret that is shown once, now."""

    key: ApiKey
    secret: str = field(repr=False)
    overlap_ends_at: datetime | None = None


def key_environment() -> str:
    return key_text.TEST if settings.DEMO else key_text.LIVE


def digest_of(secret: str) -> str:
    """What is stored of a secret (hex)."""
    return key_text.digest(settings.KEY_PEPPER.encode(), secret).hex()


# ------------------------------------------------------------------------------------------------------------ tenants


def create_tenant(*, slug: str, name: str, actor: str, address: str = "", **fields: Any) -> Tenant:
    """A new tenant with a webhook secret of its own. Raises ValidationError."""
    tenant = Tenant(slug=slug, name=name, **fields)
    tenant.webhook_secret = tenant.webhook_secret or new_webhook_secret()
    check_name(name)
    tenant.full_clean(exclude=["shard"])
    with transaction.atomic():
        tenant.save()
        bump_config_version()
        _record_tenant(events.TENANT_CREATED, tenant, None, tenant_state(tenant), _Why(actor, address=address))
    return tenant


def update_tenant(
    *, tenant: Tenant, changes: Mapping[str, Any], actor: str, reason: str = "", address: str = ""
) -> Tenant:
    """Set the named fields. Nothing happens when they already have these values. Raises ValidationError."""
    with transaction.atomic():
        lock_config_version()
        locked = Tenant.objects.get(pk=tenant.pk)
        before = tenant_state(locked)
        if not _set(locked, changes):
            return locked
        check_name(locked.name)
        locked.full_clean(exclude=["shard", "slug"])
        locked.save(update_fields=list(changes))
        bump_config_version()
        _record_tenant(events.TENANT_UPDATED, locked, before, tenant_state(locked), _Why(actor, reason, address))
    return locked


def suspend_tenant(*, tenant: Tenant, actor: str, reason: str = "", address: str = "") -> Tenant:
    """Refuse all calls of the tenant from the next second on; nothing is deleted."""
    return update_tenant(
        tenant=tenant, changes={"state": TenantState.SUSPENDED}, actor=actor, reason=reason, address=address
    )


def resume_tenant(*, tenant: Tenant, actor: str, reason: str = "", address: str = "") -> Tenant:
    return update_tenant(
        tenant=tenant, changes={"state": TenantState.ACTIVE}, actor=actor, reason=reason, address=address
    )


# --------------------------------------------------------------------------------------------------------------- keys


def create_key(
    *, tenant: Tenant, name: str, actor: str, secret: str = "", address: str = "", **fields: Any
) -> IssuedKey:
    """A new key of `tenant`; `fields` are those of ApiKey. `secret` imports one. Raises ValidationError."""
    parsed = key_text.parse(secret) if secret else None  # one of ours from elsewhere keeps its id
    key = ApiKey(id=parsed.id if parsed else key_text.new_id(), tenant=tenant, name=name, **fields)
    check_key(key)
    if secret and (fault := key_text.fault_of_imported(secret)):
        raise KeyRefused({"secret": f"The secret {fault}."})
    secret = secret or key_text.generate(key.id, key_environment())
    with transaction.atomic():
        key.changed_in = bump_config_version()
        key.full_clean()
        if ApiKeySecret.objects.filter(digest=digest_of(secret)).exists():
            raise KeyRefused({"secret": "This secret is in use already."})
        key.save(force_insert=True)
        ApiKeySecret.objects.create(key=key, digest=digest_of(secret), last4=secret[-4:])
        _record_key(events.KEY_CREATED, key, None, key_state(key), _Why(actor, address=address))
    return IssuedKey(key=key, secret=secret)


def update_key(*, key: ApiKey, changes: Mapping[str, Any], actor: str, reason: str = "", address: str = "") -> ApiKey:
    """Set the named fields of a key. Nothing happens when they already have these values. Raises ValidationError."""
    with transaction.atomic():
        locked = _locked(key)
        before = key_state(locked)
        if not _set(locked, changes):
            return locked
        check_key(locked)
        locked.full_clean(exclude=["id", "tenant"])
        locked.changed_in = bump_config_version()
        locked.save(update_fields=[*changes, "changed_in"])
        _record_key(events.KEY_UPDATED, locked, before, key_state(locked), _Why(actor, reason, address))
    return locked


def rotate_key(*, key: ApiKey, overlap: timedelta, actor: str, reason: str = "", address: str = "") -> IssuedKey:
    """A new secret under the same id. The old one works until now + `overlap`; with zero it ends now.

    At most three secrets live at once: the oldest ends when a fourth is made.
    """
    if overlap < timedelta(0):
        raise KeyRefused("The overlap must not be negative.")
    with transaction.atomic():
        locked = _locked(key)
        if locked.revoked_at is not None:
            raise KeyRefused(f"Key {locked.id} is revoked: make a new one.")
        now = timezone.now()
        before = key_state(locked)
        _end_old_secrets(locked, now, now + overlap)
        secret = key_text.generate(locked.id, key_environment())
        ApiKeySecret.objects.create(key=locked, digest=digest_of(secret), last4=secret[-4:], created_at=now)
        locked.changed_in = bump_config_version()
        locked.save(update_fields=["changed_in"])
        ends_at = now + overlap
        _record_key(
            events.KEY_ROTATED,
            locked,
            before,
            {**key_state(locked), "overlap_ends_at": ends_at.isoformat()},
            _Why(actor, reason, address),
        )
    return IssuedKey(key=locked, secret=secret, overlap_ends_at=ends_at)


def revoke_key(*, key: ApiKey, actor: str, reason: str = "", address: str = "") -> ApiKey:
    """End a key for good. Every worker refuses it within a second."""
    revoke_keys(keys=[key], actor=actor, reason=reason, address=address)
    key.refresh_from_db()
    return key


def revoke_keys(*, keys: Iterable[ApiKey], actor: str, reason: str = "", address: str = "") -> list[ApiKey]:
    """End `keys` for good, in one transaction; gives those that were not revoked before."""
    with transaction.atomic():
        lock_config_version()
        chosen = list(ApiKey.objects.select_related("tenant").filter(id__in=[key.id for key in keys], revoked_at=None))
        if not chosen:
            return []
        before = {key.id: key_state(key) for key in chosen}
        now, version = timezone.now(), bump_config_version()
        for key in chosen:
            key.revoked_at, key.changed_in = now, version
            _record_key(events.KEY_REVOKED, key, before[key.id], key_state(key), _Why(actor, reason, address))
        ApiKey.objects.bulk_update(chosen, ["revoked_at", "changed_in"], batch_size=500)
        announce_revocation(chosen)
    return chosen


def announce_revocation(keys: Sequence[ApiKey]) -> None:
    """After the commit, tell the limiter of every worker at once."""
    markers = [(key.tenant.shard, key.id) for key in keys]
    transaction.on_commit(lambda: mark_revoked(markers))


class _Why(NamedTuple):
    """Who makes a change, for what reason, from which address."""

    actor: str
    reason: str = ""
    address: str = ""


def _record_tenant(kind: str, tenant: Tenant, before: State, after: State, why: _Why) -> None:
    record_change(
        kind,
        subject=f"tenant:{tenant.slug}",
        before=before,
        after=after,
        tenant=tenant.slug,
        **why._asdict(),
    )


def _record_key(kind: str, key: ApiKey, before: State, after: State, why: _Why) -> None:
    record_change(
        kind,
        subject=f"key:{key.id}",
        before=before,
        after=after,
        tenant=key.tenant.slug,
        key_id=key.id,
        **why._asdict(),
    )


def _end_old_secrets(key: ApiKey, now: datetime, ends_at: datetime) -> None:
    """Let live secrets end at `ends_at` at the latest; beyond the number that may live, the oldest end now."""
    live = [secret for secret in key.secrets.order_by("-created_at", "-id") if _is_live(secret, now)]
    for number, secret in enumerate(live, start=2):  # the new one is the first
        latest = ends_at if number <= MAX_LIVE_SECRETS else now
        if secret.expires_at is None or secret.expires_at > latest:
            secret.expires_at = latest
            secret.save(update_fields=["expires_at"])


def _is_live(secret: ApiKeySecret, now: datetime) -> bool:
    return secret.expires_at is None or secret.expires_at > now


def _locked(key: ApiKey) -> ApiKey:
    lock_config_version()
    return ApiKey.objects.select_related("tenant").get(pk=key.pk)


def _set(row: Tenant | ApiKey, changes: Mapping[str, Any]) -> bool:
    """Set the fields; gives whether any has another value now."""
    different = {name: value for name, value in changes.items() if getattr(row, name) != value}
    for name, value in different.items():
        setattr(row, name, value)
    return bool(different)
