"""Who may do what. The permission table is data: a role, a page, an answer."""

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from audit.models import AuditEvent
from tenants.models import ApiKey, Tenant
from tests.admin.pages import add_url, all_admins, form_of, list_url, page_url
from tests.admin.test_actions_change_nothing_on_get import action_urls, content_of_all_tables
from tests.admin.test_rotate_and_revoke_keys import SENT, dialog_url

#: Models that a viewer sees; people and groups are seen with a permission of their own, which bob has.
MODELS = [model for model, _ in all_admins()]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_a_viewer_sees_lists_and_pages_and_changes_nothing(viewer, rows, model):
    Group.objects.create(name="operators")
    row = model.objects.first()
    before = content_of_all_tables()
    assert viewer.get(list_url(model)).status_code == 200
    assert viewer.get(page_url(row)).status_code == 200
    assert viewer.get(page_url(row, "history")).status_code == 200
    assert viewer.get(add_url(model)).status_code == 403
    assert viewer.post(add_url(model), {"name": "x"}).status_code == 403
    assert viewer.post(page_url(row), {"name": "x"}).status_code == 403
    assert viewer.get(page_url(row, "delete")).status_code == 403
    assert viewer.post(page_url(row, "delete"), {"post": "yes"}).status_code == 403
    assert content_of_all_tables() == before


def test_a_viewer_opens_no_dialog_and_sends_none(viewer, rows):
    before = content_of_all_tables()
    for _, url in action_urls():
        assert viewer.get(url).status_code == 403
        assert viewer.post(url, SENT | {"overlap": "0"}).status_code == 403
    assert content_of_all_tables() == before


@pytest.mark.parametrize("action", ["revoke_selected", "delete_selected"])
def test_a_viewer_has_no_actions_on_selected_rows(viewer, rows, action):
    chosen = {"action": action, "_selected_action": [rows.keys[0].pk], "index": "0", "confirmed": "yes", "post": "yes"}
    viewer.post(list_url(ApiKey), chosen)
    assert ApiKey.objects.filter(revoked_at=None).count() == 2


def test_a_viewer_is_offered_no_buttons(viewer, rows):
    page = viewer.get(page_url(rows.keys[0]))
    assert page.context["actions_detail"] == []
    assert "_save" not in page.content.decode()
    assert viewer.get(list_url(ApiKey)).context["actions_row"] == []


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_staff_without_permissions_see_nothing(staff, rows, model):
    nobody = staff()
    assert nobody.get(list_url(model)).status_code == 403
    row = model.objects.first()
    if row is not None:
        assert nobody.get(page_url(row)).status_code == 403
        assert nobody.get(page_url(row, "history")).status_code == 403


def test_staff_without_permissions_have_an_empty_overview(staff, rows):
    page = staff().get(reverse("admin:index"))
    assert page.status_code == 200
    text = page.content.decode()
    assert "tenant-0" not in text
    assert "Refused last" not in text
    assert list_url(Tenant) not in text


def test_callers_of_nowhere_are_sent_to_the_login(rows, db):
    outsider = Client()
    User.objects.create_user("mallory", password="correct horse")  # no staff
    logged_in = Client()
    logged_in.force_login(User.objects.get(username="mallory"))
    for client in (outsider, logged_in):
        for model in MODELS:
            answer = client.get(list_url(model))
            assert answer.status_code == 302
            assert answer["Location"].startswith(reverse("admin:login"))
        answer = client.post(dialog_url(rows.keys[0], "revoke"), SENT)
        assert answer["Location"].startswith(reverse("admin:login"))
    assert not ApiKey.objects.exclude(revoked_at=None).exists()


def test_who_may_change_keys_may_not_change_tenants(staff, rows):
    operator = staff("view_apikey", "change_apikey", "view_tenant")
    assert operator.post(dialog_url(rows.keys[0], "revoke"), SENT).status_code == 302
    assert ApiKey.objects.exclude(revoked_at=None).count() == 1
    assert operator.post(dialog_url(rows.tenants[0], "suspend"), SENT).status_code == 403


def test_a_form_from_another_site_is_refused(rows, db):
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_superuser("erin"))
    assert client.post(dialog_url(rows.keys[0], "revoke"), SENT).status_code == 403
    assert client.post(list_url(ApiKey), {"action": "revoke_selected", "confirmed": "yes"}).status_code == 403
    assert not ApiKey.objects.exclude(revoked_at=None).exists()


def test_who_may_edit_people_cannot_make_themselves_a_superuser(staff, db):
    clerk = staff("view_user", "change_user", "add_user", name="carol")
    carol = User.objects.get(username="carol")
    form = form_of(clerk.get(page_url(carol)), "user_form")
    powers = {"is_superuser": "on", "is_staff": "on", "user_permissions": ["1", "2"], "groups": []}
    assert clerk.post(page_url(carol), form | powers | {"first_name": "Carol"}).status_code == 302
    carol.refresh_from_db()
    assert (carol.first_name, carol.is_superuser, carol.user_permissions.count()) == ("Carol", False, 3)


def test_who_may_edit_people_cannot_touch_a_superuser(staff, root):
    clerk = staff("view_user", "change_user", "delete_user", name="carol")
    alice = User.objects.get(username="alice")
    new = {"usable_password": "true", "password1": "mallory was here", "password2": "mallory was here"}
    assert clerk.post(page_url(alice).replace("change", "password"), new).status_code == 403
    assert clerk.post(page_url(alice), {"username": "mallory"}).status_code == 403
    assert clerk.post(page_url(alice, "delete"), {"post": "yes"}).status_code == 403
    clerk.post(list_url(User), {"action": "delete_selected", "_selected_action": [alice.pk], "post": "yes"})
    assert User.objects.get(username="alice").check_password("correct horse")


@pytest.mark.parametrize("bad", ["0", "-1", "x", "9" * 30, "%00", "..", "a/b", "_5F", "%F0%9F%90%9F"])
def test_a_row_that_is_not_there_breaks_nothing(root, rows, bad):
    before = content_of_all_tables()
    for model in MODELS:
        for page in ("change", "delete", "history", "secret"):
            answer = root.get(f"{list_url(model)}{bad}/{page}/")
            assert answer.status_code in (302, 403, 404), (model, page)
    for model, dialogs in ((ApiKey, ("rotate", "revoke")), (Tenant, ("suspend", "resume", "renew_webhook_secret"))):
        for dialog in dialogs:
            answer = root.post(f"{list_url(model)}{bad}/{dialog}/", SENT | {"overlap": "0"})
            # A NUL is in no key at all; whatever else is not there leads back to the list.
            told = (404, None) if bad == "%00" else (302, list_url(model))
            assert (answer.status_code, answer.headers.get("location")) == told, dialog
    assert content_of_all_tables() == before


def test_the_record_of_a_viewer_is_the_whole_record(viewer, rows):
    assert viewer.get(list_url(AuditEvent)).context["cl"].result_count == AuditEvent.objects.count()
