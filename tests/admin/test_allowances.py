"""Budgets and quotas: what cannot be is said next to its field, also what no constraint of the database would see."""

import pytest

from billing.models import Budget, Quota
from tests.admin.pages import add_url, form_of, page_url


def add(client, model, **given):
    form = form_of(client.get(add_url(model)), f"{model._meta.model_name}_form")
    return client.post(add_url(model), form | given)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("usd", "-1", "greater than or equal to 0"),
        ("usd", "9000001", "less than or equal to 9000000"),
        ("usd", "0.0000000001", "no more than 9 decimal places"),
        ("usd", "NaN", "Enter a number"),
        ("timezone", "Mars/Olympus", "Write a time zone"),
        ("timezone", "../etc/passwd", "Write a time zone"),
        ("per", "year", "Select a valid choice"),
        ("warn_at", "0", "whole percentages"),
        ("warn_at", "101", "whole percentages"),
        ("warn_at", "80;95", "whole percentages"),
        ("warn_at", "²", "whole percentages"),
        ("warn_at", ", ".join(map(str, range(1, 30))), "At most 20"),
    ],
)
def test_a_budget_that_cannot_be_is_refused(root, rows, field, value, said):
    answer = add(root, Budget, **({"tenant": rows.tenants[0].pk, "usd": "1", "per": "day"} | {field: value}))
    assert answer.status_code == 200
    assert said in answer.content.decode()
    assert Budget.objects.filter(per="day").count() == 0


def test_warnings_are_kept_sorted_and_once(root, rows):
    given = {"tenant": rows.tenants[0].pk, "usd": "1", "per": "day", "warn_at": "95, 50,95"}
    assert add(root, Budget, **given).status_code == 302
    assert Budget.objects.get(per="day").warn_at == [50, 95]


def test_the_key_of_a_budget_is_one_of_its_tenant(root, rows):
    given = {"tenant": rows.tenants[0].pk, "key": rows.keys[1].pk, "usd": "1", "per": "day", "scope": "key"}
    assert "belongs to another tenant" in add(root, Budget, **given).content.decode()
    given |= {"key": rows.keys[0].pk, "scope": "tenant"}
    assert "has the scope key or user" in add(root, Budget, **given).content.decode()


def test_the_same_budget_twice_is_refused(root, rows):
    again = {"tenant": rows.tenants[0].pk, "usd": "5", "per": "month"}
    assert "already exists" in add(root, Budget, **again).content.decode()
    assert Budget.objects.filter(tenant=rows.tenants[0], key=None).count() == 1


@pytest.mark.parametrize(("row", "form_id"), [("tenants", "tenant_form"), ("keys", "apikey_form")])
def test_the_same_budget_twice_on_its_owners_page_is_refused(root, rows, row, form_id):
    owner = getattr(rows, row)[0]
    form = form_of(root.get(page_url(owner)), form_id)
    twin = {name.replace("budgets-0", "budgets-1"): value for name, value in form.items() if "budgets-0" in name}
    count = Budget.objects.count()
    answer = root.post(page_url(owner), form | twin | {"budgets-TOTAL_FORMS": "2", "budgets-1-id": ""})
    assert answer.status_code == 200
    assert "Twice the same" in answer.content.decode()
    assert Budget.objects.count() == count


def test_the_same_quota_twice_on_its_owners_page_is_refused(root, rows):
    form = form_of(root.get(page_url(rows.tenants[0])), "tenant_form")
    twin = {name.replace("quotas-0", "quotas-1"): value for name, value in form.items() if "quotas-0" in name}
    answer = root.post(page_url(rows.tenants[0]), form | twin | {"quotas-TOTAL_FORMS": "2", "quotas-1-id": ""})
    assert "Twice the same" in answer.content.decode()


def test_a_quota_that_takes_the_place_of_a_deleted_one_is_not_twice_the_same(root, rows):
    form = form_of(root.get(page_url(rows.tenants[0])), "tenant_form")
    twin = {name.replace("quotas-0", "quotas-1"): value for name, value in form.items() if "quotas-0" in name}
    changes = {"quotas-TOTAL_FORMS": "2", "quotas-1-id": "", "quotas-0-DELETE": "on", "quotas-1-tokens": "77"}
    assert root.post(page_url(rows.tenants[0]), form | twin | changes).status_code == 302
    assert [quota.tokens for quota in rows.tenants[0].quotas.all()] == [77]


@pytest.mark.parametrize("owners", [(), ("tier", "tenant"), ("tenant", "key"), ("tier", "tenant", "key")])
def test_a_quota_has_exactly_one_owner(root, rows, owners):
    all_owners = {"tier": rows.tiers[0].pk, "tenant": rows.tenants[0].pk, "key": rows.keys[0].pk}
    given = {name: all_owners[name] if name in owners else "" for name in all_owners}
    answer = add(root, Quota, tokens="5", per="week", **given)
    assert "Choose exactly one of tier, tenant and key" in answer.content.decode()


@pytest.mark.parametrize("tokens", ["0", "-1", str(2**53), "9" * 30])
def test_a_quota_stays_exact(root, rows, tokens):
    answer = add(root, Quota, tenant=rows.tenants[0].pk, tokens=tokens, per="week")
    assert "Ensure this value is" in answer.content.decode()


def test_the_owner_of_a_budget_and_a_quota_is_chosen_once(root, rows):
    for model, form_id in ((Budget, "budget_form"), (Quota, "quota_form")):
        row = model.objects.filter(tenant=rows.tenants[0], key=None).get()
        form = form_of(root.get(page_url(row)), form_id)
        assert (
            root.post(page_url(row), form | {"tenant": rows.tenants[1].pk, "key": rows.keys[1].pk}).status_code == 302
        )
        row.refresh_from_db()
        assert (row.tenant, row.key) == (rows.tenants[0], None)
