"""list_keys: all API keys, without anything that could be used as one."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from tenants.command_line import moment, tenant_named, write_json, write_table
from tenants.models import ApiKey
from tenants.selectors import keys_for_listing


class Command(BaseCommand):
    help = "List API keys."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", metavar="SLUG", help="only this tenant's")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *_args: Any, **options: Any) -> None:
        tenant = tenant_named(options["tenant"]) if options["tenant"] else None
        keys = list(keys_for_listing(tenant=tenant))
        if options["json"]:
            write_json(self.stdout, [_as_json(key) for key in keys])
            return
        columns = ("id", "tenant", "name", "state", "scopes", "last 4", "expires", "last used")
        write_table(self.stdout, columns, [_as_row(key) for key in keys])


def _state(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.expires_at is not None and key.expires_at <= timezone.now() else "active"


def _last4(key: ApiKey) -> str:
    current = [secret.last4 for secret in key.secrets.all() if secret.expires_at is None]
    return current[0] if current else ""


def _as_row(key: ApiKey) -> tuple[Any, ...]:
    return (
        key.id,
        key.tenant.slug,
        key.name,
        _state(key),
        ",".join(key.scopes),
        _last4(key),
        moment(key.expires_at),
        moment(key.last_used_at),
    )


def _as_json(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "tenant": key.tenant.slug,
        "name": key.name,
        "state": _state(key),
        "scopes": key.scopes,
        "models": key.allowed_models,
        "cidrs": key.cidrs,
        "last4": _last4(key),
        "created_at": moment(key.created_at),
        "expires_at": moment(key.expires_at),
        "revoked_at": moment(key.revoked_at),
        "last_used_at": moment(key.last_used_at),
        "secrets": [
            {"last4": row.last4, "created_at": moment(row.created_at), "expires_at": moment(row.expires_at)}
            for row in key.secrets.all()
        ],
    }
