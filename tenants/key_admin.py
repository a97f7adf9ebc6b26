"""API keys in the admin: made, rotated and revoked through the services; a secret is shown once."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Prefetch, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from unfold.admin import TabularInline
from unfold.contrib.filters.admin import DropdownFilter
from unfold.decorators import display

from audit import events
from audit.dialogs import dialog_action, leave_dialog
from audit.lists import ByRelatedId
from audit.mixins import MAX_DELETED_AT_ONCE, Recorded, actor_of, address_of
from tenants.config_admin import ConfigAdmin
from tenants.key_forms import ApiKeyForm, RotateForm
from tenants.models import ApiKey, ApiKeySecret
from tenants.services import KeyRefused, create_key, revoke_key, revoke_keys, rotate_key
from tenants.shown_once import ShowsSecretOnce
from tenants.states import key_state

LIMITS = (("rpm", "tpm", "concurrency"), ("user_rpm", "user_tpm"), "algorithm")
STATE_COLOURS = {"live": "success", "rotating": "info", "expired": "warning", "revoked": "danger"}


def state_of(key: ApiKey) -> str:
    """live, rotating (an older secret still works), expired or revoked."""
    now = timezone.now()
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is not None and key.expires_at <= now:
        return "expired"
    overlapping = any(secret.expires_at is not None and secret.expires_at > now for secret in key.secrets.all())
    return "rotating" if overlapping else "live"


class StateFilter(DropdownFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("live", "Live"), ("expired", "Expired"), ("revoked", "Revoked")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> QuerySet[ApiKey]:
        ended = Q(expires_at__lte=timezone.now())
        if self.value() == "live":
            return queryset.filter(revoked_at=None).exclude(ended)
        if self.value() == "expired":
            return queryset.filter(ended, revoked_at=None)
        return queryset.exclude(revoked_at=None) if self.value() == "revoked" else queryset


class SecretInline(TabularInline):
    """Which secrets work, without them."""

    model = ApiKeySecret
    fields = readonly_fields = ("ending", "created_at", "expires_at")
    extra = 0
    can_delete = False
    verbose_name_plural = "secrets"
    hide_title = True

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKeySecret]:
        rows: QuerySet[ApiKeySecret] = super().get_queryset(request).order_by("-created_at", "-id")
        return rows

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True  # with the key itself

    @admin.display(description="ends in")
    def ending(self, secret: ApiKeySecret) -> str:
        return str(secret)


class ApiKeyAdmin(ShowsSecretOnce, ConfigAdmin[ApiKey]):
    created_kind = events.KEY_CREATED
    updated_kind = events.KEY_UPDATED
    instead_of_deletion = "Revoke it instead."
    secret_title = "API key"
    secret_use = "Callers send it in the header Authorization: Bearer … or X-API-Key: …"

    form = ApiKeyForm
    list_display = ("name", "tenant", "state", "id", "ending", "scopes_text", "expires_at", "last_used_at")
    list_select_related = ("tenant",)
    list_filter = (StateFilter, ("tenant", ByRelatedId))
    search_fields = ("name", "id__exact", "tenant__slug")
    search_help_text = "Part of a name or of a tenant's slug, or a whole key id."
    ordering = ("tenant__slug", "name")
    autocomplete_fields = ("tenant",)
    inlines: ClassVar[tuple[Any, ...]] = (SecretInline,)
    actions = ("revoke_selected",)
    actions_row = ("rotate", "revoke")
    actions_detail = ("rotate", "revoke")
    readonly_fields = ("id", "state", "created_at", "last_used_at", "revoked_at")
    _settings = (
        ("May do", {"fields": ("scopes", "allowed_models", "cidrs", "may_speak_for_users", "expires_at")}),
        ("Limits", {"fields": LIMITS, "description": "Empty: not limited here; the tenant's limits hold as well."}),
    )
    add_fieldsets = ((None, {"fields": ("tenant", "name")}), *_settings)
    fieldsets = (
        (None, {"fields": (("name", "state"), ("tenant", "id"), ("created_at", "last_used_at", "revoked_at"))}),
        *_settings,
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKey]:
        secrets = ApiKeySecret.objects.order_by("-created_at", "-id")
        rows: QuerySet[ApiKey] = super().get_queryset(request).prefetch_related(Prefetch("secrets", queryset=secrets))
        return rows

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        names = super().get_readonly_fields(request, obj)
        return [*names, "tenant"] if obj else names

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        return [inline for inline in self.inlines if obj or inline is not SecretInline]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A revoked key stays as it was."""
        if isinstance(obj, ApiKey) and obj.revoked_at is not None:
            return False
        return bool(super().has_change_permission(request, obj))

    # ---------------------------------------------------------------------------------------------------- changes

    def audit_state(self, row: ApiKey) -> Recorded:
        return Recorded(key_state(row), {})

    def audit_subject(self, row: ApiKey) -> str:
        return f"key:{row.pk}"

    def audit_tenant(self, row: ApiKey) -> str:
        return row.tenant.slug

    def audit_key(self, row: ApiKey) -> str:
        return row.pk

    def changed_key(self, row: ApiKey) -> str:
        return row.pk

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        values = {name: form.cleaned_data[name] for name in form.cleaned_data if name in ApiKeyForm.Meta.fields}
        issued = create_key(actor=actor_of(request), address=address_of(request), **values)
        obj.pk, obj.changed_in, obj._state.adding = issued.key.pk, issued.key.changed_in, False
        request.issued_secret = issued.secret  # type: ignore[attr-defined]
        self.remember(request, obj)

    def response_add(self, request: HttpRequest, obj: ApiKey, post_url_continue: Any = None) -> HttpResponse:
        return HttpResponseRedirect(self.show_once(request, obj, request.issued_secret))  # type: ignore[attr-defined]

    def deletion_blockers(self, row: ApiKey) -> list[str]:
        """A live key is not deleted: workers that know it would go on accepting it."""
        blockers = super().deletion_blockers(row)
        return blockers if row.revoked_at is not None or blockers else ["callers"]

    def advice(self, row: ApiKey) -> str:
        return self.instead_of_deletion if row.revoked_at is None else "It is revoked: nobody can use it."

    # ---------------------------------------------------------------------------------------------------- actions

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> Any:
        """None for a revoked key."""
        key = self.get_object(request, unquote(str(object_id)))
        return super().get_actions_detail(request, object_id) if key and key.revoked_at is None else []

    @dialog_action(
        title="Rotate",
        text="Makes a new secret under the same id and shows it once. The present one goes on working for a while.",
        submit="Make a new secret",
        icon="autorenew",
        form=RotateForm,
    )
    def rotate(self, request: HttpRequest, form: RotateForm, object_id: str) -> HttpResponse:
        key = self.get_object(request, unquote(object_id))
        if key is None:
            return leave_dialog(request, self._list_url())
        overlap, reason = form.cleaned_data["overlap"], form.cleaned_data["reason"]
        try:
            issued = rotate_key(
                key=key, overlap=overlap, actor=actor_of(request), reason=reason, address=address_of(request)
            )
        except KeyRefused as error:
            self.message_user(request, " ".join(error.messages), messages.ERROR)
            return leave_dialog(request, self.change_url(key))
        return leave_dialog(request, self.show_once(request, key, issued.secret))

    @dialog_action(
        title="Revoke",
        text="Ends the key for good, in every worker within a second. This cannot be undone.",
        submit="Revoke the key",
        icon="block",
        dangerous=True,
    )
    def revoke(self, request: HttpRequest, form: Any, object_id: str) -> HttpResponse:
        key = self.get_object(request, unquote(object_id))
        if key is None:
            return leave_dialog(request, self._list_url())
        revoke_key(key=key, actor=actor_of(request), reason=form.cleaned_data["reason"], address=address_of(request))
        self.message_user(request, f"{key} is revoked.", messages.SUCCESS)
        return leave_dialog(request, self.change_url(key))

    @admin.action(description="Revoke the selected keys", permissions=["change"])
    def revoke_selected(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> HttpResponse | None:
        """The first POST asks, the second one with `confirmed` does it."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        keys = list(queryset.filter(revoked_at=None)[: MAX_DELETED_AT_ONCE + 1])
        if len(keys) > MAX_DELETED_AT_ONCE:
            self.message_user(request, f"Choose at most {MAX_DELETED_AT_ONCE} at a time.", messages.ERROR)
            return None
        if request.POST.get("confirmed"):
            reason = request.POST.get("reason", "")[:200].replace("\x00", "")
            revoked = revoke_keys(keys=keys, actor=actor_of(request), reason=reason, address=address_of(request))
            self.message_user(request, f"Revoked {len(revoked)} of the selected keys.", messages.SUCCESS)
            return None
        context = {
            **self.admin_site.each_context(request),
            "title": "Revoke keys",
            "opts": self.opts,
            "rows": keys,
            "action": "revoke_selected",
            "question": "These keys end for good, in every worker within a second. This cannot be undone.",
            "submit_text": "Revoke the keys",
            "list_url": self._list_url(),
        }
        return TemplateResponse(request, "admin/confirm_selected.html", context)

    def _list_url(self) -> str:
        return reverse(f"{self.admin_site.name}:tenants_apikey_changelist")

    # ---------------------------------------------------------------------------------------------------- columns

    @display(description="state", label=STATE_COLOURS)
    def state(self, key: ApiKey) -> str:
        return state_of(key)

    @admin.display(description="secret")
    def ending(self, key: ApiKey) -> str:
        newest = next(iter(key.secrets.all()), None)
        return str(newest) if newest else "none"

    @admin.display(description="scopes")
    def scopes_text(self, key: ApiKey) -> str:
        return ", ".join(key.scopes)
