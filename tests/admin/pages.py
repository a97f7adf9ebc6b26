"""Where the admin's pages are, and what a browser would send of their forms."""

from html.parser import HTMLParser
from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.urls import reverse

NOT_SENT = {"submit", "button", "reset", "image"}


def list_url(model: type[Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def add_url(model: type[Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_add")


def page_url(row: Model, page: str = "change") -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_{page}", args=(row.pk,))


def all_admins() -> list[tuple[type[Model], Any]]:
    return sorted(admin.site._registry.items(), key=lambda item: item[0]._meta.label)


def form_of(response: Any, form_id: str) -> dict[str, list[str]]:
    """The fields of the form with this id as they are on the page: what is not rendered is not sent."""
    reader = _FormReader(form_id)
    reader.feed(response.content.decode())
    assert reader.found, f"no form {form_id} on the page"
    return {name: values for name, values in reader.sent.items() if "__prefix__" not in name}


class _FormReader(HTMLParser):
    def __init__(self, form_id: str) -> None:
        super().__init__()
        self.form_id, self.found, self.inside = form_id, False, False
        self.sent: dict[str, list[str]] = {}
        self.select = self.textarea = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form":
            self.inside = given.get("id") == self.form_id
            self.found |= self.inside
        elif not self.inside:
            return
        elif tag == "input":
            self._input(given)
        elif tag == "select":
            self.select = given.get("name") or ""
        elif tag == "option" and self.select and "selected" in given:
            self._add(self.select, given.get("value") or "")
        elif tag == "textarea":
            self.textarea = given.get("name") or ""
            self._add(self.textarea, "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.inside = False
        elif tag == "select":
            self.select = ""
        elif tag == "textarea":
            self.textarea = ""

    def handle_data(self, data: str) -> None:
        if self.textarea:
            self.sent[self.textarea][-1] += data.removeprefix("\n")

    def _input(self, given: dict[str, str | None]) -> None:
        kind, name = given.get("type") or "text", given.get("name")
        if not name or kind in NOT_SENT or (kind in ("checkbox", "radio") and "checked" not in given):
            return
        self._add(name, given.get("value") or ("on" if kind == "checkbox" else ""))

    def _add(self, name: str, value: str) -> None:
        self.sent.setdefault(name, []).append(value)
