"""ConfigAdmin: what is changed here is configuration, so every worker must read it anew."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db import router, transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from audit.mixins import AuditedAdmin
from tenants.config_version import bump_config_version, lock_config_version
from tenants.models import ApiKey

Row = TypeVar("Row", bound=Model)


class ConfigAdmin(AuditedAdmin[Row]):
    """An audited admin class whose changes raise the configuration's version."""

    def save_model(self, request: HttpRequest, obj: Row, form: Any, change: bool) -> None:
        lock_config_version()  # before any other row, as the services do
        super().save_model(request, obj, form, change)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        if request.method != "POST":
            return super().delete_view(request, object_id, extra_context)
        with transaction.atomic(using=router.db_for_write(self.model)):
            lock_config_version()
            return super().delete_view(request, object_id, extra_context)

    def response_action(self, request: HttpRequest, queryset: QuerySet[Row]) -> Any:
        with transaction.atomic(using=router.db_for_write(self.model)):
            lock_config_version()
            return super().response_action(request, queryset)

    def after_change(self, row: Row) -> None:
        version = bump_config_version()
        if key_id := self.changed_key(row):
            # Workers keep keys by themselves and ask for those that changed after the version they know.
            ApiKey.objects.filter(pk=key_id).update(changed_in=version)

    def changed_key(self, row: Row) -> str:
        """Id of the API key that the row belongs to, if it does."""
        return ""
