"""revoke_keys: ends keys for good; every worker refuses them within a second."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from tenants.command_line import current_actor, moment, tenant_named, write_json
from tenants.models import ApiKey
from tenants.services import revoke_keys


class Command(BaseCommand):
    help = "Revoke keys. This cannot be taken back."

    def add_arguments(self, parser: CommandParser) -> None:
        chosen = parser.add_mutually_exclusive_group(required=True)
        chosen.add_argument("--key", metavar="ID", help="this key")
        chosen.add_argument("--tenant", metavar="SLUG", help="all keys of this tenant")
        parser.add_argument("--reason", default="", help="kept in the audit log")
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument("--dry-run", action="store_true", help="say which, and change nothing")

    def handle(self, *_args: Any, **options: Any) -> None:
        keys = _chosen(options)
        with transaction.atomic():
            revoked = revoke_keys(keys=keys, actor=current_actor(), reason=options["reason"])
            transaction.set_rollback(options["dry_run"])
        if options["json"]:
            rows = [{"id": key.id, "name": key.name, "revoked_at": moment(key.revoked_at)} for key in revoked]
            write_json(self.stdout, rows)
            return
        self.stderr.write(f"{'Would revoke' if options['dry_run'] else 'Revoked'} {len(revoked)} key(s).")
        for key in revoked:
            self.stdout.write(key.id)


def _chosen(options: dict[str, Any]) -> list[ApiKey]:
    if options["tenant"]:
        return list(tenant_named(options["tenant"]).keys.all())
    key = ApiKey.objects.filter(id=options["key"]).first()
    if key is None:
        raise CommandError(f"There is no key {options['key']!r}.")
    return [key]
