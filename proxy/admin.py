"""Where calls go, in the admin: providers with write-only credentials, models with their ordered targets."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import BooleanRadioFilter, ChoicesDropdownFilter

from audit.masking import masked_field
from audit.mixins import AuditedInline
from billing.admin import PriceForm
from proxy.models import ModelAlias, Provider, Target
from proxy.routing_forms import ProviderForm
from tenants.config_admin import ConfigAdmin


def provider_names() -> QuerySet[Any, str]:
    return Provider.objects.order_by("name").values_list("name", flat=True)


PriceForm.known_providers.append(provider_names)


@admin.register(Provider)
class ProviderAdmin(ConfigAdmin[Provider]):
    instead_of_deletion = "Take those away first, or switch the provider off."
    secret_fields = ("api_key",)

    form = ProviderForm
    list_display = ("name", "kind", "enabled", "base_url", "masked_api_key", "rpm", "tpm", "concurrency")
    list_filter = (("kind", ChoicesDropdownFilter), ("enabled", BooleanRadioFilter))
    search_fields = ("name", "base_url")
    search_help_text = "Part of a name or address."
    ordering = ("name",)
    fieldsets = (
        (None, {"fields": (("name", "kind"), "base_url", ("region", "api_version"), "enabled")}),
        ("Credential", {"fields": (("api_key", "forget_api_key"),)}),
        (
            "Limits of the account",
            {"fields": (("rpm", "tpm", "concurrency"),), "description": "Empty: the account has none."},
        ),
        (
            "Time allowed, in seconds",
            {"fields": (("timeout_connect", "timeout_first_byte"), ("timeout_idle", "timeout_total"))},
        ),
        (
            "Retries",
            {
                "fields": (("max_attempts", "backoff", "max_backoff"),),
                "description": "Attempts count the first; waits in seconds.",
            },
        ),
        (
            "Circuit breaker",
            {"fields": (("breaker_failures", "breaker_window"), ("breaker_open_for", "breaker_close_after"))},
        ),
        (
            "Extra headers",
            {"fields": ("headers",), "description": "Sent with every call. Shown here: no place for a credential."},
        ),
    )

    masked_api_key = masked_field("api_key", "credential")


class TargetInline(AuditedInline):
    """Dragged into the order in which they are tried."""

    model = Target
    audit_name = "targets"
    fields = ("provider", "model", "weight", "position")
    ordering_field = "position"
    hide_ordering_field = True
    hide_title = True
    ordering = ("position", "id")
    min_num = 1

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """The providers are read once, not once a row."""
        field = super().formfield_for_foreignkey(db_field, request, **kwargs)
        if db_field.name == "provider":
            field.choices = list(field.choices)
        return field


@admin.register(ModelAlias)
class ModelAliasAdmin(ConfigAdmin[ModelAlias]):
    list_display = ("name", "strategy", "target_count", "max_output_tokens", "cache_exact_ttl")
    list_filter = (("strategy", ChoicesDropdownFilter),)
    search_fields = ("name",)
    search_help_text = "Part of a name."
    ordering = ("name",)
    inlines = (TargetInline,)
    fieldsets = (
        (None, {"fields": (("name", "strategy"), "max_output_tokens")}),
        ("Cache", {"fields": (("cache_exact_ttl", "cache_semantic_ttl", "cache_semantic_threshold"),)}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[ModelAlias]:
        return super().get_queryset(request).annotate(targets_made=Count("targets"))

    @admin.display(description="targets", ordering="targets_made")
    def target_count(self, alias: Any) -> int:
        return int(alias.targets_made)
