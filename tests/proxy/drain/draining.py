"""What the tests of the drain put into streams, and where they look for it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import sync_to_async

from audit.chain import verify_chains
from audit.models import AuditEvent
from billing.models import LedgerEntry
from billing.reconcile import compare_books
from proxy.drain import GROUP
from proxy.redis_keys import stream_key
from proxy.store import Store, StoreError
from tests.recording import encoded


async def put(store: Store, shard: int, *entries: dict[str, Any] | bytes) -> None:
    for entry in entries:
        raw = entry if isinstance(entry, bytes) else encoded(entry)
        await store.command("XADD", stream_key(shard), "*", "e", raw)


async def left(store: Store, shard: int) -> tuple[int, int]:
    """How many entries the stream holds, and how many of those read are not acknowledged."""
    length = await store.command("XLEN", stream_key(shard))
    pending = await store.command("XPENDING", stream_key(shard), GROUP)
    return length, pending[0]


async def until(done: Callable[[], Awaitable[Any]], seconds: float = 8.0) -> None:
    async with asyncio.timeout(seconds):
        while not await done():  # noqa: ASYNC110  (the database tells nobody)
            await asyncio.sleep(0.02)


@sync_to_async
def recorded(shard: int) -> list[str]:
    return list(AuditEvent.objects.filter(chain=shard).order_by("seq").values_list("id", flat=True))


@sync_to_async
def ledger_ids() -> set[str]:
    return set(LedgerEntry.objects.values_list("event_id", flat=True))


@sync_to_async
def books_agree() -> bool:
    return compare_books().differences.told == [] and verify_chains().ok


async def is_drained(store: Store, shard: int) -> bool:
    try:
        return await left(store, shard) == (0, 0)
    except StoreError:
        return False  # nobody has begun
