"""People in the admin: users and groups."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import BooleanRadioFilter
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from audit import events
from audit.mixins import AuditedAdmin, Recorded

#: What only a superuser gives and takes: otherwise who may edit people could make themselves one.
POWERS = ("is_superuser", "is_staff", "groups", "user_permissions")

admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class UserAdmin(DjangoUserAdmin, AuditedAdmin[User]):  # type: ignore[misc]
    instead_of_deletion = "Take away “active” instead."

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "is_active", "is_staff", "is_superuser", "last_login")
    list_filter = (
        ("is_active", BooleanRadioFilter),
        ("is_staff", BooleanRadioFilter),
        ("is_superuser", BooleanRadioFilter),
    )
    search_help_text = "Part of a user name, name or e-mail address."
    autocomplete_fields = ("groups",)
    filter_horizontal = ()
    readonly_fields = ("last_login", "date_joined")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        names = super().get_readonly_fields(request, obj)
        return names if request.user.is_superuser else [*names, *POWERS]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may_touch(request, obj) and bool(super().has_change_permission(request, obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may_touch(request, obj) and bool(super().has_delete_permission(request, obj))

    def get_actions(self, request: HttpRequest) -> Any:
        """People are deleted one by one, so that the rule below holds for each."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def _may_touch(self, request: HttpRequest, person: Any) -> bool:
        return bool(request.user.is_superuser) or not (isinstance(person, User) and person.is_superuser)

    def audit_subject(self, row: User) -> str:
        return f"user:{row.username}"

    def audit_state(self, row: User) -> Recorded:
        groups = sorted(row.groups.values_list("name", flat=True)) if row.pk else []
        state = {
            "username": row.username,
            "email": row.email,
            "first_name": row.first_name,
            "last_name": row.last_name,
            "is_active": row.is_active,
            "is_staff": row.is_staff,
            "is_superuser": row.is_superuser,
            "groups": groups,
            "permissions": _names_of(row.user_permissions.all()),
        }
        return Recorded(state, {"password": row.password})

    def log_change(self, request: HttpRequest, obj: User, message: Any) -> Any:
        """A new password comes by its own page, without save_model."""
        if getattr(request, "audit_before", None) is None:
            state = self.recorded(obj).state
            self.record_row(request, events.OBJECT_UPDATED, obj, state, {**state, "secrets_changed": ["password"]})
        return super().log_change(request, obj, message)


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, AuditedAdmin[Group]):  # type: ignore[misc]
    list_display = ("name",)
    search_fields = ("name",)
    search_help_text = "Part of a name."

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)

    def audit_state(self, row: Group) -> Recorded:
        return Recorded({"name": row.name, "permissions": _names_of(row.permissions.all())}, {})


def _names_of(permissions: QuerySet[Any]) -> list[str]:
    rows = permissions.values_list("content_type__app_label", "codename")
    return sorted(f"{app}.{codename}" for app, codename in rows)
