"""The ledger and the daily sums raised with it."""

from datetime import date

import pytest
from django.db import IntegrityError, connection, transaction

from billing.ledger import post
from billing.models import LedgerEntry, UsageRollup
from billing.reconcile import compare_books
from tenants.models import Tenant
from tenants.services import create_key, create_tenant
from tests.recording import MOMENT_MS, posting

pytestmark = pytest.mark.django_db

DAY_MS = 86_400_000


@pytest.fixture
def acme() -> Tenant:
    return create_tenant(slug="acme", name="Acme", actor="test")


def sums() -> list[tuple[object, ...]]:
    names = ("day", "key_ref", "model", "provider", "requests", "failed", "fallbacks", "cache_hits", "unpriced")
    return list(UsageRollup.objects.order_by("day", "key_ref", "model", "provider").values_list(*names, "cost_nano"))


def test_an_entry_holds_what_was_posted(acme):
    key = create_key(tenant=acme, name="app", actor="test").key
    posted = posting(acme.pk, key_id=key.pk, user="ada", price_id=7, fallback_used=True, latency_ms=31)
    assert post([posted]) == 1
    entry = LedgerEntry.objects.get()
    assert {name: getattr(entry, name) for name in posted._fields} == posted._asdict()


def test_entries_of_a_day_add_up_by_key_model_and_provider(acme):
    key = create_key(tenant=acme, name="app", actor="test").key
    post([posting(acme.pk), posting(acme.pk, cost_nano=1, status="failed"), posting(acme.pk, model_requested="fast")])
    post([posting(acme.pk, key_id=key.pk, fallback_used=True, provider="south"), posting(acme.pk, cached=True)])
    post([posting(acme.pk, cost_nano=None)])
    day = date(2026, 3, 14)
    assert sums() == [
        (day, "", "fast", "north", 1, 0, 0, 0, 0, 250_000),
        (day, "", "smart", "north", 4, 1, 0, 1, 1, 500_001),
        (day, key.pk, "smart", "south", 1, 0, 1, 0, 0, 250_000),
    ]


def test_a_day_is_a_utc_day(acme):
    midnight = MOMENT_MS - MOMENT_MS % DAY_MS
    post([posting(acme.pk, at_ms=midnight - 1), posting(acme.pk, at_ms=midnight)])
    assert [row[0] for row in sums()] == [date(2026, 3, 13), date(2026, 3, 14)]


def test_tokens_add_up_by_class(acme):
    classes = {"input_tokens": 7, "output_tokens": 5, "cache_read_tokens": 3, "cache_write_tokens": 2}
    post([posting(acme.pk, reasoning_tokens=1, **classes) for _ in range(3)])
    rollup = UsageRollup.objects.get()
    assert {name: getattr(rollup, name) for name in classes} == {name: 3 * count for name, count in classes.items()}
    assert rollup.reasoning_tokens == 3


def test_an_entry_that_is_there_already_changes_nothing(acme):
    first, second = posting(acme.pk), posting(acme.pk)
    assert post([first, first]) == 1
    assert post([first, second]) == 1
    assert LedgerEntry.objects.count() == UsageRollup.objects.get().requests == 2


def test_when_the_transaction_is_rolled_back_neither_is_there(acme):
    with transaction.atomic():
        post([posting(acme.pk)])
        transaction.set_rollback(True)
    assert not LedgerEntry.objects.exists()
    assert not UsageRollup.objects.exists()


def test_a_negative_cost_is_refused(acme):
    with pytest.raises(IntegrityError), transaction.atomic():
        post([posting(acme.pk, cost_nano=-1)])


def test_hundreds_at_once(acme):
    assert post([posting(acme.pk, model_requested=f"m{number % 7}") for number in range(900)]) == 900
    assert sum(UsageRollup.objects.values_list("requests", flat=True)) == 900
    assert not [told for told in compare_books().differences.told if "rollup" in told]


@pytest.mark.django_db(transaction=True)
def test_an_unknown_tenant_is_refused_by_the_database():
    with pytest.raises(IntegrityError), transaction.atomic():
        post([posting(4711)])
    connection.check_constraints()
    assert not LedgerEntry.objects.exists()
