"""The forms of API keys in the admin."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from unfold.forms import BaseDialogForm
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from tenants.checks import check_name
from tenants.form_fields import LinesField, TicksField, check_glob, check_network
from tenants.models import ApiKey
from tenants.scopes import SCOPES

OVERLAPS = {
    "0": ("It ends now", timedelta(0)),
    "1h": ("1 hour", timedelta(hours=1)),
    "24h": ("24 hours", timedelta(hours=24)),
    "7d": ("7 days", timedelta(days=7)),
    "30d": ("30 days", timedelta(days=30)),
}
DEFAULT_OVERLAP = "24h"


class ApiKeyForm(forms.ModelForm):  # type: ignore[type-arg]
    """Checks what the columns cannot, before the service refuses it."""

    scopes = TicksField(names=SCOPES, initial=["inference"])
    allowed_models = LinesField(
        label="Models",
        initial=["*"],
        check=check_glob,
        help_text="Globs, one a line; * is all that its tenant may call.",
    )
    cidrs = LinesField(
        label="Networks", required=False, check=check_network, help_text="One a line, such as 10.0.0.0/8; empty: any."
    )

    class Meta:
        model = ApiKey
        fields = (
            "tenant",
            "name",
            "scopes",
            "allowed_models",
            "cidrs",
            "may_speak_for_users",
            "expires_at",
            "rpm",
            "tpm",
            "concurrency",
            "user_rpm",
            "user_tpm",
            "algorithm",
        )

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        try:
            check_name(name)
        except ValidationError as error:
            raise ValidationError(error.messages) from error
        if self.instance.pk and self._name_is_taken(name):
            raise ValidationError("Another key of this tenant has this name.")
        return name

    def _name_is_taken(self, name: str) -> bool:
        """The tenant is no field of the form of an existing key, so the constraint is not checked by itself."""
        others = ApiKey.objects.filter(tenant_id=self.instance.tenant_id, name=name)
        return others.exclude(pk=self.instance.pk).exists()


class RotateForm(BaseDialogForm):
    """How long the present secret goes on working, and why there is a new one."""

    overlap = forms.ChoiceField(
        label="The present secret works for another",
        choices=[(code, text) for code, (text, _) in OVERLAPS.items()],
        initial=DEFAULT_OVERLAP,
        widget=UnfoldAdminSelectWidget,
    )
    reason = forms.CharField(
        max_length=200,
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="Optional; kept in the audit log.",
    )

    def clean_overlap(self) -> Any:
        return OVERLAPS[self.cleaned_data["overlap"]][1]
