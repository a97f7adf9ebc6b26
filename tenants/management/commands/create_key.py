"""create_key TENANT --name NAME: a new API key; its secret is printed once, now."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction
from django.utils import timezone

from tenants.command_line import current_actor, duration, moment, names, refused, tenant_named, write_json
from tenants.scopes import INFERENCE, SCOPES
from tenants.services import create_key


class Command(BaseCommand):
    help = "Make an API key for a tenant and print its secret, which is never shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tenant", metavar="TENANT", help="the tenant's slug")
        parser.add_argument("--name", required=True, help="what the key is for; unique in its tenant")
        parser.add_argument("--expires", type=duration, metavar="90d", help="end of its life from now")
        parser.add_argument("--scopes", nargs="+", metavar="SCOPE", help=f"of: {', '.join(SCOPES)}")
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument("--dry-run", action="store_true", help="check, and make nothing")

    def handle(self, *_args: Any, **options: Any) -> None:
        tenant = tenant_named(options["tenant"])
        expires = options["expires"]
        try:
            with transaction.atomic():
                issued = create_key(
                    tenant=tenant,
                    name=options["name"],
                    scopes=names(options["scopes"], [INFERENCE]),
                    expires_at=timezone.now() + expires if expires is not None else None,
                    actor=current_actor(),
                )
                transaction.set_rollback(options["dry_run"])
        except ValidationError as error:
            raise refused(error) from error
        dry = options["dry_run"]
        if options["json"]:
            key = issued.key
            write_json(
                self.stdout,
                {
                    "id": None if dry else key.id,
                    "secret": None if dry else issued.secret,
                    "tenant": tenant.slug,
                    "name": key.name,
                    "expires_at": moment(key.expires_at),
                },
            )
        elif dry:
            self.stderr.write(f"Would make the key {options['name']!r} of {tenant.slug}.")
        else:
            self.stderr.write(f"Key {issued.key.id} of {tenant.slug}. Its secret is shown this once:")
            self.stdout.write(issued.secret)
