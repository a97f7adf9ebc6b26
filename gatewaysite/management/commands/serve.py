"""serve: the gateway itself."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connection, connections
from django.db.migrations.executor import MigrationExecutor

from gatewaysite.banner import banner
from gatewaysite.config_watch import apply_now
from gatewaysite.server import run_server


class Command(BaseCommand):
    help = "Serve the gateway and the admin over HTTP until it is told to end."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on (default: 8000; 0: any)")
        parser.add_argument("--workers", type=int, default=settings.WORKERS, metavar="N", help="processes (default: 1)")

    def handle(self, *_args: Any, **options: Any) -> None:
        host, port, workers = options["host"], options["port"], options["workers"]
        if workers < 1:
            raise CommandError("--workers must be at least 1.", returncode=2)
        if workers > 1 and not settings.REDIS_URL:
            raise CommandError(
                "--workers above 1 needs REDIS_URL: the embedded store lives in one process.", returncode=2
            )
        _require_migrations()
        if settings.GATEWAY_CONFIG:
            apply_now(Path(settings.GATEWAY_CONFIG))
        connections.close_all()
        if not run_server(
            host=host, port=port, workers=workers, on_listening=lambda bound: self._announce(host, bound)
        ):
            sys.exit(1)

    def _announce(self, host: str, port: int) -> None:
        self.stdout.write(banner(host, port))
        self.stdout.flush()


def _require_migrations() -> None:
    try:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as error:
        raise CommandError(f"The database does not answer ({type(error).__name__}): see DATABASE_URL.") from error
    if missing:
        raise CommandError(f"{len(missing)} migration(s) are not applied: run `manage.py migrate` first.")
