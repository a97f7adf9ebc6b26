"""manage.py export_audit: the audit log as JSON lines, for archives and for checking offline."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.canonical import canonical
from audit.selectors import exported


class Command(BaseCommand):
    help = "Print audit events as JSON lines, each with its place in its chain. audit/verifier.py checks the output."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", metavar="SLUG", default="", help="only this tenant's events")
        parser.add_argument("--from", dest="start", metavar="DATE", help="from this day on (UTC)")
        parser.add_argument("--to", dest="end", metavar="DATE", help="before this day (UTC)")
        parser.add_argument("--json", action="store_true", help="accepted for uniformity: the output is JSON lines")

    def handle(self, *args: Any, **options: Any) -> None:
        start, end = _day(options["start"]), _day(options["end"])
        for event in exported(tenant=options["tenant"], start=start, end=end):
            self.stdout.write(canonical(event))


def _day(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        raise CommandError(f"'{text}' is no date such as 2026-01-31.", returncode=2) from None
