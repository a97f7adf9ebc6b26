"""apply_config FILE: makes the configuration as the file says, whole or not at all."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from gatewaysite.config_apply import apply_config
from gatewaysite.config_file import ConfigFileError, read_config_file
from tenants.command_line import current_actor, write_json


class Command(BaseCommand):
    help = "Apply a configuration file (docs/configuration.md). Applying it twice changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--prune", action="store_true", help="also take away what the file does not name")
        parser.add_argument("--json", action="store_true", help="print the changes as JSON")
        parser.add_argument("--dry-run", action="store_true", help="print what would change, and change nothing")

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            read = read_config_file(options["file"])
            outcome = apply_config(read, actor=current_actor(), prune=options["prune"], dry_run=options["dry_run"])
        except ConfigFileError as error:
            faults = "\n".join(f"  {fault}" for fault in error.faults)
            raise CommandError(f"{options['file'].name} was not applied:\n{faults}") from error
        for note in outcome.notes:
            self.stderr.write(f"note: {note}")
        if options["json"]:
            write_json(self.stdout, [asdict(change) for change in outcome.changes])
            return
        for change in outcome.changes:
            self.stdout.write(change.line())
        done = "would change" if options["dry_run"] else "changed"
        self.stderr.write(f"{len(outcome.changes)} {done}." if outcome.changes else "Nothing to change.")
