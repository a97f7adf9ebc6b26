"""Money in the admin: prices, budgets and quotas are edited; the ledger and its sums are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.contrib.filters.admin import (
    ChoicesDropdownFilter,
    DropdownFilter,
    RangeDateFilter,
)
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectWidget

from audit.admin import MAX_FOUND, STATUS_COLOURS, STATUSES
from audit.lists import ByRelatedId, is_row_id
from audit.newest_rows import NewestRowsAdmin, ReadOnlyAdmin, UntilFilter
from billing import tenant_admin
from billing.allowance_forms import BudgetForm, PlainAmounts, QuotaForm
from billing.models import Budget, LedgerEntry, Price, Quota, UsageRollup
from billing.money import nano_to_text, plain
from tenants.config_admin import ConfigAdmin

tenant_admin.register()

RATES = ("input", "output", "cache_read", "cache_write", "cache_write_1h")


def shown_amount(name: str, description: str) -> Callable[[Any], str]:
    """A column that shows an amount without trailing zeros."""

    @admin.display(description=description, ordering=name)
    def show(row: Any) -> str:
        amount = getattr(row, name)
        return "–" if amount is None else str(plain(amount))

    show.__name__ = f"{name}_amount"
    return show


SHOWN_RATES = tuple(shown_amount(name, name.replace("_", " ")) for name in RATES[:-1])


class PriceForm(PlainAmounts, forms.ModelForm):
    """`known_providers` give the names to choose from; the layer that knows providers adds itself."""

    known_providers: ClassVar[list[Callable[[], Iterable[str]]]] = []

    class Meta:
        model = Price
        fields = ("provider", "model", *RATES, "per", "effective_from")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.known_providers or "provider" not in self.fields:
            return
        names = dict.fromkeys(name for names in self.known_providers for name in names())
        if self.instance.provider:  # prices outlive providers
            names[self.instance.provider] = None
        self.fields["provider"] = forms.ChoiceField(
            choices=[("", "Select value"), *((name, name) for name in names)], widget=UnfoldAdminSelectWidget
        )


@admin.register(Price)
class PriceAdmin(ConfigAdmin[Price]):
    instead_of_deletion = "Add a price with a later date instead: the newest that has begun holds."

    form = PriceForm
    list_display = ("provider", "model", *SHOWN_RATES, "per_tokens", "effective_from", "has_begun")
    search_fields = ("provider", "model")
    search_help_text = "Part of a provider's or model's name."
    ordering = ("provider", "model", "-effective_from")
    fieldsets = (
        (None, {"fields": (("provider", "model"), ("effective_from", "per"))}),
        (
            "USD per that many tokens",
            {"fields": (("input", "output"), ("cache_read", "cache_write", "cache_write_1h"))},
        ),
    )

    @admin.display(description="per tokens", ordering="per")
    def per_tokens(self, price: Price) -> str:
        return f"{price.per:,}"

    @admin.display(description="in force", boolean=True)
    def has_begun(self, price: Price) -> bool:
        return price.effective_from <= timezone.now().date()

    def deletion_blockers(self, row: Price) -> list[str]:
        """Charged calls name their price; the sums by day and provider say whether there can be any."""
        charged = UsageRollup.objects.filter(day__gte=row.effective_from, provider=row.provider)
        return ["charged calls"] if self.has_begun(row) and charged.exists() else []


class AllowanceAdmin(ConfigAdmin[Any]):
    """What budgets and quotas share: the owner is chosen once."""

    owners: ClassVar[tuple[str, ...]] = ("tenant", "key")
    ordering = ("-id",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        names = super().get_readonly_fields(request, obj)
        return [*names, *self.owners] if obj else names

    def audit_tenant(self, row: Any) -> str:
        if row.tenant is not None:
            return str(row.tenant.slug)
        return str(row.key.tenant.slug) if row.key is not None else ""

    def audit_key(self, row: Any) -> str:
        return row.key_id or ""

    def changed_key(self, row: Any) -> str:
        return row.key_id or ""


@admin.register(Budget)
class BudgetAdmin(AllowanceAdmin):
    form = BudgetForm
    list_display = ("tenant", "key", "scope", shown_amount("usd", "USD"), "per", "timezone", "warn_at_text")
    list_display_links = ("tenant",)
    list_select_related = ("tenant", "key")
    list_filter = (
        ("tenant", ByRelatedId),
        ("scope", ChoicesDropdownFilter),
        ("per", ChoicesDropdownFilter),
    )
    search_fields = ("tenant__slug", "key__name", "key__id__exact")
    search_help_text = "Part of a tenant's slug or key's name, or a whole key id."
    autocomplete_fields = ("tenant", "key")
    fieldsets = ((None, {"fields": (("tenant", "key"), ("usd", "per", "timezone"), ("scope", "warn_at"))}),)

    @admin.display(description="warn at")
    def warn_at_text(self, budget: Budget) -> str:
        return ", ".join(f"{percent} %" for percent in budget.warn_at)


@admin.register(Quota)
class QuotaAdmin(AllowanceAdmin):
    owners = ("tier", "tenant", "key")

    form = QuotaForm
    list_display = ("owner", "tokens_text", "per", "timezone")
    list_select_related = ("tier", "tenant", "key")
    list_filter = (("tenant", ByRelatedId), ("per", ChoicesDropdownFilter))
    search_fields = ("tenant__slug", "tier__name", "key__name", "key__id__exact")
    search_help_text = "Part of a tenant's slug, a tier's or key's name, or a whole key id."
    autocomplete_fields = ("tier", "tenant", "key")
    fieldsets = ((None, {"fields": (("tier", "tenant", "key"), ("tokens", "per", "timezone"))}),)

    @admin.display(description="tokens", ordering="tokens")
    def tokens_text(self, quota: Quota) -> str:
        return f"{quota.tokens:,}"

    @admin.display(description="owner")
    def owner(self, quota: Quota) -> str:
        if quota.tier is not None:
            return f"tier {quota.tier}"
        return f"tenant {quota.tenant}" if quota.tenant is not None else f"key {quota.key}"


class LedgerStatusFilter(DropdownFilter):
    title = "status"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(status, status) for status in STATUSES if status != "refused"]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(status=self.value()) if self.value() in STATUSES else queryset


@admin.register(LedgerEntry)
class LedgerEntryAdmin(NewestRowsAdmin[LedgerEntry]):
    newest_by = "event_id"
    newest_by_of_tenant = "time"
    tenant_parameter = "tenant__id__exact"
    tenant_lookup = "tenant_id"

    list_display = (
        "time",
        "request_id",
        "tenant",
        "key",
        "model_requested",
        "provider",
        "status_badge",
        "tokens",
        "usd",
    )
    list_select_related = ("tenant", "key")
    list_filter = (("tenant", ByRelatedId), UntilFilter, LedgerStatusFilter)
    search_fields = ("event_id__exact",)
    search_help_text = "A request id or an event's id, whole."
    fieldsets = (
        (None, {"fields": (("time", "status"), ("tenant", "key", "user"), ("request_id", "event_id"))}),
        (
            "Call",
            {"fields": (("endpoint", "model_requested"), ("provider", "model_served"), ("fallback_used", "cached"))},
        ),
        (
            "Tokens",
            {
                "fields": (
                    ("input_tokens", "output_tokens", "reasoning_tokens"),
                    ("cache_read_tokens", "cache_write_tokens"),
                    "usage_source",
                )
            },
        ),
        ("Cost", {"fields": (("usd", "price_id"), "latency_ms")}),
    )
    readonly_fields = ("usd",)

    def tenant_value(self, text: str) -> Any:
        """What cannot be an id finds nothing."""
        return int(text) if is_row_id(text) else -1

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[LedgerEntry], search_term: str
    ) -> tuple[QuerySet[LedgerEntry], bool]:
        """Found by the index of each id, one after the other: a walk along the order of the page could take long."""
        term = search_term.strip()
        if not term:
            return queryset, False
        ids = [
            *LedgerEntry.objects.filter(request_id=term).values_list("pk", flat=True)[:MAX_FOUND],
            *LedgerEntry.objects.filter(event_id=term).values_list("pk", flat=True),
        ]
        return queryset.filter(pk__in=ids), False

    @display(description="status", label=STATUS_COLOURS)
    def status_badge(self, entry: LedgerEntry) -> str:
        return entry.status

    @admin.display(description="tokens in / out")
    def tokens(self, entry: LedgerEntry) -> str:
        return f"{entry.input_tokens:,} / {entry.output_tokens:,}"

    @admin.display(description="USD")
    def usd(self, entry: LedgerEntry) -> str:
        return "no price" if entry.cost_nano is None else nano_to_text(entry.cost_nano)


@admin.register(UsageRollup)
class UsageRollupAdmin(ReadOnlyAdmin[UsageRollup]):
    list_display = ("day", "tenant", "key_ref", "model", "provider", "requests", "failed", "tokens", "unpriced", "usd")
    list_select_related = ("tenant",)
    list_filter = (("tenant", ByRelatedId), ("day", RangeDateFilter))
    ordering = ("-day", "-id")
    fieldsets = (
        (None, {"fields": (("day", "tenant", "key_ref"), ("model", "provider"))}),
        ("Calls", {"fields": (("requests", "failed"), ("fallbacks", "cache_hits", "unpriced"))}),
        (
            "Tokens",
            {
                "fields": (
                    ("input_tokens", "output_tokens", "reasoning_tokens"),
                    ("cache_read_tokens", "cache_write_tokens"),
                )
            },
        ),
        ("Cost", {"fields": ("usd",)}),
    )
    readonly_fields = ("usd",)

    @admin.display(description="tokens in / out")
    def tokens(self, rollup: UsageRollup) -> str:
        return f"{rollup.input_tokens:,} / {rollup.output_tokens:,}"

    @admin.display(description="USD")
    def usd(self, rollup: UsageRollup) -> str:
        return nano_to_text(rollup.cost_nano)
