"""The tables that only grow are never counted or scanned, whatever is asked of their lists."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit import lists, newest_rows
from audit.models import AuditEvent
from billing.models import LedgerEntry, UsageRollup
from tests.admin.pages import list_url
from tests.admin.rows import NOON, add_entry, add_event
from webhooks.models import Message

pytestmark = pytest.mark.django_db
TABLES = {
    AuditEvent: "audit_auditevent",
    LedgerEntry: "billing_ledgerentry",
    Message: "webhooks_message",
    UsageRollup: "billing_usagerollup",
}


def statements(client, model, **query):
    with CaptureQueriesContext(connection) as captured:
        response = client.get(list_url(model), query)
    assert response.status_code == 200
    mine = [query["sql"] for query in captured if TABLES[model] in query["sql"]]
    return response.context["cl"], mine


def plan_of(statement):
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {statement.replace('%', '%%')}")
        return [row[3] for row in cursor.fetchall()]


QUERIES = [
    (AuditEvent, {}),
    (AuditEvent, {"tenant": "tenant-1"}),
    (AuditEvent, {"status": "refused"}),
    (AuditEvent, {"what": "changes", "tenant": "tenant-1"}),
    (AuditEvent, {"until": "2026-03-04"}),
    (AuditEvent, {"q": "req_1"}),
    (LedgerEntry, {}),
    (LedgerEntry, {"tenant__id__exact": "1"}),
    (LedgerEntry, {"status": "failed", "until": "2026-03-05 00:00"}),
    (LedgerEntry, {"q": "req_1"}),
    (UsageRollup, {}),
    (Message, {}),
    (Message, {"state__exact": "pending", "until": "2999-01-01"}),
    (Message, {"q": "evt_1"}),
]


@pytest.mark.parametrize(("model", "query"), QUERIES, ids=str)
def test_every_count_ends_at_a_limit(root, rows, model, query):
    _, found = statements(root, model, **query)
    counts = [statement for statement in found if "COUNT(" in statement]
    assert counts
    assert all(re.search(r"LIMIT \d+\) subquery", statement) for statement in counts)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="reads SQLite's plans")
@pytest.mark.parametrize(("model", "query"), QUERIES, ids=str)
def test_no_page_walks_through_the_table_to_sort_or_to_search_it(root, rows, model, query):
    """A SCAN is right only along an index in the order of the page, where the limit ends it."""
    _, found = statements(root, model, **query)
    for statement in found:
        if "COUNT(" in statement:
            continue  # in no order, so it ends at its limit
        plan = plan_of(statement)
        assert not [step for step in plan if re.fullmatch(rf"SCAN {TABLES[model]}", step)], (statement, plan)
        if "q" not in query:  # the few rows with these ids are sorted
            assert not [step for step in plan if step == "USE TEMP B-TREE FOR ORDER BY"], (statement, plan)


def test_a_list_ends_at_its_window(root, rows, monkeypatch):
    monkeypatch.setattr(newest_rows, "WINDOW_ROWS", 3)
    for number in range(6):
        add_event("tenant-0", f"later_{number}", "success", at=NOON + timedelta(hours=number + 1))
    shown, _ = statements(root, AuditEvent, tenant="tenant-0", what="requests", until="2026-03-04 18:30")
    assert [event.request_id for event in shown.result_list] == ["later_5", "later_4", "later_3"]


def test_a_filter_looks_no_further_than_the_window(root, rows, monkeypatch):
    monkeypatch.setattr(newest_rows, "WINDOW_ROWS", 3)
    add_event("tenant-0", "old", "refused", at=NOON - timedelta(hours=1))
    for number in range(4):
        add_event("tenant-0", f"new_{number}", "success", at=NOON + timedelta(days=400, hours=number))
    shown, _ = statements(root, AuditEvent, tenant="tenant-0", status="refused")
    assert list(shown.result_list) == []
    shown, _ = statements(root, AuditEvent, tenant="tenant-0", status="refused", until="2026-03-04 11:30")
    assert [event.request_id for event in shown.result_list] == ["old"]


def test_until_shows_what_was_before_that_moment(root, rows):
    add_event("tenant-0", "before", "success", at=NOON - timedelta(milliseconds=1))
    add_event("tenant-0", "after", "success", at=NOON + timedelta(milliseconds=1))
    shown, _ = statements(root, AuditEvent, tenant="tenant-0", until="2026-03-04T12:00:00Z")
    assert [event.request_id for event in shown.result_list] == ["before"]


def test_the_ledger_of_a_tenant_is_in_the_order_of_time(root, rows):
    tenant = rows.tenants[0]
    add_entry(tenant, None, "late", time=NOON + timedelta(days=2))
    add_entry(tenant, None, "early", time=NOON - timedelta(days=2))
    shown, _ = statements(root, LedgerEntry, tenant__id__exact=str(tenant.pk))
    assert [entry.request_id for entry in shown.result_list] == ["late", "req_0", "early"]
    shown, _ = statements(root, LedgerEntry, tenant__id__exact=str(tenant.pk), until="2026-03-04 00:00")
    assert [entry.request_id for entry in shown.result_list] == ["early"]


def test_an_id_is_found_beyond_the_window(root, rows, monkeypatch):
    monkeypatch.setattr(newest_rows, "WINDOW_ROWS", 1)
    event_id = add_event("tenant-0", "long_ago", "success", at=NOON - timedelta(days=900))
    for text in (event_id, "long_ago", " long_ago "):
        shown, _ = statements(root, AuditEvent, q=text)
        assert [event.pk for event in shown.result_list] == [event_id]
    entry = add_entry(rows.tenants[0], None, "old_request", time=NOON - timedelta(days=900))
    shown, _ = statements(root, LedgerEntry, q="old_request")
    assert list(shown.result_list) == [entry]


def test_the_count_stops_at_its_cap(root, rows, monkeypatch):
    monkeypatch.setattr(lists, "MAX_COUNTED", 2)
    shown, _ = statements(root, AuditEvent)
    assert shown.result_count == 2
