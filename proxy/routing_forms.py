"""The forms of providers and models in the admin."""

from __future__ import annotations

import re
from typing import Any

from django.core.exceptions import ValidationError

from audit.redaction import is_secret
from proxy.base_urls import fault_of_base_url
from proxy.models import Provider
from proxy.providers.base import adapters
from tenants.secret_fields import KeepsSecrets, SecretField, forget_field

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_HEADER_VALUE = re.compile(r"[\t -~]{0,4096}")


class ProviderForm(KeepsSecrets):
    """A provider with its credential, which goes in and never comes out."""

    secrets = ("api_key",)
    api_key = SecretField(label="Credential")
    forget_api_key = forget_field("Remove the stored credential")

    class Meta:
        model = Provider
        fields = (
            "name",
            "kind",
            "base_url",
            "api_key",
            "region",
            "api_version",
            "headers",
            "enabled",
            "timeout_connect",
            "timeout_first_byte",
            "timeout_idle",
            "timeout_total",
            "max_attempts",
            "backoff",
            "max_backoff",
            "breaker_failures",
            "breaker_window",
            "breaker_open_for",
            "breaker_close_after",
            "rpm",
            "tpm",
            "concurrency",
        )

    def clean_base_url(self) -> str:
        url: str = self.cleaned_data["base_url"]
        if url and (fault := fault_of_base_url(url)):
            raise ValidationError(f"The address {fault}.")
        return url

    def clean_headers(self) -> Any:
        headers = self.cleaned_data["headers"]
        if headers in (None, ""):
            return {}
        if not isinstance(headers, dict):
            raise ValidationError('Write an object of texts, such as {"x-team": "search"}.')
        for name, value in headers.items():
            if not _HEADER.fullmatch(name) or not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value):
                raise ValidationError(f"{name[:50]!r} is no header with a printable ASCII value.")
            if is_secret(name) or is_secret(name.removeprefix("proxy-").removeprefix("Proxy-")):
                raise ValidationError(f"{name} carries a credential, and headers are shown: use the field Credential.")
        return headers

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        adapter = adapters().get(cleaned.get("kind") or "")
        if adapter is None or cleaned.get("base_url") or "base_url" in self.errors:
            return cleaned
        if adapter.default_base_url is None:
            self.add_error("base_url", "This kind has no address of its own.")
        elif adapter.needs_region and not cleaned.get("region"):
            self.add_error("region", "The address of this kind needs the region.")
        return cleaned
