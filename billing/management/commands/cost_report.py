"""cost_report: what each tenant cost each day, and how well it went."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from billing.command_line import add_span, span
from billing.selectors import daily_costs
from tenants.command_line import write_json, write_table


class Command(BaseCommand):
    help = "Daily by tenant: requests, spend, tokens, cache-hit, fallback and failure rate, 95th percentile of latency."

    def add_arguments(self, parser: CommandParser) -> None:
        add_span(parser, default_days=7)
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *_args: Any, **options: Any) -> None:
        rows = list(daily_costs(*span(options)))
        if options["json"]:
            write_json(self.stdout, rows)
            return
        columns = (
            ("day", "day"),
            ("tenant", "tenant"),
            ("requests", "requests"),
            ("cost_usd", "USD"),
            ("input_tokens", "input"),
            ("output_tokens", "output"),
            ("cache_hit_rate", "cached"),
            ("fallback_rate", "fallback"),
            ("failure_rate", "failed"),
            ("p95_latency_ms", "p95 ms"),
        )
        write_table(self.stdout, [title for _, title in columns], [[row[name] for name, _ in columns] for row in rows])
