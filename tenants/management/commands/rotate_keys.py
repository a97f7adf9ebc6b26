"""rotate_keys: new secrets under the same ids; for the overlap, old and new both work."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone

from tenants.command_line import current_actor, duration, moment, refused, tenant_named, write_json
from tenants.models import ApiKey
from tenants.selectors import keys_with_secrets_before, live_keys
from tenants.services import IssuedKey, rotate_key


class Command(BaseCommand):
    help = "Give keys new secrets. The ids stay; the old secrets work until the overlap ends."

    def add_arguments(self, parser: CommandParser) -> None:
        chosen = parser.add_mutually_exclusive_group(required=True)
        chosen.add_argument("--key", metavar="ID", help="this key")
        chosen.add_argument("--tenant", metavar="SLUG", help="all live keys of this tenant")
        chosen.add_argument("--older-than", type=duration, metavar="90d", help="live keys with an older secret")
        parser.add_argument(
            "--overlap", type=duration, default=timedelta(hours=24), metavar="24h", help="0h: the old secret ends now"
        )
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument("--dry-run", action="store_true", help="say which, and change nothing")

    def handle(self, *_args: Any, **options: Any) -> None:
        keys = _chosen(options)
        actor, overlap = current_actor(), options["overlap"]
        try:
            with transaction.atomic():
                issued = [rotate_key(key=key, overlap=overlap, actor=actor) for key in keys]
                transaction.set_rollback(options["dry_run"])
        except ValidationError as error:
            raise refused(error) from error
        dry = options["dry_run"]
        if options["json"]:
            write_json(self.stdout, [_as_json(each, dry) for each in issued])
            return
        self.stderr.write(f"{'Would rotate' if dry else 'Rotated'} {len(issued)} key(s).")
        for each in issued:
            ends = moment(each.overlap_ends_at)
            self.stdout.write(f"{each.key.id}  {'-' if dry else each.secret}  old secret ends {ends}")


def _chosen(options: dict[str, Any]) -> list[ApiKey]:
    if options["key"]:
        key = ApiKey.objects.filter(id=options["key"]).first()
        if key is None:
            raise CommandError(f"There is no key {options['key']!r}.")
        return [key]
    if options["tenant"]:
        return list(live_keys(tenant=tenant_named(options["tenant"])))
    return list(keys_with_secrets_before(timezone.now() - options["older_than"]))


def _as_json(issued: IssuedKey, dry: bool) -> dict[str, Any]:
    return {
        "id": issued.key.id,
        "secret": None if dry else issued.secret,
        "overlap_ends_at": moment(issued.overlap_ends_at),
    }
