"""Tenants are made with a webhook secret and a shard, suspended and resumed; every change is on record."""

import pytest
from django.core.exceptions import ValidationError

from audit.models import AuditEvent
from proxy.snapshot_loader import load_snapshot
from tenants.config_version import current_config_version
from tenants.services import create_tenant, resume_tenant, suspend_tenant, update_tenant
from tenants.shards import shard_of


def test_a_tenant_gets_a_secret_and_the_shard_of_its_slug(acme):
    assert acme.webhook_secret.startswith("whsec_")
    assert acme.shard == shard_of("acme")
    assert not AuditEvent.objects.filter(body__contains=acme.webhook_secret).exists()


def test_a_suspended_tenant_is_not_active_until_it_is_resumed(acme):
    suspend_tenant(tenant=acme, actor="test", reason="unpaid")
    assert not load_snapshot().tenants[acme.pk].active
    resume_tenant(tenant=acme, actor="test")
    assert load_snapshot().tenants[acme.pk].active
    assert AuditEvent.objects.filter(kind="tenant.updated", tenant="acme").count() == 2


def test_changing_only_the_secret_is_a_change(acme):
    before = current_config_version()
    changed = update_tenant(tenant=acme, changes={"webhook_secret": "whsec_another"}, actor="test")
    assert changed.webhook_secret == "whsec_another"
    assert current_config_version() == before + 1


@pytest.mark.parametrize("slug", ["", "Acme", "a b", "-a", "x" * 64, "a/b"])
def test_a_slug_that_cannot_be_is_refused(db, slug):
    with pytest.raises(ValidationError):
        create_tenant(slug=slug, name="X", actor="test")
    assert current_config_version() == 0
