"""Webhooks in the admin: receivers with write-only secrets, and what was sent to them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString
from unfold.admin import TabularInline
from unfold.contrib.filters.admin import BooleanRadioFilter, ChoicesDropdownFilter
from unfold.decorators import display

from audit import events
from audit.dialogs import ReasonForm, dialog_action, leave_dialog
from audit.json_text import pretty_json
from audit.lists import ByRelatedId
from audit.masking import masked_field
from audit.mixins import Recorded, actor_of, address_of, row_state
from audit.newest_rows import NewestRowsAdmin, UntilFilter
from audit.recorder import record_change
from tenants.config_admin import ConfigAdmin
from tenants.config_version import bump_config_version, lock_config_version
from tenants.shown_once import ShowsSecretOnce
from tenants.webhook_secrets import new_webhook_secret
from webhooks.endpoint_form import EndpointForm
from webhooks.models import Attempt, Endpoint, Message

STATE_COLOURS = {"pending": "info", "delivered": "success", "exhausted": "danger", "cancelled": "warning"}


def without_query(url: str) -> str:
    """A receiver's address may carry a token in its query."""
    return url.partition("?")[0]


@admin.register(Endpoint)
class EndpointAdmin(ShowsSecretOnce, ConfigAdmin[Endpoint]):
    instead_of_deletion = "Switch it off instead."
    secret_title = "Signing secret"
    secret_use = "The receiver checks the header webhook-signature with it."
    secret_fields = ("secret",)

    form = EndpointForm
    list_display = ("address", "tenant", "enabled", "events_text", "disabled_reason", "created_at")
    list_select_related = ("tenant",)
    list_filter = (("enabled", BooleanRadioFilter), ("tenant", ByRelatedId))
    search_fields = ("url", "tenant__slug")
    search_help_text = "Part of an address or of a tenant's slug."
    ordering = ("tenant__slug", "id")
    autocomplete_fields = ("tenant",)
    actions_detail = ("renew_secret",)
    readonly_fields = ("address", "created_at", "disabled_reason", "sequence")
    add_fieldsets = ((None, {"fields": ("tenant", "url", "events", "secret")}),)
    fieldsets = (
        (None, {"fields": ("tenant", "url", "events", "enabled", "secret")}),
        ("So far", {"fields": (("created_at", "sequence", "disabled_reason"),)}),
    )

    masked_secret = masked_field("secret", "signing secret")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        names = super().get_readonly_fields(request, obj)
        return [*names, "tenant"] if obj else names

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Who may only look sees the address without its query."""
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None or self.has_change_permission(request, obj):
            return fieldsets
        seen = ["address" if name == "url" else name for name in fieldsets[0][1]["fields"]]
        return [(None, {"fields": seen}), *fieldsets[1:]]

    # ---------------------------------------------------------------------------------------------------- changes

    def audit_state(self, row: Endpoint) -> Recorded:
        state, secrets = row_state(row)
        return Recorded({**state, "url": without_query(row.url)}, {**secrets, "url": row.url})

    def audit_subject(self, row: Endpoint) -> str:
        return f"endpoint:{row.pk}"

    def audit_tenant(self, row: Endpoint) -> str:
        return row.tenant.slug

    def save_model(self, request: HttpRequest, obj: Endpoint, form: Any, change: bool) -> None:
        if not obj.secret:
            obj.secret = new_webhook_secret()
            request.made_secret = obj.secret  # type: ignore[attr-defined]
        if obj.enabled:
            obj.disabled_reason = ""
        super().save_model(request, obj, form, change)

    def response_add(self, request: HttpRequest, obj: Endpoint, post_url_continue: Any = None) -> HttpResponse:
        made = getattr(request, "made_secret", "")
        if not made:
            return super().response_add(request, obj, post_url_continue)
        return HttpResponseRedirect(self.show_once(request, obj, made))

    @dialog_action(
        title="New secret",
        text="Replaces the signing secret at once and shows the new one once. The receiver must know it before the "
        "next delivery.",
        submit="Make a new secret",
        icon="key",
    )
    def renew_secret(self, request: HttpRequest, form: ReasonForm, object_id: str) -> HttpResponse:
        with transaction.atomic():
            lock_config_version()
            endpoint = self.get_object(request, unquote(object_id))
            if endpoint is None:
                return leave_dialog(request, reverse("admin:webhooks_endpoint_changelist"))
            endpoint.secret = new_webhook_secret()
            endpoint.save(update_fields=["secret"])
            bump_config_version()
            state = self.audit_state(endpoint).state
            record_change(
                events.OBJECT_UPDATED,
                actor=actor_of(request),
                subject=self.audit_subject(endpoint),
                before=state,
                after={**state, "secrets_changed": ["secret"]},
                tenant=endpoint.tenant.slug,
                reason=form.cleaned_data["reason"],
                address=address_of(request),
            )
        return leave_dialog(request, self.show_once(request, endpoint, endpoint.secret))

    # ---------------------------------------------------------------------------------------------------- columns

    @admin.display(description="address", ordering="url")
    def address(self, endpoint: Endpoint) -> str:
        return without_query(endpoint.url)

    @admin.display(description="events")
    def events_text(self, endpoint: Endpoint) -> str:
        return ", ".join(endpoint.events)


class AttemptInline(TabularInline):
    model = Attempt
    fields = readonly_fields = ("number", "at", "http_status", "error", "duration_ms", "response")
    extra = 0
    can_delete = False
    hide_title = True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True  # with the message itself


@admin.register(Message)
class MessageAdmin(NewestRowsAdmin[Message]):
    newest_by = "created_at"
    tenant_parameter = ""
    not_listed = ("body",)

    list_display = ("created_at", "type", "tenant", "address", "state_badge", "attempts_made", "next_attempt_at")
    list_select_related = ("tenant",)
    list_filter = (("tenant", ByRelatedId), UntilFilter, ("state", ChoicesDropdownFilter))
    search_fields = ("id__exact",)
    search_help_text = "A message's id, whole."
    inlines = (AttemptInline,)
    fieldsets = (
        (None, {"fields": (("id", "type"), ("tenant", "address"), "request_id")}),
        ("Delivery", {"fields": (("state_badge", "attempts_made", "next_attempt_at"), "created_at")}),
        ("Body", {"fields": ("body_json",)}),
    )
    readonly_fields = ("address", "state_badge", "body_json")

    @admin.display(description="address")
    def address(self, message: Message) -> str:
        return without_query(message.url)

    @display(description="state", label=STATE_COLOURS)
    def state_badge(self, message: Message) -> str:
        return str(message.state)

    @admin.display(description="body")
    def body_json(self, message: Message) -> SafeString:
        return pretty_json(message.body)
