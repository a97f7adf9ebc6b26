"""Keys are rotated with an overlap and revoked for good, by a dialog whose form is sent by POST."""

from datetime import timedelta

import pytest
from django.utils import timezone

from audit.models import AuditEvent
from tenants.models import ApiKey
from tests.admin.conftest import texts_of
from tests.admin.pages import form_of, list_url, page_url
from tests.admin.test_create_key import secret_on


def dialog_url(key, name):
    return f"{page_url(key).removesuffix('change/')}{name}/"


SENT = {"_form_submitted": "on", "reason": "it leaked"}


@pytest.fixture
def key(rows):
    return rows.keys[0]


def test_rotation_gives_a_new_secret_and_lets_the_old_one_work_for_the_overlap(root, key):
    old = key.secrets.get(expires_at=None)
    answer = root.post(dialog_url(key, "rotate"), SENT | {"overlap": "7d"}, headers={"HX-Request": "true"})
    assert answer.headers["HX-Redirect"] == page_url(key, "secret")
    assert secret_on(root.get(page_url(key, "secret"))).startswith(f"tb_live_{key.pk}_")
    assert secret_on(root.get(page_url(key, "secret"))) is None
    old.refresh_from_db()
    assert abs(old.expires_at - timezone.now() - timedelta(days=7)) < timedelta(minutes=1)
    event = AuditEvent.objects.filter(kind="key.rotated", key_id=key.pk).latest("id")
    assert '"reason":"it leaked"' in event.body
    assert '"actor":"admin:alice"' in event.body


def test_the_answer_to_the_dialog_itself_holds_no_secret(root, key):
    answer = root.post(dialog_url(key, "rotate"), SENT | {"overlap": "0"})
    assert answer.status_code == 302
    assert b"tb_" not in answer.content


def test_an_overlap_that_is_not_offered_is_refused(root, key):
    before = key.secrets.count()
    answer = root.post(dialog_url(key, "rotate"), SENT | {"overlap": "9999d"})
    assert "Select a valid choice" in answer.content.decode()
    assert key.secrets.count() == before


def test_revoking_ends_the_key_and_says_why_in_the_record(root, key):
    answer = root.post(dialog_url(key, "revoke"), SENT, follow=True)
    assert texts_of(answer) == [f"{key} is revoked."]
    key.refresh_from_db()
    assert key.revoked_at is not None
    event = AuditEvent.objects.get(kind="key.revoked", key_id=key.pk)
    assert '"reason":"it leaked"' in event.body


def test_a_revoked_key_can_neither_be_rotated_nor_changed(root, key):
    root.post(dialog_url(key, "revoke"), SENT)
    page = root.get(page_url(key))
    assert page.context["actions_detail"] == []
    assert root.post(page_url(key), {"name": "again"}).status_code == 403
    answer = root.post(dialog_url(key, "rotate"), SENT | {"overlap": "0"}, follow=True)
    assert "is revoked: make a new one" in texts_of(answer)[0]


def test_a_key_that_is_gone_leads_back_to_the_list(root, key):
    gone = ApiKey(pk="doesnotexist")
    for name in ("rotate", "revoke"):
        answer = root.post(dialog_url(gone, name), SENT | {"overlap": "0"})
        assert (answer.status_code, answer["Location"]) == (302, list_url(ApiKey))


def test_selected_keys_are_revoked_after_a_question(root, rows):
    chosen = {"action": "revoke_selected", "_selected_action": [key.pk for key in rows.keys], "index": "0"}
    question = root.post(list_url(ApiKey), chosen)
    assert question.status_code == 200
    assert not ApiKey.objects.exclude(revoked_at=None).exists()
    answer = root.post(list_url(ApiKey), form_of(question, "confirm-selected") | {"reason": "incident"}, follow=True)
    assert texts_of(answer) == ["Revoked 2 of the selected keys."]
    assert ApiKey.objects.exclude(revoked_at=None).count() == 2
    assert AuditEvent.objects.filter(kind="key.revoked", body__contains='"reason":"incident"').count() == 2
