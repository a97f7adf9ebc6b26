"""Every change through the admin is one audit event with before and after, who and from where, in its transaction."""

import json

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.urls import reverse

from audit.models import AuditEvent
from billing.models import Budget, Price, Quota
from proxy.models import ModelAlias, Provider
from tenants.config_version import current_config_version
from tenants.models import ApiKey, Tenant, Tier
from tests.admin.conftest import texts_of
from tests.admin.pages import add_url, form_of, list_url, page_url
from webhooks.models import Endpoint

FORMS = {
    ApiKey: ("apikey_form", {"name": "renamed"}),
    Budget: ("budget_form", {"usd": "11"}),
    Endpoint: ("endpoint_form", {"events": "request.*"}),
    ModelAlias: ("modelalias_form", {"max_output_tokens": "100"}),
    Price: ("price_form", {"input": "3"}),
    Provider: ("provider_form", {"rpm": "5"}),
    Quota: ("quota_form", {"tokens": "5"}),
    Tenant: ("tenant_form", {"name": "Renamed"}),
    Tier: ("tier_form", {"rpm": "5"}),
}


def events_since(last):
    return [json.loads(event.body) for event in AuditEvent.objects.filter(id__gt=last).order_by("id")]


def last_id():
    return AuditEvent.objects.latest("id").pk


def save(client, row, **changes):
    form_id, _ = FORMS[type(row)]
    answer = client.post(page_url(row), form_of(client.get(page_url(row)), form_id) | changes)
    assert answer.status_code == 302, answer.context["errors"]


@pytest.mark.parametrize("model", FORMS, ids=lambda model: model.__name__)
def test_a_change_is_one_event_with_before_and_after(root, rows, model):
    row, last, version = model.objects.first(), last_id(), current_config_version()
    save(root, row, **FORMS[model][1])
    [event] = events_since(last)
    assert event["kind"].endswith(".updated")
    assert (event["actor"], event["address"]) == ("admin:alice", "127.0.0.1")
    different = {name for name, value in event["after"].items() if event["before"].get(name) != value}
    assert different <= {*FORMS[model][1], "limits"}
    assert different
    assert current_config_version() == version + 1


@pytest.mark.parametrize("model", FORMS, ids=lambda model: model.__name__)
def test_saving_without_a_change_records_nothing(root, rows, model):
    last, version = last_id(), current_config_version()
    save(root, model.objects.first())
    assert events_since(last) == []
    assert current_config_version() == version


def test_what_belongs_to_a_tenant_is_recorded_in_its_chain(root, rows):
    budget, quota = Budget.objects.filter(key=None).earliest("id"), Quota.objects.earliest("id")
    for row in (rows.tenants[0], rows.keys[0], rows.endpoints[0], budget, quota):
        last = last_id()
        save(root, row, **FORMS[type(row)][1])
        assert [event["tenant"] for event in events_since(last)] == ["tenant-0"], row


def test_a_new_row_has_no_before_and_a_deleted_one_no_after(root, rows):
    last = last_id()
    form = form_of(root.get(add_url(Tier)), "tier_form") | {"name": "gold", "rpm": "900"}
    assert root.post(add_url(Tier), form).status_code == 302
    gold = Tier.objects.get(name="gold")
    assert root.post(page_url(gold, "delete"), {"post": "yes"}).status_code == 302
    made, deleted = events_since(last)
    assert (made["kind"], made["before"], made["after"]["rpm"]) == ("object.created", None, 900)
    assert (deleted["kind"], deleted["before"]["rpm"], deleted["after"]) == ("object.deleted", 900, None)
    assert made["subject"] == deleted["subject"] == "tier:gold"


def test_rows_edited_with_their_owner_are_part_of_its_event(root, rows):
    last = last_id()
    save(root, rows.tenants[0], **{"budgets-0-usd": "25", "quotas-0-DELETE": "on"})
    [event] = events_since(last)
    assert event["kind"] == "tenant.updated"
    assert [budget["usd"] for budget in event["before"]["budgets"]][:1] == ["10"]
    assert [budget["usd"] for budget in event["after"]["budgets"]][:1] == ["25"]
    assert (len(event["before"]["quotas"]), event["after"]["quotas"]) == (1, [])


def test_a_change_of_what_a_key_may_spend_reaches_workers_that_know_the_key(root, rows):
    key = rows.keys[0]
    for row, changes in ((key, {"quotas-0-tokens": "7"}), (Budget.objects.get(key=key), {"usd": "7"})):
        save(root, row, **changes)
        key.refresh_from_db()
        assert key.changed_in == current_config_version()


def test_a_tenant_made_here_has_a_secret_for_its_deliveries(root, rows):
    last = last_id()
    form = form_of(root.get(add_url(Tenant)), "tenant_form") | {"slug": "fresh", "name": "Fresh"}
    assert root.post(add_url(Tenant), form).status_code == 302
    assert Tenant.objects.get(slug="fresh").webhook_secret.startswith("whsec_")
    [event] = events_since(last)
    assert (event["kind"], event["subject"], event["tenant"]) == ("tenant.created", "tenant:fresh", "fresh")


def test_rows_deleted_together_are_recorded_each(root, rows):
    last = last_id()
    budgets = Budget.objects.filter(key=None)
    chosen = {"action": "delete_selected", "_selected_action": [budget.pk for budget in budgets], "index": "0"}
    question = root.post(list_url(Budget), chosen)
    assert question.status_code == 200
    root.post(list_url(Budget), {**chosen, "post": "yes"})
    assert [event["kind"] for event in events_since(last)] == ["object.deleted"] * 2
    assert not Budget.objects.filter(key=None).exists()


def test_a_change_that_fails_in_the_middle_leaves_nothing(root, rows, monkeypatch):
    last = last_id()
    monkeypatch.setattr("audit.mixins.record", lambda events: 1 / 0)
    form = form_of(root.get(page_url(rows.tiers[0])), "tier_form")
    with pytest.raises(ZeroDivisionError):
        root.post(page_url(rows.tiers[0]), form | {"rpm": "1"})
    rows.tiers[0].refresh_from_db()
    assert rows.tiers[0].rpm == 100
    assert events_since(last) == []


def test_people_and_what_they_may_do_are_recorded_without_passwords(root, rows):
    last = last_id()
    given = {"username": "dave", "usable_password": "true", "password1": "correct horse", "password2": "correct horse"}
    assert root.post(add_url(User), given).status_code == 302
    dave, group = User.objects.get(username="dave"), Group.objects.create(name="operators")
    form = form_of(root.get(page_url(dave)), "user_form")
    assert root.post(page_url(dave), form | {"is_staff": "on", "groups": [group.pk]}).status_code == 302
    another = {"usable_password": "true", "password1": "another battery", "password2": "another battery"}
    assert root.post(page_url(dave).replace("change", "password"), another).status_code == 302
    events = events_since(last)
    assert [event["subject"] for event in events] == ["user:dave"] * 3
    assert events[1]["after"]["groups"] == ["operators"]
    assert events[2]["after"]["secrets_changed"] == ["password"]
    assert "battery" not in json.dumps(events)
    assert "md5$" not in json.dumps(events)


def test_a_change_of_a_group_names_its_permissions(root, rows):
    group, last = Group.objects.create(name="operators"), last_id()
    permission = Permission.objects.get(codename="view_tenant")
    form = form_of(root.get(page_url(group)), "group_form")
    assert root.post(page_url(group), form | {"permissions": [permission.pk]}).status_code == 302
    assert events_since(last)[0]["after"]["permissions"] == ["tenants.view_tenant"]


def test_suspending_and_resuming_a_tenant_says_why(root, rows):
    tenant, last = rows.tenants[0], last_id()
    for name, state in (("suspend", "suspended"), ("resume", "active")):
        url = page_url(tenant).replace("change", name)
        answer = root.post(url, {"_form_submitted": "on", "reason": f"to {name}"}, follow=True)
        assert texts_of(answer) == [f"tenant-0 is {state}."]
    assert [(event["after"]["state"], event["reason"]) for event in events_since(last)] == [
        ("suspended", "to suspend"),
        ("active", "to resume"),
    ]


def test_ones_own_new_password_is_recorded_and_a_wrong_try_is_not(root, db):
    new = {"new_password1": "another battery", "new_password2": "another battery"}
    url = reverse("admin:password_change")
    assert root.post(url, new | {"old_password": "wrong"}).status_code == 200
    assert not AuditEvent.objects.exists()
    assert root.post(url, new | {"old_password": "correct horse"}).status_code == 302
    [event] = events_since("")
    assert (event["actor"], event["subject"], event["after"]["secrets_changed"]) == (
        "admin:alice",
        "user:alice",
        ["password"],
    )
    assert "battery" not in json.dumps(event)
