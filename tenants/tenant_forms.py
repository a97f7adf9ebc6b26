"""The forms of tenants and of their token issuers in the admin."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.core.exceptions import ValidationError

from tenants.checks import check_name
from tenants.form_fields import LinesField, TicksField, check_glob
from tenants.models import JwtIssuer, Tenant
from tenants.secret_fields import KeepsSecrets, SecretField, forget_field
from tenants.states import LIMIT_FIELDS

#: Symmetric first: they need a shared secret, the others a key set.
SYMMETRIC = ("HS256", "HS384", "HS512")
ALGORITHMS = (*SYMMETRIC, "RS256", "RS384", "RS512", "ES256", "ES384", "EdDSA")


class TenantForm(forms.ModelForm):  # type: ignore[type-arg]
    """Models as lines, and a name that people can read."""

    allowed_models = LinesField(
        label="Models", initial=["*"], check=check_glob, help_text="Globs of what it may call, one a line."
    )

    class Meta:
        model = Tenant
        fields = ("slug", "name", "tier", "priority", "allowed_models", "unpriced", *LIMIT_FIELDS)

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        try:
            check_name(name)
        except ValidationError as error:
            raise ValidationError(error.messages) from error
        return name


class JwtIssuerForm(KeepsSecrets):
    """An issuer checks tokens with a shared secret or with a key set."""

    secrets = ("secret",)
    secret = SecretField(label="Shared secret")
    forget_secret = forget_field("Remove the stored secret")
    algorithms = TicksField(
        names=ALGORITHMS, required=False, help_text="None ticked: HS256 with a secret, RS256 with a key set."
    )

    class Meta:
        model = JwtIssuer
        fields = ("issuer", "audience", "jwks_url", "secret", "forget_secret", "algorithms")

    def clean_jwks_url(self) -> str:
        url: str = self.cleaned_data["jwks_url"]
        if url and (urlsplit(url).scheme not in ("http", "https") or "@" in urlsplit(url).netloc):
            raise ValidationError("Write an http or https address without user name and password.")
        return url

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        has_secret, key_set = bool(cleaned.get("secret")), bool(cleaned.get("jwks_url"))
        if self.errors:
            return cleaned
        if has_secret == key_set:
            said = "Either a shared secret or a key set: not both." if key_set else "Give a shared secret or a key set."
            self.add_error("secret", said)
        elif wrong := [name for name in cleaned["algorithms"] if (name in SYMMETRIC) != has_secret]:
            way = "secret" if has_secret else "key set"
            self.add_error("algorithms", f"{', '.join(wrong)} cannot be checked with a {way}.")
        return cleaned
