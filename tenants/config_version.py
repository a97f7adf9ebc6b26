"""The version of the configuration: bumped in the transaction of every change, polled by every worker."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from tenants.models import ConfigVersion


def bump_config_version() -> int:
    """Raise the version inside the caller's transaction (its row lock orders concurrent changes). Gives the new one."""
    with transaction.atomic():
        ConfigVersion.objects.get_or_create(id=1)
        ConfigVersion.objects.filter(id=1).update(version=F("version") + 1, changed_at=timezone.now())
        return ConfigVersion.objects.values_list("version", flat=True).get(id=1)


def lock_config_version() -> ConfigVersion:
    """Take the version's row first, before any row that a change touches: changes then wait for each other in line
    instead of in a circle. Inside the caller's transaction."""
    ConfigVersion.objects.get_or_create(id=1)
    return ConfigVersion.objects.select_for_update().get(id=1)


def current_config_version() -> int:
    return ConfigVersion.objects.filter(id=1).values_list("version", flat=True).first() or 0
