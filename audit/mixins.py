"""AuditedAdmin: an admin class whose every change is an audit event with before and after, in the change's transaction.

Deletion is refused with a reason where history depends on the row, secrets are masked, and a list can be filtered by
its own filters only.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from django.contrib import messages
from django.contrib.admin.actions import delete_selected
from django.contrib.admin.utils import unquote
from django.core.exceptions import ValidationError
from django.db import IntegrityError, router, transaction
from django.db.models import Field, Model, ProtectedError, QuerySet
from django.forms.models import _get_foreign_key
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from unfold.admin import ModelAdmin, StackedInline, TabularInline

from audit import events
from audit.deletion import protecting_kinds
from audit.lists import BoundedAdmin
from audit.masking import MasksSecrets
from audit.recorder import NewEvent, change, record
from audit.redaction import is_secret

Row = TypeVar("Row", bound=Model)
State = dict[str, Any]

#: Rows deleted in one go; more would make one transaction too long.
MAX_DELETED_AT_ONCE = 200


class Recorded(NamedTuple):
    """What the record shows of a row, and the secrets it does not show: only whether they changed is told."""

    state: State
    secrets: State


def actor_of(request: HttpRequest) -> str:
    """Who makes a change, as the audit log names people of the admin."""
    return f"admin:{request.user.get_username()}"


def address_of(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR", ""))


def row_state(row: Model, leave_out: Iterable[str] = ()) -> Recorded:
    """Every column that people can edit; relations by name, a secret as "set" or empty."""
    state, secrets = {}, {}
    for field in row._meta.concrete_fields:
        if not field.editable or field.name in leave_out or field.primary_key:
            continue
        if is_secret(field.name):
            secrets[field.name] = getattr(row, field.name)
            state[field.name] = "set" if secrets[field.name] else ""
        else:
            state[field.name] = _shown(row, field)
    return Recorded(state, secrets)


def _shown(row: Model, field: Field[Any, Any]) -> Any:
    value = getattr(row, field.name)
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"  # the same text before it was stored and after
    return value if value is None or isinstance(value, bool | int | list | dict) else str(value)


class AuditedInline(MasksSecrets, TabularInline):
    """Rows edited with their owner and recorded as part of it, under `audit_name`."""

    audit_name: ClassVar[str] = ""
    extra = 0
    show_change_link = False


class AuditedStackedInline(MasksSecrets, StackedInline):
    """The same, one field below the other."""

    audit_name: ClassVar[str] = ""
    extra = 0


class AuditedAdmin(BoundedAdmin, MasksSecrets, ModelAdmin, Generic[Row]):
    """Base of every admin class that changes anything."""

    created_kind: ClassVar[str] = events.OBJECT_CREATED
    updated_kind: ClassVar[str] = events.OBJECT_UPDATED
    deleted_kind: ClassVar[str] = events.OBJECT_DELETED
    #: What to do instead when a row cannot be deleted.
    instead_of_deletion: ClassVar[str] = ""

    list_max_show_all = 200
    warn_unsaved_form = True

    # -------------------------------------------------------------------------------------------- what is recorded

    def audit_subject(self, row: Row) -> str:
        return f"{self.opts.model_name}:{row}"

    def audit_tenant(self, row: Row) -> str:
        """Slug of the tenant whose record this belongs to; empty for what all tenants share."""
        return ""

    def audit_key(self, row: Row) -> str:
        """Id of the API key that this is about, if it is."""
        return ""

    def audit_state(self, row: Row) -> Recorded:
        return row_state(row)

    def after_change(self, row: Row) -> None:
        """In the transaction of every change, before it is recorded."""

    def recorded(self, row: Row) -> Recorded:
        """The row as the record shows it, with the rows that are edited together with it."""
        own = self.audit_state(row)
        state, secrets = dict(own.state), dict(own.secrets)
        for inline in self.inlines:
            name = getattr(inline, "audit_name", "")
            if not name:
                continue
            owner = _get_foreign_key(self.model, inline.model, fk_name=inline.fk_name)
            rows = inline.model._base_manager.filter(**{owner.name: row.pk}).order_by("pk")
            parts = [row_state(part, leave_out=(owner.name,)) for part in rows]
            state[name] = [part.state for part in parts]
            if any(part.secrets for part in parts):
                secrets[name] = [part.secrets for part in parts]
        return Recorded(state, secrets)

    def event_of(
        self, request: HttpRequest, kind: str, row: Row, before: State | None, after: State | None
    ) -> NewEvent:
        return change(
            kind,
            actor=actor_of(request),
            subject=self.audit_subject(row),
            before=before,
            after=after,
            tenant=self.audit_tenant(row),
            key_id=self.audit_key(row),
            address=address_of(request),
        )

    def record_row(self, request: HttpRequest, kind: str, row: Row, before: State | None, after: State | None) -> None:
        self.after_change(row)
        record([self.event_of(request, kind, row, before, after)])

    # ------------------------------------------------------------------------------------------- when it is recorded

    def save_model(self, request: HttpRequest, obj: Row, form: Any, change: bool) -> None:
        if change:
            self.remember(request, obj)
        super().save_model(request, obj, form, change)

    def remember(self, request: HttpRequest, row: Row) -> None:
        """Keep the row as it is stored, for the record of the change that follows."""
        stored = self.model._base_manager.get(pk=row.pk)
        request.audit_before = self.recorded(stored)  # type: ignore[attr-defined]

    def log_addition(self, request: HttpRequest, obj: Row, message: Any) -> Any:
        before: Recorded | None = getattr(request, "audit_before", None)
        if before is None:
            self.record_row(request, self.created_kind, obj, None, self.recorded(obj).state)
        else:  # a service made the row and recorded it; what was saved with it is a change
            self._record_update(request, obj, before)
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Row, message: Any) -> Any:
        before: Recorded | None = getattr(request, "audit_before", None)
        if before is not None:
            self._record_update(request, obj, before)
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: Iterable[Row]) -> Any:
        rows = list(queryset)
        for row in rows:
            self.after_change(row)
        record([self.event_of(request, self.deleted_kind, row, self.recorded(row).state, None) for row in rows])
        return super().log_deletions(request, queryset)

    def _record_update(self, request: HttpRequest, row: Row, before: Recorded) -> None:
        after = self.recorded(row)
        if after == before:
            return
        changed = [name for name in after.secrets if after.secrets[name] != before.secrets.get(name)]
        told = {**after.state, "secrets_changed": changed} if changed else after.state
        self.record_row(request, self.updated_kind, row, before.state, told)

    # ----------------------------------------------------------------------------------------------- races, bulk work

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> Any:
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except (IntegrityError, ValidationError) as error:
            said = " ".join(error.messages) if isinstance(error, ValidationError) else "Someone else was faster."
            self.message_user(request, f"Nothing was saved. {said}", messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def response_action(self, request: HttpRequest, queryset: QuerySet[Row]) -> Any:
        with transaction.atomic(using=router.db_for_write(self.model)):
            return super().response_action(request, queryset)

    # ----------------------------------------------------------------------------------------------------- deletion

    def deletion_blockers(self, row: Row) -> list[str]:
        """What depends on the row, as plural nouns; empty when it may be deleted."""
        return protecting_kinds(row)

    def refusal_to_delete(self, row: Row) -> str:
        """Why the row stays and what to do instead; empty when it may be deleted."""
        blockers = self.deletion_blockers(row)
        if not blockers:
            return ""
        named = " and ".join(filter(None, (", ".join(blockers[:-1]), blockers[-1])))
        return f"{row} is kept: {named} depend on it. {self.advice(row)}".strip()

    def advice(self, row: Row) -> str:
        return self.instead_of_deletion

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        row = self.get_object(request, unquote(object_id))
        if row is None or not self.has_delete_permission(request, row):
            return super().delete_view(request, object_id, extra_context)
        refusal = self.refusal_to_delete(row)
        try:
            if not refusal:
                return super().delete_view(request, object_id, extra_context)
        except ProtectedError:
            refusal = f"{row} is kept: something came to depend on it just now."
        self.message_user(request, refusal, messages.ERROR)
        return HttpResponseRedirect(self.change_url(row))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        refusals = [text for text in map(self.refusal_to_delete, objs) if text]
        return ([], {}, set(), refusals) if refusals else super().get_deleted_objects(objs, request)

    def get_actions(self, request: HttpRequest) -> Any:
        actions = super().get_actions(request)
        if "delete_selected" in actions:
            actions["delete_selected"] = (_delete_or_say_why, *actions["delete_selected"][1:])
        return actions

    def change_url(self, row: Row) -> str:
        name = f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_change"
        return reverse(name, args=(row.pk,))


def _delete_or_say_why(model_admin: Any, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
    chosen = list(queryset[: MAX_DELETED_AT_ONCE + 1])
    if len(chosen) > MAX_DELETED_AT_ONCE:
        model_admin.message_user(request, f"Choose at most {MAX_DELETED_AT_ONCE} at a time.", messages.ERROR)
        return None
    refusals = [text for text in map(model_admin.refusal_to_delete, chosen) if text]
    for text in refusals:
        model_admin.message_user(request, text, messages.ERROR)
    return None if refusals else delete_selected(model_admin, request, queryset)
