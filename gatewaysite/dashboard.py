"""The admin's first page: what is used and spent, who is near a budget, what was refused. Four bounded queries.

All figures come from the daily sums, which lag the calls by a second or two; days are UTC days, also for budgets kept
in another time zone, so a budget's share is a good estimate here and exact in `GET /v1/limits`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.db.models import Q, QuerySet, Sum
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from audit.models import AuditEvent
from billing.models import Budget, BudgetScope, Period, UsageRollup
from billing.money import nano_to_text, usd_to_nano

#: Refusals are looked for among this many events, the newest.
EVENTS_LOOKED_AT = 5_000
REFUSALS_SHOWN = 8
TENANTS_SHOWN = 8
MAX_BUDGETS = 5_000
#: A budget without warnings counts as near from here (percent).
NEAR = 80


@dataclass(frozen=True)
class Days:
    """The first days of the present day, week and month (UTC)."""

    today: date

    @property
    def week(self) -> date:
        return self.today - timedelta(days=self.today.weekday())

    @property
    def month(self) -> date:
        return self.today.replace(day=1)


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """What of it the person may see."""
    user = request.user
    days = Days(timezone.now().date())
    if user.has_perm("billing.view_usagerollup"):
        usage = list(_usage_by_tenant(days))
        context["figures"] = _figures(usage)
        context["top_tenants"] = _top_tenants(usage)
        if user.has_perm("billing.view_budget"):
            context["near_budgets"] = _near_budgets(usage)
    if user.has_perm("audit.view_auditevent"):
        context["refusals"] = [_refusal(event) for event in _refused()]
    return context


# -------------------------------------------------------------------------------------------------------------- usage


def _usage_by_tenant(days: Days) -> Iterable[dict[str, Any]]:
    today, week, month = Q(day=days.today), Q(day__gte=days.week), Q(day__gte=days.month)
    rows: QuerySet[Any, Any] = (
        UsageRollup.objects.filter(day__gte=min(days.week, days.month))
        .order_by()
        .values("tenant_id", "tenant__slug")
        .annotate(
            requests_today=Sum("requests", filter=today, default=0),
            failed_today=Sum("failed", filter=today, default=0),
            nano_today=Sum("cost_nano", filter=today, default=0),
            nano_week=Sum("cost_nano", filter=week, default=0),
            requests_month=Sum("requests", filter=month, default=0),
            failed_month=Sum("failed", filter=month, default=0),
            nano_month=Sum("cost_nano", filter=month, default=0),
            unpriced_month=Sum("unpriced", filter=month, default=0),
        )
    )
    return rows


def _figures(usage: list[dict[str, Any]]) -> list[dict[str, str]]:
    def total(name: str) -> int:
        return int(sum(row[name] for row in usage))

    unpriced = total("unpriced_month")
    return [
        _figure("Requests today", f"{total('requests_today'):,}", f"{total('failed_today'):,} not successful"),
        _figure("USD today", _usd(total("nano_today")), "since midnight UTC"),
        _figure("Requests this month", f"{total('requests_month'):,}", f"{total('failed_month'):,} not successful"),
        _figure(
            "USD this month",
            _usd(total("nano_month")),
            f"{unpriced:,} requests without a price" if unpriced else "every request had a price",
        ),
    ]


def _figure(title: str, value: str, note: str) -> dict[str, str]:
    return {"title": title, "value": value, "note": note}


def _top_tenants(usage: list[dict[str, Any]]) -> list[dict[str, str]]:
    most = sorted((row for row in usage if row["requests_month"]), key=lambda row: -row["nano_month"])[:TENANTS_SHOWN]
    return [
        {
            "slug": row["tenant__slug"],
            "url": _tenant_url(row["tenant_id"]),
            "requests": f"{row['requests_month']:,}",
            "usd": _usd(row["nano_month"]),
        }
        for row in most
    ]


# ------------------------------------------------------------------------------------------------------------ budgets


def _near_budgets(usage: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Budgets of whole tenants by day, week and month that reached their first warning, the fullest first."""
    spent = {row["tenant_id"]: row for row in usage}
    found = []
    for budget in _budgets(spent):
        row = spent[budget.tenant_id]
        nano = int(row[{Period.DAY: "nano_today", Period.WEEK: "nano_week"}.get(budget.per, "nano_month")])  # type: ignore[call-overload]
        limit = usd_to_nano(budget.usd)
        percent = nano * 100 // limit if limit else 100
        if percent >= min(budget.warn_at, default=NEAR):
            found.append((percent, budget, row, nano))
    found.sort(key=lambda item: (-item[0], item[2]["tenant__slug"]))
    return [
        {
            "slug": row["tenant__slug"],
            "url": _tenant_url(budget.tenant_id),
            "percent": percent,
            "width": min(percent, 100),
            "spent": _usd(nano),
            "limit": _usd(usd_to_nano(budget.usd)),
            "per": budget.per,
            "full": percent >= 100,
        }
        for percent, budget, row, nano in found[:TENANTS_SHOWN]
    ]


def _budgets(spent: Iterable[int]) -> Iterable[Budget]:
    periods = (Period.DAY, Period.WEEK, Period.MONTH)
    rows = Budget.objects.filter(scope=BudgetScope.TENANT, key=None, per__in=periods).order_by("id")
    wanted = set(spent)
    return [budget for budget in rows[:MAX_BUDGETS] if budget.tenant_id in wanted]


# ----------------------------------------------------------------------------------------------------------- refusals


def _refused() -> Iterable[AuditEvent]:
    newest = AuditEvent.objects.order_by("-id")
    oldest = next(iter(newest.values_list("id", flat=True)[EVENTS_LOOKED_AT - 1 : EVENTS_LOOKED_AT]), "")
    return newest.defer("body").filter(id__gte=oldest, status="refused")[:REFUSALS_SHOWN]


def _refusal(event: AuditEvent) -> dict[str, Any]:
    return {
        "url": reverse("admin:audit_auditevent_change", args=(event.pk,)),
        "time": event.time,
        "tenant": event.tenant,
        "code": event.error_code,
        "http_status": event.http_status,
        "request_id": event.request_id,
    }


def _tenant_url(pk: int) -> str:
    return reverse("admin:tenants_tenant_change", args=(pk,))


def _usd(nano: int) -> str:
    """To the cent from a dollar on, exact below: small amounts are the ones whose digits matter."""
    nano = int(nano)
    return f"{nano / 1_000_000_000:,.2f}" if nano >= 1_000_000_000 or nano == 0 else nano_to_text(nano)
