"""The record, the ledger, its sums and what was sent to receivers can be looked at and not touched, by nobody."""

import pytest

from audit.models import AuditEvent
from billing.models import LedgerEntry, UsageRollup
from tests.admin.pages import add_url, list_url, page_url
from tests.admin.rows import add_event
from webhooks.models import Message

READ_ONLY = [AuditEvent, LedgerEntry, UsageRollup, Message]


@pytest.mark.parametrize("model", READ_ONLY, ids=lambda model: model.__name__)
def test_there_is_nothing_to_add_change_or_delete(root, rows, model):
    row = model.objects.first()
    before = list(model.objects.values())
    assert root.get(add_url(model)).status_code == 403
    assert root.post(add_url(model), {"id": "x"}).status_code == 403
    assert root.get(page_url(row)).status_code == 200
    assert root.post(page_url(row), {"status": "success"}).status_code == 403
    assert root.get(page_url(row, "delete")).status_code == 403
    assert root.post(page_url(row, "delete"), {"post": "yes"}).status_code == 403
    assert list(model.objects.values()) == before


@pytest.mark.parametrize("model", READ_ONLY, ids=lambda model: model.__name__)
def test_there_are_no_actions(root, rows, model):
    page = root.get(list_url(model))
    assert page.context["action_form"] is None
    row = model.objects.first()
    chosen = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes", "index": "0"}
    assert root.post(list_url(model), chosen).status_code in (200, 302)
    assert model.objects.filter(pk=row.pk).exists()


def test_an_event_is_shown_as_indented_json_and_escaped(root, rows):
    hostile = {"note": "<script>alert(1)</script>", "quote": "\"'&", "bidi": "a\u202eb", "nul": "\u0000"}
    event_id = add_event("tenant-0", "req_hostile", "success", metadata=hostile)
    page = root.get(page_url(AuditEvent(pk=event_id))).content.decode()
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "\u202e" not in page
    assert "\\u202e" in page
    assert "\u0000" not in page
    assert "\n  &quot;metadata&quot;: {\n    &quot;bidi&quot;" in page


def test_a_message_shows_its_body_and_its_attempts_escaped(root, rows):
    page = root.get(page_url(rows.messages[0])).content.decode()
    assert "&quot;event_id&quot;: &quot;evt_0&quot;" in page
    assert "&lt;b&gt;no&lt;/b&gt;" in page
    assert "<b>no</b>" not in page
