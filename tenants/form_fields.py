"""Form fields for what people write as lists: one entry a line, numbers with commas, boxes to tick."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django import forms
from django.core.exceptions import ValidationError
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from tenants.names import fault_of_name

MAX_ENTRIES = 200
MAX_ENTRY_LENGTH = 200
MAX_NUMBERS = 20

Check = Callable[[str], None]


class LinesField(forms.CharField):
    """A list of texts, one a line. `check` raises ValidationError for an entry that cannot be."""

    def __init__(self, *, check: Check | None = None, **kwargs: Any) -> None:
        self.check = check
        super().__init__(widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}), **kwargs)

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(map(str, value)) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value) or ""
        return list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))

    def validate(self, value: Any) -> None:
        super().validate(value)
        if len(value) > MAX_ENTRIES:
            raise ValidationError(f"At most {MAX_ENTRIES} entries.")
        for entry in value:
            if len(entry) > MAX_ENTRY_LENGTH:
                raise ValidationError(f"An entry has more than {MAX_ENTRY_LENGTH} characters.")
            if self.check is not None:
                self.check(entry)

    def run_validators(self, value: Any) -> None:
        super().run_validators("\n".join(value))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.prepare_value(initial or []) != "\n".join(self.to_python(data)))


class PercentagesField(forms.CharField):
    """Whole percentages from 1 to 100, separated by commas; kept sorted."""

    widget = UnfoldAdminTextInputWidget

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(map(str, value)) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        parts = [part.strip() for part in (super().to_python(value) or "").split(",") if part.strip()]
        if not all(part.isascii() and part.isdecimal() and 1 <= int(part) <= 100 for part in map(_short, parts)):
            raise ValidationError("Write whole percentages from 1 to 100, such as 80, 95.")
        return sorted({int(part) for part in parts})

    def validate(self, value: Any) -> None:
        super().validate(value)
        if len(value) > MAX_NUMBERS:
            raise ValidationError(f"At most {MAX_NUMBERS} percentages.")

    def run_validators(self, value: Any) -> None:
        return

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool((initial or []) != self.to_python(data))
        except ValidationError:
            return True


class TicksField(forms.MultipleChoiceField):
    """A list of known texts, as boxes to tick."""

    def __init__(self, *, names: Iterable[str], **kwargs: Any) -> None:
        choices = [(name, name) for name in names]
        super().__init__(choices=choices, widget=UnfoldAdminCheckboxSelectMultipleWidget, **kwargs)


def check_network(text: str) -> None:
    try:
        ipaddress.ip_network(text)
    except ValueError as error:
        raise ValidationError(f"{text[:50]!r} is no network such as 10.0.0.0/8.") from error


def check_glob(text: str) -> None:
    if fault := fault_of_name(text, longest=MAX_ENTRY_LENGTH):
        raise ValidationError(f"An entry {fault}.")


def check_timezone(text: str) -> None:
    try:
        ZoneInfo(text)
    except (OSError, ValueError, ZoneInfoNotFoundError) as error:
        raise ValidationError("Write a time zone such as UTC or Europe/Berlin.") from error


def _short(part: str) -> str:
    return part if len(part) <= 3 else "?"
