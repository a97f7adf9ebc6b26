"""Tenants, tiers and keys in the admin. What they may spend is added by the layer that knows money (billing.admin)."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import ChoicesDropdownFilter, RelatedDropdownFilter
from unfold.decorators import display

from audit import events
from audit.admin import AuditEventAdmin
from audit.dialogs import ReasonForm, dialog_action, leave_dialog
from audit.masking import masked_field
from audit.mixins import AuditedStackedInline, Recorded, actor_of, address_of
from audit.models import AuditEvent
from audit.recorder import record_change
from tenants.config_admin import ConfigAdmin
from tenants.config_version import bump_config_version, lock_config_version
from tenants.key_admin import LIMITS, ApiKeyAdmin
from tenants.models import ApiKey, JwtIssuer, Tenant, TenantState, Tier
from tenants.services import resume_tenant, suspend_tenant
from tenants.shown_once import ShowsSecretOnce
from tenants.states import tenant_state
from tenants.tenant_forms import JwtIssuerForm, TenantForm
from tenants.webhook_secrets import new_webhook_secret


def known_slugs() -> QuerySet[Any, Any]:
    return Tenant.objects.order_by().values("slug")


AuditEventAdmin.known_tenants.append(known_slugs)
admin.site.register(ApiKey, ApiKeyAdmin)


@admin.register(Tier)
class TierAdmin(ConfigAdmin[Tier]):
    instead_of_deletion = "Give those tenants another tier first."

    list_display = ("name", "rpm", "tpm", "concurrency", "user_rpm", "user_tpm", "algorithm")
    search_fields = ("name",)
    fieldsets = ((None, {"fields": ("name",)}), ("Limits", {"fields": LIMITS}))


class JwtIssuerInline(AuditedStackedInline):
    """How the tenant's own tokens are checked."""

    model = JwtIssuer
    form = JwtIssuerForm
    audit_name = "jwt"
    secret_fields = ("secret",)
    fields = ("issuer", "audience", "jwks_url", "secret", "forget_secret", "algorithms")
    verbose_name = verbose_name_plural = "JWT issuer"
    max_num = 1
    tab = True

    masked_secret = masked_field("secret", "shared secret")


@admin.register(Tenant)
class TenantAdmin(ShowsSecretOnce, ConfigAdmin[Tenant]):
    created_kind = events.TENANT_CREATED
    updated_kind = events.TENANT_UPDATED
    instead_of_deletion = "Suspend it instead."
    secret_title = "New webhook secret"
    secret_use = "It signs the deliveries to addresses that requests name in webhook_url."

    form = TenantForm
    list_display: ClassVar[tuple[str, ...]] = (
        "slug",
        "name",
        "state_badge",
        "tier",
        "priority",
        "rpm",
        "tpm",
        "concurrency",
    )
    list_select_related = ("tier",)
    list_filter = (
        ("state", ChoicesDropdownFilter),
        ("tier", RelatedDropdownFilter),
        ("priority", ChoicesDropdownFilter),
    )
    search_fields = ("slug", "name")
    search_help_text = "Part of a slug or name."
    inlines: ClassVar[tuple[Any, ...]] = (JwtIssuerInline,)
    actions_detail = ("suspend", "resume", "renew_webhook_secret")
    readonly_fields: ClassVar[tuple[str, ...]] = ("state_badge", "created_at", "see_also")
    secret_fields = ("webhook_secret",)
    _settings = (
        ("May call", {"fields": ("allowed_models", ("unpriced", "priority"))}),
        ("Limits", {"fields": LIMITS, "description": "Empty: the tier's value holds, or no limit."}),
    )
    add_fieldsets = ((None, {"fields": (("slug", "name"), "tier")}), *_settings)
    fieldsets: ClassVar[tuple[Any, ...]] = (
        (None, {"fields": (("slug", "name"), ("tier", "state_badge"), ("created_at", "see_also"))}),
        *_settings,
        ("Deliveries to the webhook_url of a request", {"fields": ("masked_webhook_secret",)}),
    )

    masked_webhook_secret = masked_field("webhook_secret", "webhook secret")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """A slug names the tenant's counters and records for ever."""
        names = super().get_readonly_fields(request, obj)
        return [*names, "slug"] if obj else names

    # ---------------------------------------------------------------------------------------------------- changes

    def audit_state(self, row: Tenant) -> Recorded:
        return Recorded(tenant_state(row), {})

    def audit_subject(self, row: Tenant) -> str:
        return f"tenant:{row.slug}"

    def audit_tenant(self, row: Tenant) -> str:
        return row.slug

    def save_model(self, request: HttpRequest, obj: Tenant, form: Any, change: bool) -> None:
        obj.webhook_secret = obj.webhook_secret or new_webhook_secret()
        super().save_model(request, obj, form, change)

    def deletion_blockers(self, row: Tenant) -> list[str]:
        """Events name their tenant by its slug; who took the slug next would be shown them."""
        blockers = super().deletion_blockers(row)
        requests = AuditEvent.objects.filter(tenant=row.slug, kind=events.REQUEST)
        return [*blockers, "audit events"] if requests.exists() else blockers

    def advice(self, row: Tenant) -> str:
        suspended = row.state == TenantState.SUSPENDED
        return "It is suspended: nobody can use it." if suspended else self.instead_of_deletion

    # ---------------------------------------------------------------------------------------------------- actions

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> Any:
        """Of suspend and resume, the one that changes something."""
        tenant = self.get_object(request, unquote(str(object_id)))
        suspended = tenant is not None and tenant.state == TenantState.SUSPENDED
        needless = f"tenants_tenant_{'suspend' if suspended else 'resume'}"
        found = super().get_actions_detail(request, object_id)
        return [action for action in found if action.action_name != needless]

    @dialog_action(
        title="Suspend",
        text="All calls of this tenant are refused from the next second on. Nothing is deleted.",
        submit="Suspend the tenant",
        icon="pause_circle",
        dangerous=True,
    )
    def suspend(self, request: HttpRequest, form: ReasonForm, object_id: str) -> HttpResponse:
        return self._change_state(request, form, object_id, suspend_tenant)

    @dialog_action(
        title="Resume",
        text="Calls of this tenant are accepted again, under its limits.",
        submit="Resume the tenant",
        icon="play_circle",
    )
    def resume(self, request: HttpRequest, form: ReasonForm, object_id: str) -> HttpResponse:
        return self._change_state(request, form, object_id, resume_tenant)

    def _change_state(self, request: HttpRequest, form: ReasonForm, object_id: str, service: Any) -> HttpResponse:
        tenant = self.get_object(request, unquote(object_id))
        if tenant is None:
            return leave_dialog(request, reverse("admin:tenants_tenant_changelist"))
        reason = form.cleaned_data["reason"]
        tenant = service(tenant=tenant, actor=actor_of(request), reason=reason, address=address_of(request))
        self.message_user(request, f"{tenant} is {tenant.state}.", messages.SUCCESS)
        return leave_dialog(request, self.change_url(tenant))

    @dialog_action(
        title="New webhook secret",
        text="Replaces the secret at once and shows the new one once. Receivers must know it before the next delivery.",
        submit="Make a new secret",
        icon="key",
    )
    def renew_webhook_secret(self, request: HttpRequest, form: ReasonForm, object_id: str) -> HttpResponse:
        with transaction.atomic():
            lock_config_version()
            tenant = self.get_object(request, unquote(object_id))
            if tenant is None:
                return leave_dialog(request, reverse("admin:tenants_tenant_changelist"))
            tenant.webhook_secret = new_webhook_secret()
            tenant.save(update_fields=["webhook_secret"])
            bump_config_version()
            state = tenant_state(tenant)
            record_change(
                events.TENANT_UPDATED,
                actor=actor_of(request),
                subject=self.audit_subject(tenant),
                before=state,
                after={**state, "secrets_changed": ["webhook_secret"]},
                tenant=tenant.slug,
                reason=form.cleaned_data["reason"],
                address=address_of(request),
            )
        return leave_dialog(request, self.show_once(request, tenant, tenant.webhook_secret))

    # ---------------------------------------------------------------------------------------------------- columns

    @display(description="state", label={"active": "success", "suspended": "danger"}, ordering="state")
    def state_badge(self, tenant: Tenant) -> str:
        return str(tenant.state)

    @admin.display(description="see also")
    def see_also(self, tenant: Tenant) -> SafeString:
        of_tenant = urlencode({"tenant__id__exact": tenant.pk})
        links = (
            ("Keys", f"{reverse('admin:tenants_apikey_changelist')}?{of_tenant}"),
            ("Ledger", f"{reverse('admin:billing_ledgerentry_changelist')}?{of_tenant}"),
            ("Usage", f"{reverse('admin:billing_usagerollup_changelist')}?{of_tenant}"),
            ("Record", f"{reverse('admin:audit_auditevent_changelist')}?{urlencode({'tenant': tenant.slug})}"),
        )
        return format_html_join(" · ", '<a class="text-link" href="{}">{}</a>', ((url, text) for text, url in links))
