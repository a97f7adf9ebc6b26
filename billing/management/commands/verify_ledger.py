"""manage.py verify_ledger: ledger, rollups and audit log must tell the same sums."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from billing.reconcile import reconcile


class Command(BaseCommand):
    help = "Compare ledger, daily rollups and audit log. Exit status 2 and the differences when they disagree."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        result = reconcile()
        if options["json"]:
            self.stdout.write(json.dumps(result))
        elif not result["differences"]:
            self.stdout.write(f"{result['requests']} requests, {result['cost_usd']} USD: all records agree.")
        else:
            for difference in result["differences"]:
                self.stdout.write(difference)
        if result["differences"]:
            sys.exit(2)
