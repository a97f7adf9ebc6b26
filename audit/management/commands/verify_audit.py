"""manage.py verify_audit: check the hash chains of the audit log."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from audit.chain import verify_chains
from audit.chains import chain_of


class Command(BaseCommand):
    help = "Check the hash chains of the audit log. Exit status 2 and the first bad event when one is broken."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", metavar="SLUG", help="only the chain this tenant's events are in")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        chains = [chain_of(options["tenant"])] if options["tenant"] else None
        count, broken = verify_chains(chains, lambda read: self.stderr.write(f"{read} events read"))
        if options["json"]:
            self.stdout.write(
                json.dumps({"events": count, "ok": not broken, "broken": [asdict(item) for item in broken]})
            )
        elif not broken:
            self.stdout.write(f"{count} events verified, every chain holds.")
        else:
            for item in broken:
                self.stdout.write(f"Chain {item.chain} is broken at seq {item.seq} (event {item.id}): {item.why}.")
        if broken:
            sys.exit(2)
