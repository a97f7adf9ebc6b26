"""The forms of budgets and quotas in the admin: by themselves, and as rows of their owner."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator
from unfold.forms import PaginationInlineFormSet
from unfold.widgets import UnfoldAdminSelectWidget

from billing.models import Budget, BudgetScope, Quota
from billing.money import plain
from tenants.form_fields import PercentagesField, check_timezone

#: What stays exact in Lua: nano-USD and tokens below 2^53.
MAX_USD = Decimal(9_000_000)
MAX_TOKENS = 2**53 - 1


class PlainAmounts:
    """For model forms: amounts are shown without trailing zeros."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, value in self.initial.items():  # type: ignore[attr-defined]
            if isinstance(value, Decimal):
                self.initial[name] = plain(value)  # type: ignore[attr-defined]


class BudgetForm(PlainAmounts, forms.ModelForm):  # type: ignore[type-arg]
    """USD per calendar period."""

    warn_at = PercentagesField(label="Warn at", required=False, initial=[80, 95], help_text="Percentages.")

    class Meta:
        model = Budget
        fields = ("tenant", "key", "scope", "usd", "per", "warn_at", "timezone")
        labels: ClassVar[dict[str, str]] = {"usd": "USD"}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "usd" in self.fields:
            self.fields["usd"].validators.append(MaxValueValidator(MAX_USD))

    def clean_timezone(self) -> str:
        return _checked_timezone(self.cleaned_data["timezone"])

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        key, scope = cleaned.get("key") or self.instance.key, cleaned.get("scope")
        tenant = cleaned.get("tenant")
        if key and tenant and key.tenant_id != tenant.pk:
            self.add_error("key", "This key belongs to another tenant.")
        if key and scope == BudgetScope.TENANT:
            self.add_error("scope", "The budget of one key has the scope key or user.")
        return cleaned


class KeyBudgetForm(BudgetForm):
    """The budget of one key: for the key, or for each of its users."""

    scope = forms.ChoiceField(
        choices=[choice for choice in BudgetScope.choices if choice[0] != BudgetScope.TENANT],
        initial=BudgetScope.KEY,
        widget=UnfoldAdminSelectWidget,
    )


class QuotaForm(forms.ModelForm):  # type: ignore[type-arg]
    """Tokens per calendar period, of exactly one owner."""

    class Meta:
        model = Quota
        fields = ("tier", "tenant", "key", "tokens", "per", "timezone")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "tokens" in self.fields:
            self.fields["tokens"].validators.append(MaxValueValidator(MAX_TOKENS))

    def clean_timezone(self) -> str:
        return _checked_timezone(self.cleaned_data["timezone"])

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        owners = [name for name in ("tier", "tenant", "key") if cleaned.get(name)]
        if {"tier", "tenant", "key"} <= set(self.fields) and len(owners) != 1:
            raise ValidationError("Choose exactly one of tier, tenant and key.")
        return cleaned


class AllowanceFormSet(PaginationInlineFormSet):
    """Rows of one owner, no two for the same thing. (The constraint is on columns that the rows' forms lack.)"""

    identity: ClassVar[tuple[str, ...]] = ("scope", "per", "timezone")

    def clean(self) -> None:
        super().clean()
        seen = set()
        for form in self.forms:
            values = getattr(form, "cleaned_data", {})
            if not values or values.get("DELETE") or not values.get("per"):
                continue
            mine = tuple(str(values.get(name) or getattr(form.instance, name, "")) for name in self.identity)
            if mine in seen:
                raise ValidationError(f"Twice the same: {', '.join(mine)}.")
            seen.add(mine)


class QuotaFormSet(AllowanceFormSet):
    identity = ("per", "timezone")


class KeyBudgetFormSet(AllowanceFormSet):
    """The budget of a key is its tenant's as well."""

    def save_new(self, form: Any, commit: bool = True) -> Any:
        form.instance.tenant_id = self.instance.tenant_id
        return super().save_new(form, commit=commit)


def _checked_timezone(text: str) -> str:
    check_timezone(text)
    return text
