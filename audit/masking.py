"""Secrets on pages: they go in, they never come out. A page shows that one is set and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.db.models import Model
from django.http import HttpRequest

#: A secret shorter than this shows none of its characters.
SHORTEST_WITH_ENDING = 16

NOT_SET = "not set"


def masked(secret: str) -> str:
    """What may be shown of a secret: its last four characters, when it has many more."""
    if not secret:
        return NOT_SET
    return f"set, ends in …{secret[-4:]}" if len(secret) >= SHORTEST_WITH_ENDING else "set"


def masked_field(name: str, description: str) -> Callable[[Any, Model], str]:
    """A read-only column `masked_<name>` of an admin class that lists `name` in `secret_fields`."""

    def show(self: Any, row: Model) -> str:
        return masked(getattr(row, name))

    show.short_description = description  # type: ignore[attr-defined]
    return show


class MasksSecrets:
    """For admin classes and inlines: where a field of `secret_fields` would be displayed, `masked_<field>` is.

    Django displays a field as it is to those who may view but not change, so the form alone does not keep a secret.
    """

    secret_fields: ClassVar[tuple[str, ...]] = ()

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)  # type: ignore[misc]
        if not self.secret_fields or self._may_enter(request, obj):
            return fieldsets
        return [(title, {**options, "fields": self._shown(options["fields"])}) for title, options in fieldsets]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        names = super().get_readonly_fields(request, obj)  # type: ignore[misc]
        return [*names, *(f"masked_{name}" for name in self.secret_fields)]

    def _may_enter(self, request: HttpRequest, obj: Any) -> bool:
        if obj is None:
            return bool(self.has_add_permission(request, obj) if _is_inline(self) else self.has_add_permission(request))  # type: ignore[attr-defined]
        return bool(self.has_change_permission(request, obj))  # type: ignore[attr-defined]

    def _shown(self, names: Any) -> list[Any]:
        """The names with their masked columns, without the boxes (`forget_<field>`) that only a form has."""
        shown: list[Any] = []
        for name in names:
            if isinstance(name, list | tuple):
                shown.append(self._shown(name))
            elif name in self.secret_fields:
                shown.append(f"masked_{name}")
            elif name not in {f"forget_{secret}" for secret in self.secret_fields}:
                shown.append(name)
        return shown


def _is_inline(admin_class: Any) -> bool:
    return hasattr(admin_class, "parent_model")
