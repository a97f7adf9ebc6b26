"""A key made in the admin shows its secret once: on the page after the redirect, and nowhere else ever."""

import time

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.test import Client

from audit.models import AuditEvent
from billing.models import Budget
from tenants import shown_once
from tenants.models import ApiKey
from tenants.services import digest_of
from tests.admin.pages import add_url, form_of, page_url


def make_key(client, tenant, name="app", **changes):
    form = form_of(client.get(add_url(ApiKey)), "apikey_form") | {"tenant": tenant.pk, "name": name} | changes
    return client.post(add_url(ApiKey), form)


@pytest.fixture
def made(root, rows):
    """The redirect after a key was made, and the key."""
    answer = make_key(root, rows.tenants[0])
    assert answer.status_code == 302, answer.context["errors"]
    return answer, ApiKey.objects.get(name="app")


def secret_on(page):
    value = page.content.decode().partition('id="secret"')[2].partition('value="')[2].partition('"')[0]
    return value or None


def test_the_secret_is_on_the_page_after_the_redirect_and_works(root, made):
    answer, key = made
    assert answer["Location"] == page_url(key, "secret")
    page = root.get(answer["Location"])
    secret = secret_on(page)
    assert secret.startswith(f"tb_live_{key.pk}_")
    assert key.secrets.get().digest == digest_of(secret)
    assert "no-store" in page["Cache-Control"]
    assert page["Referrer-Policy"] == "no-referrer"


def test_loading_the_page_again_shows_nothing(root, made):
    answer, _ = made
    secret = secret_on(root.get(answer["Location"]))
    for _ in range(2):
        again = root.get(answer["Location"])
        assert again.status_code == 200
        assert secret_on(again) is None
        assert secret not in again.content.decode()


def test_asking_for_the_headers_only_does_not_use_it_up(root, made):
    answer, _ = made
    assert root.head(answer["Location"]).status_code == 200
    assert secret_on(root.get(answer["Location"]))


def test_the_page_takes_no_form(root, made):
    answer, _ = made
    assert root.post(answer["Location"]).status_code == 405
    assert secret_on(root.get(answer["Location"]))


def test_nobody_else_is_shown_it(root, made, viewer):
    answer, _ = made
    assert secret_on(viewer.get(answer["Location"])) is None
    assert Client().get(answer["Location"]).status_code == 302
    assert secret_on(root.get(answer["Location"]))


def test_the_secret_of_one_key_is_not_shown_on_the_page_of_another(root, made, rows):
    assert secret_on(root.get(page_url(rows.keys[0], "secret"))) is None
    assert secret_on(root.get(made[0]["Location"]))


def test_it_waits_encrypted_and_not_for_ever(root, made, monkeypatch):
    answer, _ = made
    stored = Session.objects.get(pk=root.session.session_key).get_decoded()
    assert "tb_live_" not in str(stored)
    later = time.time() + shown_once.KEPT_SECONDS + 1
    monkeypatch.setattr("tenants.shown_once.time.time", lambda: later)
    assert secret_on(root.get(answer["Location"])) is None


def test_it_is_in_no_history_no_message_and_no_event(root, made):
    answer, key = made
    secret = secret_on(root.get(answer["Location"]))
    pages = [root.get(page_url(key, page)).content.decode() for page in ("change", "history")]
    logged = [f"{entry.object_repr} {entry.change_message}" for entry in LogEntry.objects.all()]
    events = [event.body for event in AuditEvent.objects.all()]
    assert all(secret not in text for text in (*pages, *logged, *events))


def test_the_event_says_who_made_it_from_where(root, made):
    _, key = made
    event = AuditEvent.objects.get(kind="key.created", key_id=key.pk)
    assert '"actor":"admin:alice"' in event.body
    assert '"address":"127.0.0.1"' in event.body


def test_budgets_made_with_the_key_belong_to_it_and_its_tenant(root, rows):
    budget = {
        "budgets-TOTAL_FORMS": 1,
        "budgets-0-scope": "key",
        "budgets-0-usd": "5",
        "budgets-0-per": "day",
        "budgets-0-warn_at": "50",
        "budgets-0-timezone": "UTC",
    }
    assert make_key(root, rows.tenants[0], "capped", **budget).status_code == 302
    made = Budget.objects.get(key__name="capped")
    assert (made.tenant, made.scope, made.warn_at) == (rows.tenants[0], "key", [50])
    event = AuditEvent.objects.get(kind="key.updated", key_id=made.key_id)
    assert '"budgets":[{' in event.body
    assert ApiKey.objects.get(pk=made.key_id).changed_in > 0


def test_a_name_that_is_taken_is_said_and_nothing_is_made(root, rows):
    answer = make_key(root, rows.tenants[0], rows.keys[0].name)
    assert answer.status_code == 200
    assert "already exists" in answer.content.decode()
    assert ApiKey.objects.filter(tenant=rows.tenants[0]).count() == 1


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", "a\u202eb", "direction-changing"),
        ("name", "   ", "required"),
        ("cidrs", "10.0.0.0/8\n10.0.0.1/8", "no network"),
        ("allowed_models", "x" * 201, "more than 200 characters"),
        ("scopes", "root", "not one of the available choices"),
        ("rpm", "0", "greater than or equal to 1"),
        ("rpm", "9" * 30, "less than or equal to"),
        ("expires_at_0", "soon", "valid date"),
    ],
)
def test_what_cannot_be_is_said_next_to_its_field(root, rows, field, value, said):
    answer = make_key(root, rows.tenants[0], **{field: value})
    assert answer.status_code == 200
    assert said in answer.content.decode()
    assert not ApiKey.objects.filter(name="app").exists()
