"""Tenants, tiers and keys with what they may spend: the admin classes of tenants.admin, extended with money."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import BigIntegerField, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils import timezone

from audit.mixins import AuditedInline
from billing.allowance_forms import (
    AllowanceFormSet,
    BudgetForm,
    KeyBudgetForm,
    KeyBudgetFormSet,
    QuotaForm,
    QuotaFormSet,
)
from billing.models import Budget, Quota, UsageRollup
from billing.money import nano_to_text
from tenants.admin import TenantAdmin, TierAdmin
from tenants.key_admin import ApiKeyAdmin
from tenants.models import ApiKey, Tenant, Tier


class QuotaInline(AuditedInline):
    model = Quota
    form = QuotaForm
    formset = QuotaFormSet
    audit_name = "quotas"
    fields = ("tokens", "per", "timezone")
    hide_title = True
    tab = True


class BudgetInline(AuditedInline):
    """Budgets of the tenant; those of single keys are on the keys' pages."""

    model = Budget
    form = BudgetForm
    formset = AllowanceFormSet
    audit_name = "budgets"
    fields = ("scope", "usd", "per", "warn_at", "timezone")
    hide_title = True
    tab = True

    def get_queryset(self, request: HttpRequest) -> QuerySet[Budget]:
        rows: QuerySet[Budget] = super().get_queryset(request).filter(key=None)
        return rows


class KeyBudgetInline(AuditedInline):
    model = Budget
    form = KeyBudgetForm
    formset = KeyBudgetFormSet
    audit_name = "budgets"
    fields = ("scope", "usd", "per", "warn_at", "timezone")
    hide_title = True
    tab = True


class TierWithQuotasAdmin(TierAdmin):
    inlines = (QuotaInline,)


class KeyWithMoneyAdmin(ApiKeyAdmin):
    inlines = (*ApiKeyAdmin.inlines, KeyBudgetInline, QuotaInline)


class TenantWithMoneyAdmin(TenantAdmin):
    """Shows what the tenant used this month (UTC), from the daily sums."""

    list_display = (*TenantAdmin.list_display, "cost_this_month")
    inlines = (BudgetInline, QuotaInline, *TenantAdmin.inlines)
    readonly_fields = (*TenantAdmin.readonly_fields, "usage_this_month")
    fieldsets = (
        (None, {"fields": (*TenantAdmin.fieldsets[0][1]["fields"], "usage_this_month")}),
        *TenantAdmin.fieldsets[1:],
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tenant]:
        month = UsageRollup.objects.filter(tenant=OuterRef("pk"), day__gte=_first_of_month()).order_by()
        cost = month.values("tenant").annotate(sum=Sum("cost_nano")).values("sum")
        spent = Coalesce(Subquery(cost, output_field=BigIntegerField()), 0)
        rows: QuerySet[Tenant] = super().get_queryset(request).annotate(month_nano=spent)
        return rows

    @admin.display(description="USD this month")
    def cost_this_month(self, tenant: Tenant) -> str:
        return nano_to_text(int(tenant.month_nano))  # type: ignore[attr-defined]

    @admin.display(description="used this month")
    def usage_this_month(self, tenant: Tenant) -> str:
        sums = UsageRollup.objects.filter(tenant=tenant, day__gte=_first_of_month()).aggregate(
            requests=Sum("requests", default=0),
            failed=Sum("failed", default=0),
            tokens_in=Sum("input_tokens", default=0),
            tokens_out=Sum("output_tokens", default=0),
            nano=Sum("cost_nano", default=0),
            unpriced=Sum("unpriced", default=0),
        )
        text = (
            f"{sums['requests']:,} requests ({sums['failed']:,} not successful), {sums['tokens_in']:,} tokens in, "
            f"{sums['tokens_out']:,} out, {nano_to_text(int(sums['nano']))} USD"
        )
        return text + (f", {sums['unpriced']:,} requests without a price" if sums["unpriced"] else "")


def _first_of_month() -> Any:
    return timezone.now().date().replace(day=1)


def register() -> None:
    """In the place of the classes without money."""
    for model, admin_class in (
        (Tier, TierWithQuotasAdmin),
        (Tenant, TenantWithMoneyAdmin),
        (ApiKey, KeyWithMoneyAdmin),
    ):
        admin.site.unregister(model)
        admin.site.register(model, admin_class)
