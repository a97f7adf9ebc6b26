"""--prune takes away what the file does not name, as far as history allows."""

from datetime import UTC, date, datetime

import pytest

from audit.models import AuditEvent
from billing.models import LedgerEntry, Price, UsageRollup
from proxy.models import ModelAlias, Provider
from proxy.snapshot_loader import load_keys
from tenants.models import ApiKey, Tenant, Tier
from tests.gatewaysite.configuring import FULL, apply, minimal
from webhooks.models import Endpoint, Message

pytestmark = pytest.mark.django_db


def test_without_prune_everything_stays():
    apply(FULL)
    assert apply(minimal()).changes == []


def test_what_has_no_history_is_gone():
    apply(FULL)
    apply(minimal(), prune=True)
    for model in (Tenant, ApiKey, Tier, Provider, ModelAlias, Price, Endpoint):
        assert not model.objects.exists(), model


def test_pruning_with_the_whole_file_changes_nothing():
    apply(FULL)
    assert apply(FULL, prune=True).changes == []


def test_keys_of_a_tenant_that_stays_are_revoked_not_deleted():
    apply(FULL)
    outcome = apply(minimal(tenants=[{"slug": "acme", "keys": [{"name": "app"}]}]), prune=True)
    assert ApiKey.objects.get(name="app").revoked_at is None
    gone = ApiKey.objects.get(name__startswith="=HYPER")
    assert gone.revoked_at is not None
    assert {key.id: key.revoked for key in load_keys(1, 10)}[gone.id]
    assert 'tenants/acme/keys/=HYPERLINK("http://evil.test","x"): revoked, not deleted' in outcome.notes
    assert AuditEvent.objects.filter(kind="key.revoked", key_id=gone.id).exists()


def test_a_tenant_with_a_history_is_suspended_not_deleted():
    apply(FULL)
    UsageRollup.objects.create(day=date(2026, 1, 1), tenant=Tenant.objects.get(slug="acme"), model="smart")
    outcome = apply(minimal(), prune=True)
    assert list(Tenant.objects.values_list("slug", "state")) == [("acme", "suspended")]
    assert not ApiKey.objects.filter(revoked_at=None).exists()
    assert "tenants/acme: suspended, not deleted (it has a history)" in outcome.notes
    assert "tiers/standard: kept (a tenant has it)" in outcome.notes
    assert apply(minimal(), prune=True).changes == []


def test_a_price_that_was_charged_is_kept():
    apply(FULL)
    LedgerEntry.objects.create(
        event_id="e",
        request_id="r",
        time=datetime(2026, 1, 1, tzinfo=UTC),
        tenant=Tenant.objects.get(slug="acme"),
        endpoint="/v1/chat",
        model_requested="smart",
        status="success",
        price_id=Price.objects.get(provider="main").pk,
    )
    apply(minimal(), prune=True)
    assert list(Price.objects.values_list("provider", flat=True)) == ["main"]


def test_a_receiver_with_deliveries_is_disabled_not_deleted():
    apply(FULL)
    endpoint = Endpoint.objects.get()
    Message.objects.create(
        id="evt_1", tenant=endpoint.tenant, endpoint=endpoint, url=endpoint.url, type="t", body=b"{}"
    )
    apply(minimal(tenants=[{"slug": "acme"}]), prune=True)
    assert not Endpoint.objects.get().enabled
