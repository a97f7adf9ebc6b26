"""doctor: what is wrong with this installation, if anything."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from gatewaysite.diagnosis import diagnose
from tenants.command_line import write_json, write_table


class Command(BaseCommand):
    help = "Check settings, database, store, providers and audit chains. Ends with 1 when a check fails."
    requires_system_checks: list[str] = []  # they are among the findings

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *_args: Any, **options: Any) -> None:
        findings = diagnose()
        failed = any(finding.result == "failed" for finding in findings)
        if options["json"]:
            write_json(self.stdout, {"ok": not failed, "findings": [asdict(finding) for finding in findings]})
        else:
            write_table(
                self.stdout,
                ("check", "result", "detail"),
                [(finding.check, finding.result, finding.detail) for finding in findings],
            )
        if failed:
            sys.exit(1)
