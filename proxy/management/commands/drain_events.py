"""manage.py drain_events: the process that writes events from Redis into the database."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from proxy.config import Config
from proxy.drain import Drain
from proxy.errors import StoreUnavailable
from proxy.redis_store import open_store
from tenants.shards import SHARDS


class Command(BaseCommand):
    help = "Write audit events, ledger and reports from the event streams, until stopped. Run one or more."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="write what is there now, then end")
        parser.add_argument("--json", action="store_true", help="print the number of events written as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.REDIS_URL:
            raise CommandError("Without REDIS_URL the server drains its own events.", returncode=2)
        try:
            written = asyncio.run(_drain(once=options["once"]))
        except StoreUnavailable as error:
            raise CommandError(f"Redis is not reachable: {error}") from error
        if options["json"]:
            self.stdout.write(json.dumps({"written": written}))
        else:
            self.stderr.write(f"{written} events written.")


async def _drain(*, once: bool) -> int:
    store = open_store(Config(redis_url=settings.REDIS_URL))
    await store.start()
    drain = Drain(store, range(SHARDS))
    try:
        if once:
            return await drain.once()
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        running = asyncio.ensure_future(drain.run())
        await stop.wait()
        await drain.finish()
        await running
        return drain.written
    finally:
        await store.close()
