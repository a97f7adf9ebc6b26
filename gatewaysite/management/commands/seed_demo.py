"""seed_demo: the demo's providers, models, tenants, keys and admin, made once."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from gatewaysite.demo import seed_demo


class Command(BaseCommand):
    help = "Make what the demo needs and is not there yet (DEMO=true only)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="print what would be made, and make nothing")

    def handle(self, *_args: Any, **options: Any) -> None:
        if not settings.DEMO:
            raise CommandError("Set DEMO=true: the demo has a known admin and known secrets.")
        outcome = seed_demo(dry_run=options["dry_run"])
        for change in outcome.changes:
            self.stdout.write(change.line())
        if not outcome.changes:
            self.stderr.write("The demo is there already.")
