"""The form of webhook receivers in the admin."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError

from tenants.form_fields import LinesField, check_glob
from tenants.secret_fields import KeepsSecrets, SecretField
from webhooks.models import Endpoint


class EndpointForm(KeepsSecrets):
    """An empty secret is made for a new receiver and kept for an old one."""

    secrets = ("secret",)
    secret = SecretField(label="Signing secret")
    events = LinesField(
        initial=["*"], check=check_glob, help_text="Event types, one a line; globs such as request.*; * is all."
    )

    class Meta:
        model = Endpoint
        fields = ("tenant", "url", "events", "secret", "enabled")

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"].strip()
        if fault := fault_of_receiver(url, private_allowed=settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS):
            raise ValidationError(f"The address {fault}.")
        taken = Endpoint.objects.filter(tenant_id=self.instance.tenant_id, url=url).exclude(pk=self.instance.pk)
        if self.instance.pk and taken.exists():
            raise ValidationError("This tenant has this receiver already.")
        return url


def fault_of_receiver(url: str, *, private_allowed: bool) -> str | None:
    """Why `url` cannot receive deliveries; None when it can. Names are resolved and checked at each attempt."""
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        return "must be printable ASCII without spaces and backslashes"
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return "is no URL"
    if parts.scheme != "https" and not (private_allowed and parts.scheme == "http"):
        return "must begin with https://"
    if not host or "@" in parts.netloc or parts.fragment:
        return "must have a host, and neither a user name nor a fragment"
    return None if private_allowed or not _is_private(host) else "is one of a private network"


def _is_private(host: str) -> bool:
    if host == "localhost" or host.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return False
