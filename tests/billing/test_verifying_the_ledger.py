"""verify_ledger: ledger, daily sums and audit log tell the same, or the difference is named."""

# ruff: noqa: S608  (no statement in this file holds any input)

import json
from io import StringIO

import pytest
from django.core.management import call_command

from audit.recorder import record
from billing.ledger import post
from billing.models import LedgerEntry, UsageRollup
from proxy.drain_write import read_entry, write_batch
from tenants.models import Tenant
from tenants.services import create_tenant
from tests.recording import encoded, posting, request_event, stream_entry, tamper

pytestmark = pytest.mark.django_db

LEDGER, AUDIT = "billing_ledgerentry", "audit_auditevent"


@pytest.fixture
def acme() -> Tenant:
    """With ten charged requests of 0.00025 USD, one without a price and a refused one."""
    tenant = create_tenant(slug="acme", name="Acme", actor="test")
    entries = [stream_entry(tenant.pk, "acme") for _ in range(10)]
    entries.append(stream_entry(tenant.pk, "acme", nano=None))
    entries.append(stream_entry(tenant.pk, "acme", nano=None, status="refused", envelope={"charged": False}))
    write_batch([(3, read_entry(encoded(entry))) for entry in entries])
    return tenant


def check(*, ok: bool) -> list[str]:
    """Run the command; gives the differences."""
    out = StringIO()
    status: object = 0
    try:
        call_command("verify_ledger", "--json", stdout=out, stderr=StringIO())
    except SystemExit as ended:
        status = ended.code
    document = json.loads(out.getvalue())
    assert (document["ok"], status) == (ok, 0 if ok else 2)
    assert document["difference_count"] == len(document["differences"])
    differences: list[str] = document["differences"]
    return differences


def test_books_that_agree(acme):
    assert check(ok=True) == []
    out = StringIO()
    call_command("verify_ledger", stdout=out, stderr=StringIO())
    assert out.getvalue().startswith("11 requests, 0.002500 USD: ledger, rollups, audit log")


def test_nothing_is_in_agreement_too(db):
    assert check(ok=True) == []


def test_a_changed_sum_of_a_day_is_named(acme):
    UsageRollup.objects.update(cost_nano=1)
    (difference,) = check(ok=False)
    assert "2026-03-14" in difference
    assert difference.endswith("cost_nano is 2500000 by the ledger, 1 by the rollup")


def test_two_days_whose_errors_cancel_out_are_named(acme):
    UsageRollup.objects.update(requests=10)
    UsageRollup.objects.create(tenant=acme, day="2026-03-15", model="smart", provider="north", requests=1)
    assert len(check(ok=False)) == 2


def test_a_missing_sum_of_a_day_is_named(acme):
    UsageRollup.objects.all().delete()
    (difference,) = check(ok=False)
    assert "11 ledger entries have no rollup" in difference


def test_a_changed_entry_is_named(acme):
    entry = LedgerEntry.objects.filter(cost_nano__gt=0)[0]
    tamper(LEDGER, f"UPDATE {LEDGER} SET cost_nano = 1 WHERE id = {entry.pk}")
    differences = check(ok=False)
    assert f"event {entry.event_id} cost 0.000000001 USD by the ledger, 0.000250 USD by the audit log" in differences
    assert len(differences) == 2  # the sum of the day too


def test_a_removed_entry_is_named(acme):
    entry = LedgerEntry.objects.filter(cost_nano__gt=0)[0]
    tamper(LEDGER, f"DELETE FROM {LEDGER} WHERE id = {entry.pk}")
    assert f"event {entry.event_id} cost 0.000250 USD and is not in the ledger" in check(ok=False)


def test_an_entry_without_an_audit_event_is_named(acme):
    extra = posting(acme.pk)
    post([extra])
    assert check(ok=False) == [f"ledger entry {extra.event_id} has no audit event"]


def test_an_audit_event_that_cost_something_without_an_entry_is_named(acme):
    event = request_event(3, cost_usd="0.5")
    record([event])
    assert check(ok=False) == [f"event {event.id} cost 0.500000 USD and is not in the ledger"]


def test_an_event_whose_cost_cannot_be_read_is_named(acme):
    entry = LedgerEntry.objects.filter(cost_nano__gt=0)[0]
    tamper(AUDIT, f"UPDATE {AUDIT} SET body = replace(body, '0.00025', 'zero') WHERE id = '{entry.event_id}'")
    assert any(entry.event_id in difference for difference in check(ok=False))


def test_many_differences_are_counted_and_the_first_told(acme):
    post([posting(acme.pk) for _ in range(80)])
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("verify_ledger", stdout=out, stderr=StringIO())
    lines = out.getvalue().splitlines()
    assert len(lines) == 51
    assert lines[-1] == "… 80 differences in all."
