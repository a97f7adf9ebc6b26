"""verify_ledger: ledger, rollups, audit log and the counters in the store must tell the same."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from billing.money import nano_to_text
from billing.reconcile import Books, compare_books
from proxy.config import Config
from proxy.counter_check import CounterCheck, check_counters
from proxy.errors import StoreUnavailable
from proxy.redis_store import open_store
from proxy.snapshot import Snapshot
from proxy.snapshot_loader import load_snapshot

STORE_TIMEOUT_MS = 10_000


class Command(BaseCommand):
    help = (
        "Compare the ledger with the daily rollups, the audit log and, with REDIS_URL, the counters of quotas and "
        "budgets. Exit status 2 and the differences when they disagree."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        books = compare_books()
        counters, why_not = self._counters()
        if why_not:
            self.stderr.write(why_not)
        found = books.differences.count + (len(counters.differences) if counters else 0)
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(books, counters, found)))
        else:
            for difference in [*books.differences.told, *(counters.differences if counters else [])]:
                self.stdout.write(difference)
            if books.differences.count > len(books.differences.told):
                self.stdout.write(f"… {books.differences.count} differences in all.")
            if not found:
                total = f"{books.requests} requests, {nano_to_text(books.cost_nano)} USD"
                checked = f" and {counters.checked} counters" if counters else ""
                self.stdout.write(f"{total}: ledger, rollups, audit log{checked} agree.")
        if found:
            sys.exit(2)

    def _counters(self) -> tuple[CounterCheck | None, str]:
        """What the store says, or why that was not looked at."""
        if not settings.REDIS_URL:
            return None, "Counters are not compared: without REDIS_URL they live in the server's process."
        try:
            return asyncio.run(_check(load_snapshot())), ""
        except StoreUnavailable as error:
            return None, f"Counters are not compared: {error}."


async def _check(snapshot: Snapshot) -> CounterCheck:
    store = open_store(Config(redis_url=settings.REDIS_URL, store_timeout_ms=STORE_TIMEOUT_MS))
    await store.start()
    try:
        return await check_counters(store, snapshot)
    finally:
        await store.close()


def _as_json(books: Books, counters: CounterCheck | None, found: int) -> dict[str, Any]:
    return {
        "ok": not found,
        "requests": books.requests,
        "cost_usd": nano_to_text(books.cost_nano),
        "counters_checked": counters.checked if counters else None,
        "differences": [*books.differences.told, *(counters.differences if counters else [])],
        "difference_count": found,
    }
