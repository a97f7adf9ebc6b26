"""What history depends on is not deleted: a message says why and what to do instead, and no history is read for it."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit.models import AuditEvent
from billing.models import Budget, LedgerEntry, Price, UsageRollup
from proxy.models import ModelAlias, Provider
from tenants.models import ApiKey, Tenant, Tier
from tenants.services import create_key, create_tenant, revoke_key
from tests.admin.conftest import texts_of
from tests.admin.pages import list_url, page_url
from tests.admin.rows import add_entry, add_event
from webhooks.models import Endpoint


def delete(client, row):
    """The message after trying to, by the page and by its POST."""
    assert client.get(page_url(row, "delete"), follow=True).status_code == 200
    return texts_of(client.post(page_url(row, "delete"), {"post": "yes"}, follow=True))[-1]


def test_a_tenant_with_a_history_is_kept_and_suspending_is_offered(root, rows):
    said = delete(root, rows.tenants[0])
    assert said == (
        "tenant-0 is kept: API keys, ledger entries, daily usage, messages and audit events depend on it. "
        "Suspend it instead."
    )
    assert Tenant.objects.filter(slug="tenant-0").exists()


def test_a_tenant_whose_requests_are_only_in_the_record_is_kept(root, rows):
    """Who took the slug next would be shown them."""
    tenant = create_tenant(slug="gone", name="Gone", actor="test")
    add_event("gone", "req_gone", "refused")
    assert "audit events depend on it" in delete(root, tenant)


def test_a_tenant_that_never_called_is_deleted_with_what_is_its_own(root, rows):
    tenant = create_tenant(slug="typo", name="Typo", actor="test")
    Budget.objects.create(tenant=tenant, usd=1)
    assert "was deleted successfully" in delete(root, tenant)
    assert not Tenant.objects.filter(slug="typo").exists()
    assert AuditEvent.objects.filter(tenant="typo", kind="object.deleted").count() == 1


def test_a_live_key_is_kept_because_workers_know_it(root, rows):
    key = create_key(tenant=rows.tenants[0], name="unused", actor="test").key
    assert delete(root, key) == f"{key} is kept: callers depend on it. Revoke it instead."


def test_a_revoked_key_is_kept_when_it_was_charged_and_deleted_when_it_was_not(root, rows):
    unused = create_key(tenant=rows.tenants[0], name="unused", actor="test").key
    for key in (unused, rows.keys[0]):
        revoke_key(key=key, actor="test")
    assert "was deleted successfully" in delete(root, unused)
    assert delete(root, rows.keys[0]) == (
        f"{rows.keys[0]} is kept: ledger entries depend on it. It is revoked: nobody can use it."
    )


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (Tier, "tier-0 is kept: tenants depend on it. Give those tenants another tier first."),
        (Provider, "provider-0 is kept: targets depend on it. Take those away first, or switch the provider off."),
        (Endpoint, "https://hooks.example/0 is kept: messages depend on it. Switch it off instead."),
    ],
)
def test_what_is_in_use_is_kept(root, rows, model, said):
    assert delete(root, model.objects.order_by("pk").first()) == said
    assert model.objects.count() == 2


def test_what_is_not_in_use_is_deleted(root, rows):
    alias = rows.models[0]
    assert "was deleted successfully" in delete(root, alias)
    assert "was deleted successfully" in delete(root, rows.providers[0])
    assert (ModelAlias.objects.count(), Provider.objects.count()) == (1, 1)


def test_a_price_that_calls_were_charged_by_is_kept(root, rows):
    charged = Price.objects.first()
    assert "charged calls depend on it. Add a price with a later date instead" in delete(root, charged)
    future = Price.objects.create(provider="provider-0", model="x", input=1, output=1, effective_from="2999-01-01")
    assert "was deleted successfully" in delete(root, future)


def test_several_rows_are_deleted_only_when_each_may_be(root, rows):
    spare = Tier.objects.create(name="spare")
    chosen = {"action": "delete_selected", "_selected_action": [spare.pk, rows.tiers[0].pk], "index": "0"}
    for sent in (chosen, {**chosen, "post": "yes"}):
        said = texts_of(root.post(list_url(Tier), sent, follow=True))
        assert said == ["tier-0 is kept: tenants depend on it. Give those tenants another tier first."]
    assert Tier.objects.count() == 3


def test_the_reason_is_found_without_reading_what_depends_on_the_row(root, rows):
    tenant, key = rows.tenants[0], rows.keys[0]

    def statements():
        with CaptureQueriesContext(connection) as captured:
            root.post(page_url(tenant, "delete"), {"post": "yes"})
        return [query["sql"] for query in captured]

    few = statements()
    for number in range(30):
        add_entry(tenant, key, f"more_{number}")
    many = statements()
    assert len(many) == len(few)
    history = [sql for sql in many if "billing_ledgerentry" in sql or "audit_auditevent" in sql]
    assert history
    assert all(sql.rstrip().endswith("LIMIT 1") for sql in history)


def test_nothing_of_the_history_was_touched(root, rows):
    before = (LedgerEntry.objects.count(), UsageRollup.objects.count(), ApiKey.objects.count())
    for row in (*rows.tenants, *rows.keys, *rows.providers, *rows.endpoints):
        delete(root, row)
    assert (LedgerEntry.objects.count(), UsageRollup.objects.count(), ApiKey.objects.count()) == before
