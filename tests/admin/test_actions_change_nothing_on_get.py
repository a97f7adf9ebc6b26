"""Every action of every admin class is a dialog: opening it by GET, which a link in a mail can do, changes nothing."""

from django.apps import apps
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.admin.pages import all_admins

KINDS = ("actions_list", "actions_row", "actions_detail", "actions_submit_line")
#: Tables that a look may write: who is logged in, and when.
WRITTEN_BY_A_LOOK = {"django_session"}


def unfold_actions():
    for model, admin_class in all_admins():
        for kind in KINDS:
            for action in getattr(admin_class, f"_get_base_{kind}")():
                yield model, admin_class, kind, action


def action_urls():
    for model, _, kind, action in unfold_actions():
        row = model._default_manager.first()
        yield action, reverse(f"admin:{action.action_name}", args=() if kind == "actions_list" else (row.pk,))


def content_of_all_tables():
    return {
        model._meta.db_table: list(model._base_manager.order_by("pk").values_list())
        for model in apps.get_models()
        if model._meta.db_table not in WRITTEN_BY_A_LOOK
    }


def test_there_are_actions_to_look_at():
    assert {action.action_name for _, _, _, action in unfold_actions()} >= {
        "tenants_apikey_rotate",
        "tenants_apikey_revoke",
        "tenants_tenant_suspend",
        "tenants_tenant_renew_webhook_secret",
        "webhooks_endpoint_renew_secret",
    }


def test_every_action_is_a_dialog_for_those_who_may_change():
    for model, _, kind, action in unfold_actions():
        assert kind != "actions_submit_line", f"{model}: a button of a form is no dialog"
        assert action.dialog, f"{action.action_name} runs on GET: declare it with audit.dialogs.dialog_action"
        assert action.method.allowed_permissions == ["change"], action.action_name


def test_no_get_changes_a_row(root, rows):
    before = content_of_all_tables()
    for action, url in action_urls():
        for query in ({}, {"_form_submitted": "on", "overlap": "0", "reason": "x"}):
            with CaptureQueriesContext(connection) as captured:
                answer = root.get(url, query)
            assert answer.status_code == 200, action.action_name
            assert "<form" in answer.content.decode()
            writes = [query["sql"] for query in captured if query["sql"].split()[0] in ("INSERT", "UPDATE", "DELETE")]
            assert [sql for sql in writes if "django_session" not in sql] == [], action.action_name
    assert content_of_all_tables() == before


def test_no_head_changes_a_row(root, rows):
    before = content_of_all_tables()
    for _, url in action_urls():
        root.head(url)
    assert content_of_all_tables() == before


def test_a_post_without_its_form_changes_nothing(root, rows):
    """What a page of somebody else could send; the cross-site token is checked on top of it."""
    before = content_of_all_tables()
    for _, url in action_urls():
        assert root.post(url).status_code == 200
    assert content_of_all_tables() == before


def test_actions_on_selected_rows_ask_first(root, rows):
    """Django's own kind of action runs on POST only; ours that change something ask in a second one."""
    before = content_of_all_tables()
    for model, admin_class in all_admins():
        for name in (*(admin_class.actions or ()), "delete_selected"):
            row = model._default_manager.first()
            url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
            if row is None:
                continue
            root.get(url, {"action": name, "_selected_action": row.pk, "index": "0"}, follow=True)
            root.post(url, {"action": name, "_selected_action": row.pk, "index": "0"})
    assert content_of_all_tables() == before
