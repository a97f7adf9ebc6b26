"""Actions of the admin that change something: a dialog is opened by GET and changes nothing, its form is sent by POST.

`dialog_action` is the only way to declare one (tests/admin/test_actions_change_nothing_on_get.py looks at all).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from unfold.decorators import action
from unfold.enums import ActionVariant
from unfold.forms import BaseDialogForm
from unfold.widgets import UnfoldAdminTextInputWidget


class ReasonForm(BaseDialogForm):
    """Asks why. The answer is kept in the audit log."""

    reason = forms.CharField(
        max_length=200,
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="Optional; kept in the audit log.",
    )


def dialog_action(
    *,
    title: str,
    text: str,
    submit: str,
    icon: str,
    form: type[BaseDialogForm] = ReasonForm,
    dangerous: bool = False,
) -> Callable[[Callable[..., HttpResponse]], Any]:
    """A button of a row or a page for those who may change it. `text` says what will happen."""
    return action(  # type: ignore[no-any-return]
        description=title,
        permissions=["change"],
        icon=icon,
        variant=ActionVariant.DANGER if dangerous else ActionVariant.DEFAULT,
        dialog={"title": title, "description": text, "form_class": form, "form_submit_text": submit},
    )


def leave_dialog(request: HttpRequest, url: str) -> HttpResponse:
    """Go on to `url` after a dialog did its work: htmx is told by a header, a plain form by a redirect."""
    if "HX-Request" in request.headers:
        return HttpResponse(headers={"HX-Redirect": url})
    return HttpResponseRedirect(url)
