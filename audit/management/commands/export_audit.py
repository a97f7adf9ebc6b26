"""export_audit: the audit log as JSON lines, for archives and for checking offline (audit/verifier.py)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.selectors import exported


class Command(BaseCommand):
    help = "Print audit events as JSON lines, each with its place in its chain. audit/verifier.py checks the output."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", metavar="SLUG", default="", help="only this tenant's events")
        parser.add_argument("--from", dest="start", metavar="TIME", help="from this day or moment on (UTC)")
        parser.add_argument(
            "--to", dest="end", metavar="TIME", help="to the end of this day, or before this moment (UTC)"
        )
        parser.add_argument("--json", action="store_true", help="changes nothing: the output is JSON lines")

    def handle(self, *_args: Any, **options: Any) -> None:
        start, end = _moment(options["start"]), _moment(options["end"], end_of_day=True)
        for line in exported(tenant=options["tenant"], start=start, end=end):
            self.stdout.write(line)


def _moment(text: str | None, *, end_of_day: bool = False) -> datetime | None:
    """ISO 8601; without an offset it is UTC. A bare day is its beginning, or with `end_of_day` the next one's."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(f"{text!r} is no time such as 2026-01-31 or 2026-01-31T12:00.", returncode=2) from None
    if end_of_day and len(text) == len("2026-01-31"):
        moment += timedelta(days=1)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
