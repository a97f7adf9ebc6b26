"""top_requests: the requests that cost most."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from billing.command_line import positive
from billing.selectors import dearest_requests
from tenants.command_line import write_json, write_table


class Command(BaseCommand):
    help = "The requests that cost most in the last days."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--days", type=positive, default=7, metavar="N", help="how far back (default: 7)")
        parser.add_argument("--limit", type=positive, default=10, metavar="N", help="how many (default: 10)")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *_args: Any, **options: Any) -> None:
        rows = dearest_requests(datetime.now(UTC) - timedelta(days=options["days"]), options["limit"])
        if options["json"]:
            write_json(self.stdout, rows)
            return
        columns = ("cost_usd", "tenant", "model", "provider", "input_tokens", "output_tokens", "time", "request_id")
        titles = ("USD", "tenant", "model", "provider", "input", "output", "time", "request id")
        write_table(self.stdout, titles, [[row[name] for name in columns] for row in rows])
