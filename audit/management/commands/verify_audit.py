"""verify_audit: check the hash chains of the audit log."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.chain import Report, verify_chains
from audit.chains import chain_of
from audit.models import AuditEvent
from audit.verifier import Anchors, read_heads


class Command(BaseCommand):
    help = (
        "Check the hash chains of the audit log: exit status 0 when every event is where and what it was recorded as, "
        "2 with the first bad event of each chain that does not hold."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", metavar="SLUG", help="only the chain that this tenant's events are in")
        parser.add_argument(
            "--checkpoint",
            metavar="FILE",
            type=Path,
            help="what verify_audit --json printed earlier, kept elsewhere: the log must still hold all it held then",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object, which is a checkpoint too")

    def handle(self, *_args: Any, **options: Any) -> None:
        chains = [_chain_of_tenant(options["tenant"])] if options["tenant"] else None
        anchors = _anchors(options["checkpoint"]) if options["checkpoint"] else None
        report = verify_chains(chains, anchors, lambda read: self.stderr.write(f"{read} events read"))
        if options["json"]:
            self.stdout.write(json.dumps({"ok": report.ok} | asdict(report)))
        else:
            self._tell(report)
        if not report.ok:
            sys.exit(2)

    def _tell(self, report: Report) -> None:
        for broken in report.broken:
            sentence = str(broken)
            self.stdout.write(f"{sentence[0].upper()}{sentence[1:]}.")
        if report.ok:
            self.stdout.write(f"{report.events} events in {len(report.heads)} chains: every chain holds.")


def _chain_of_tenant(slug: str) -> int:
    """A name without events is a typing error, or all its events are gone: neither may look like a chain that holds."""
    if not AuditEvent.objects.filter(tenant=slug).exists():
        raise CommandError(f"--tenant {slug}: the log holds no event of this tenant", returncode=2)
    return chain_of(slug)


def _anchors(path: Path) -> Anchors:
    try:
        return read_heads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CommandError(f"--checkpoint {path}: {error}", returncode=2) from None
