"""The first page: what is used and spent, who is near a budget, what was refused, from a handful of queries."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from billing.models import Budget, UsageRollup
from gatewaysite import dashboard
from tenants.services import create_tenant
from tests.admin.pages import page_url
from tests.admin.rows import add_event

WEDNESDAY = datetime(2026, 7, 15, 13, 0, tzinfo=UTC)
CENT = 10_000_000


@pytest.fixture(autouse=True)
def now(monkeypatch):
    monkeypatch.setattr("gatewaysite.dashboard.timezone.now", lambda: WEDNESDAY)


def use(tenant, day, requests=1, nano=CENT, **sums):
    UsageRollup.objects.create(
        day=day, tenant=tenant, model=f"m{UsageRollup.objects.count()}", requests=requests, cost_nano=nano, **sums
    )


def look(client):
    with CaptureQueriesContext(connection) as captured:
        page = client.get(reverse("admin:index"))
    assert page.status_code == 200
    figures = {figure["title"]: figure["value"] for figure in page.context["figures"]}
    return page, figures, [query["sql"] for query in captured]


def test_it_works_without_any_rows(root):
    page, figures, _ = look(root)
    assert figures == {"Requests today": "0", "USD today": "0.00", "Requests this month": "0", "USD this month": "0.00"}
    text = page.content.decode()
    assert "No tenant has reached a warning" in text
    assert "Nothing was used this month" in text
    assert "Nothing was refused lately" in text


def test_today_and_this_month_are_utc_days_and_nothing_older(root):
    tenant = create_tenant(slug="acme", name="Acme", actor="test")
    use(tenant, WEDNESDAY.date(), 3, 1_234 * CENT, failed=1)
    use(tenant, WEDNESDAY.date() - timedelta(days=1), 5, CENT)
    use(tenant, datetime(2026, 7, 1).date(), 7, CENT, unpriced=2)  # noqa: DTZ001
    use(tenant, datetime(2026, 6, 30).date(), 1000, 1000 * CENT)  # noqa: DTZ001
    page, figures, _ = look(root)
    assert figures == {
        "Requests today": "3",
        "USD today": "12.34",
        "Requests this month": "15",
        "USD this month": "12.36",
    }
    assert "2 requests without a price" in page.content.decode()
    assert [row["slug"] for row in page.context["top_tenants"]] == ["acme"]


def test_the_week_that_began_last_month_counts_for_weekly_budgets_only(root, monkeypatch):
    monkeypatch.setattr("gatewaysite.dashboard.timezone.now", lambda: datetime(2026, 7, 1, 9, tzinfo=UTC))
    tenant = create_tenant(slug="acme", name="Acme", actor="test")
    Budget.objects.create(tenant=tenant, usd="1", per="week")
    Budget.objects.create(tenant=tenant, usd="1", per="month")
    use(tenant, datetime(2026, 6, 29).date(), 1, 95 * CENT)  # noqa: DTZ001
    page, figures, _ = look(root)
    assert figures["USD this month"] == "0.00"
    assert [(budget["per"], budget["percent"]) for budget in page.context["near_budgets"]] == [("week", 95)]


def test_tenants_are_near_their_budget_from_its_first_warning_on(root):
    for slug, spent, warn_at in (("far", 79, [80]), ("near", 80, [80, 95]), ("over", 140, [80]), ("early", 50, [50])):
        tenant = create_tenant(slug=slug, name=slug, actor="test")
        Budget.objects.create(tenant=tenant, usd="1", per="day", warn_at=warn_at)
        use(tenant, WEDNESDAY.date(), 1, spent * CENT)
    page, _, _ = look(root)
    near = page.context["near_budgets"]
    assert [(budget["slug"], budget["percent"]) for budget in near] == [("over", 140), ("near", 80), ("early", 50)]
    assert near[0]["full"]
    assert near[0]["width"] == 100
    assert page_url(tenant) in page.content.decode()


def test_a_budget_of_nothing_is_full(root):
    tenant = create_tenant(slug="none", name="None", actor="test")
    Budget.objects.create(tenant=tenant, usd="0", per="month")
    use(tenant, WEDNESDAY.date(), 1, 0)
    page, _, _ = look(root)
    assert [budget["percent"] for budget in page.context["near_budgets"]] == [100]


def test_refusals_are_the_newest_first_and_escaped(root, rows):
    add_event("tenant-0", "req_new", "refused", at=WEDNESDAY, error_code="<b>x</b>")
    page, _, _ = look(root)
    assert page.context["refusals"][0]["request_id"] == "req_new"
    assert "<b>x</b>" not in page.content.decode()
    assert [event["code"] for event in page.context["refusals"]] == ["<b>x</b>", "budget_exceeded"]


def test_refusals_are_looked_for_among_the_newest_events_only(root, rows, monkeypatch):
    monkeypatch.setattr(dashboard, "EVENTS_LOOKED_AT", 2)
    for number in range(2):
        add_event("tenant-0", f"req_later_{number}", "success", at=WEDNESDAY + timedelta(days=400))
    page, _, _ = look(root)
    assert page.context["refusals"] == []


def test_the_figures_take_four_queries_however_much_there_is(root, rows):
    def own(statements):
        return [sql for sql in statements if re.search(r"billing_|audit_auditevent|tenants_", sql)]

    _, _, few = look(root)
    rows.add(10)
    for tenant in rows.tenants:
        use(tenant, WEDNESDAY.date())
    _, _, many = look(root)
    assert len(own(few)) == len(own(many)) == 4, own(many)


def test_small_sums_keep_their_digits(root):
    use(create_tenant(slug="acme", name="Acme", actor="test"), WEDNESDAY.date(), 1, 105_000)
    _, figures, _ = look(root)
    assert figures["USD today"] == "0.000105"


def test_one_sees_what_one_may_see(staff, rows):
    page = staff("view_usagerollup").get(reverse("admin:index"))
    assert "figures" in page.context
    assert "near_budgets" not in page.context
    assert "refusals" not in page.context
