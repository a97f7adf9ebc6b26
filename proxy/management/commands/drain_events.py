"""drain_events: the process that writes events from Redis into the database."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error as DatabaseError
from msgspec.structs import asdict

from proxy.config import Config
from proxy.drain import Drain, Stats
from proxy.errors import StoreUnavailable
from proxy.rebuild import drained, newest_entry
from proxy.redis_store import open_store
from proxy.store import Store
from tenants.shards import SHARDS

#: Nothing waits for this process: a reply of many entries may take its time (ms).
STORE_TIMEOUT_MS = 10_000
#: How long --once waits for shards that another process drains (seconds).
OTHERS_SECONDS = 60.0


class Command(BaseCommand):
    help = (
        "Write audit events, ledger and reports from the event streams, until told to end (SIGTERM). Run one process "
        "or more: each shard is drained by one of them, and taken over when that one ends."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="write what is there now, then end")
        parser.add_argument(
            "--shards",
            type=shard_range,
            default=range(SHARDS),
            metavar="FIRST-LAST",
            help=f"only these of the shards 0-{SHARDS - 1}, to share the work between several processes",
        )
        parser.add_argument("--json", action="store_true", help="print at the end what was done as one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        if not settings.REDIS_URL:
            stats = self._nothing_to_do(once=options["once"])
        else:
            try:
                stats = asyncio.run(_drain(options["shards"], once=options["once"]))
            except (StoreUnavailable, DatabaseError) as error:
                raise CommandError(f"Events stay in the stream ({type(error).__name__}): {error}") from error
        if options["json"]:
            self.stdout.write(json.dumps(asdict(stats)))
        else:
            self.stderr.write(f"{stats.written} events written, {stats.dead} set aside.")

    def _nothing_to_do(self, *, once: bool) -> Stats:
        why = "Without REDIS_URL the server's process drains its own events."
        if not once:
            raise CommandError(why, returncode=2)
        self.stderr.write(why)
        return Stats()


def shard_range(text: str) -> range:
    """argparse type: 3, 0-7."""
    first, _, last = text.partition("-")
    try:
        chosen = range(int(first), int(last or first) + 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not like 0-7") from None
    if not chosen or chosen[0] < 0 or chosen[-1] >= SHARDS:
        raise argparse.ArgumentTypeError(f"shards go from 0 to {SHARDS - 1}")
    return chosen


async def _drain(shards: range, *, once: bool) -> Stats:
    store = open_store(Config(redis_url=settings.REDIS_URL, store_timeout_ms=STORE_TIMEOUT_MS))
    await store.start()
    drain = Drain(store, shards)
    try:
        if once:
            await _drain_once(store, drain, shards)
        else:
            await _drain_until_told(drain)
    finally:
        await drain.finish()
        await store.close()
    return drain.stats


async def _drain_once(store: Store, drain: Drain, shards: range) -> None:
    """What is there now: of our shards by us, of those that other processes hold by them."""
    newest = await asyncio.gather(*(newest_entry(store, shard) for shard in shards))
    await drain.drain_all()
    waiting = (drained(store, shard, entry, OTHERS_SECONDS) for shard, entry in zip(shards, newest, strict=True))
    if not all(await asyncio.gather(*waiting)):
        raise CommandError("Other processes hold shards and did not drain them in time.")


async def _drain_until_told(drain: Drain) -> None:
    told, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    running = asyncio.ensure_future(drain.run())
    waiting = asyncio.ensure_future(told.wait())
    await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    drain.stopping.set()
    await running
