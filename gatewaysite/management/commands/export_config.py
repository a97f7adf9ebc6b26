"""export_config: the configuration in force as a file that apply_config takes; no secret is in it."""

from __future__ import annotations

from typing import Any

import yaml
from django.core.management.base import BaseCommand, CommandParser

from gatewaysite.config_export import HEADING, exported_config
from tenants.command_line import write_json


class Command(BaseCommand):
    help = "Print the configuration as YAML. Secrets are left out: applied here, they stay as they are."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *_args: Any, **options: Any) -> None:
        config = exported_config()
        if options["json"]:
            write_json(self.stdout, config)
            return
        self.stdout.write(HEADING)
        self.stdout.write(yaml.safe_dump(config, sort_keys=False, allow_unicode=True, width=1000))
