"""Form fields for stored secrets: a new one goes in, an empty one keeps what is there, a tick takes it away."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.utils.text import capfirst
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldBooleanWidget

from audit.masking import masked

MAX_SECRET_LENGTH = 8192


class SecretField(forms.CharField):
    """Write-only: what is stored is never rendered."""

    def __init__(self, **kwargs: Any) -> None:
        widget = UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}, render_value=False)
        super().__init__(required=False, max_length=MAX_SECRET_LENGTH, widget=widget, **kwargs)

    def validate(self, value: Any) -> None:
        super().validate(value)
        if not value.isascii() or not value.isprintable():
            raise ValidationError("A secret is printable ASCII: something else was copied along.")

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(data)


class KeepsSecrets(forms.ModelForm):  # type: ignore[type-arg]
    """A form whose fields named in `secrets` are SecretFields; a box `forget_<name>` empties one where that may be."""

    secrets: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._stored = {name: getattr(self.instance, name) for name in self.secrets}
        for name in self.secrets:
            self.initial.pop(name, None)
            if name in self.fields and self._stored[name]:
                field = self.fields[name]
                field.help_text = f"{capfirst(masked(self._stored[name]))}. Leave empty to keep it."

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        for name in self.secrets:
            forget = bool(cleaned.get(f"forget_{name}"))
            if forget and cleaned.get(name):
                self.add_error(name, "Either a new one or none: not both.")
            elif name in cleaned and not cleaned[name] and not forget:
                cleaned[name] = self._stored[name]
        return cleaned


def forget_field(label: str) -> forms.BooleanField:
    return forms.BooleanField(required=False, label=label, widget=UnfoldBooleanWidget)
