"""Whatever crashes or is away while events are drained, each is written once."""

import asyncio
import time
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, transaction

from audit.models import ChainHead
from audit.recorder import record
from billing.models import UsageRollup
from proxy.drain import GROUP, Drain
from proxy.drain_write import read_entry, write_batch
from proxy.embedded_store import EmbeddedStore
from proxy.errors import StoreUnavailable
from proxy.redis_keys import dead_key, drain_lock_key, stream_key
from tests.proxy.drain.draining import books_agree, is_drained, left, put, recorded, until
from tests.recording import encoded, request_event, stream_entry

pytestmark = pytest.mark.django_db(transaction=True)


async def test_an_event_that_was_written_before_is_written_once(store, shard, acme, drains):
    """The spool, or a worker that was not sure, sends an event twice."""
    entry = stream_entry(acme.pk, "acme")
    await put(store, shard, entry, entry)
    await drains(shard).drain_all()
    await put(store, shard, entry)
    await drains(shard).drain_all()
    assert await recorded(shard) == [entry["id"]]
    assert (await UsageRollup.objects.aget()).requests == 1


async def test_a_crash_after_reading_leaves_everything_to_the_next_owner(store, shard, acme, drains):
    entries = [stream_entry(acme.pk, "acme") for _ in range(4)]
    await put(store, shard, *entries)
    await store.command("XGROUP", "CREATE", stream_key(shard), GROUP, "0")
    await store.command("XREADGROUP", "GROUP", GROUP, GROUP, "COUNT", "3", "STREAMS", stream_key(shard), ">")
    await drains(shard).drain_all()
    assert await recorded(shard) == [entry["id"] for entry in entries]
    assert await left(store, shard) == (0, 0)


async def test_a_crash_after_the_commit_doubles_nothing(store, shard, acme, drains):
    entries = [stream_entry(acme.pk, "acme") for _ in range(3)]
    await put(store, shard, *entries)
    await store.command("XGROUP", "CREATE", stream_key(shard), GROUP, "0")
    await store.command("XREADGROUP", "GROUP", GROUP, GROUP, "STREAMS", stream_key(shard), ">")
    await sync_to_async(write_batch)([(shard, read_entry(encoded(entry))) for entry in entries])
    await drains(shard).drain_all()
    assert await recorded(shard) == [entry["id"] for entry in entries]
    assert (await UsageRollup.objects.aget()).requests == 3
    assert await left(store, shard) == (0, 0)


async def test_a_crash_between_deletion_and_acknowledgement_leaves_nothing_behind(store, shard, acme, drains):
    await put(store, shard, stream_entry(acme.pk, "acme"))
    await store.command("XGROUP", "CREATE", stream_key(shard), GROUP, "0")
    reply = await store.command("XREADGROUP", "GROUP", GROUP, GROUP, "STREAMS", stream_key(shard), ">")
    await store.command("XDEL", stream_key(shard), reply[0][1][0][0])
    assert await left(store, shard) == (0, 1)
    drain = drains(shard)
    await drain.drain_all()
    assert await left(store, shard) == (0, 0)
    assert drain.stats.dead == 0


async def test_what_was_acknowledged_and_not_deleted_is_found_by_the_next_owner(store, shard, acme, drains):
    """Somebody meddled with the group; whatever the stream holds was perhaps not written."""
    entry = stream_entry(acme.pk, "acme")
    await put(store, shard, entry)
    await store.command("XGROUP", "CREATE", stream_key(shard), GROUP, "0")
    reply = await store.command("XREADGROUP", "GROUP", GROUP, GROUP, "STREAMS", stream_key(shard), ">")
    await store.command("XACK", stream_key(shard), GROUP, reply[0][1][0][0])
    await drains(shard).drain_all()
    assert await recorded(shard) == [entry["id"]]
    assert await left(store, shard) == (0, 0)


class DyingStore(EmbeddedStore):
    """A store that goes away at the `dies_at`th command, and is back after that."""

    def __init__(self, dies_at: int) -> None:
        super().__init__()
        self.remaining = dies_at

    async def command(self, *args: Any) -> Any:
        self.remaining -= 1
        if self.remaining == 0:
            raise StoreUnavailable("gone")
        return await super().command(*args)


async def test_wherever_the_store_goes_away_everything_is_recorded_once(new_shard, acme):
    for dies_at in range(1, 40):
        store, shard = DyingStore(10_000), new_shard() % 100 + 100
        await store.start()
        entries = [stream_entry(acme.pk, "acme") for _ in range(3)]
        await put(store, shard, *entries, b"not an event")
        store.remaining = dies_at
        for _ in range(3):
            drain = Drain(store, [shard])
            try:
                await drain.drain_all()
            except StoreUnavailable:
                await store.command("DEL", drain_lock_key(shard))  # as when the lock of a dead owner runs out
            finally:
                await drain.finish()
        store.remaining = 0  # stays
        ids = await recorded(shard)
        assert [ids.count(entry["id"]) for entry in entries] == [1, 1, 1], f"died at command {dies_at}"
        assert await left(store, shard) == (0, 0), f"died at command {dies_at}"
        assert await store.command("XLEN", dead_key(shard)) >= 1
        await store.close()
    assert await books_agree()


async def test_while_the_database_refuses_events_wait_and_are_written_when_it_is_back(store, shard, acme, drains):
    """Another writer holds the lock of the chain for longer than a batch waits."""
    first, second = stream_entry(acme.pk, "acme"), stream_entry(acme.pk, "acme")
    await sync_to_async(record)([request_event(shard)])
    drain = drains(shard)
    running = asyncio.create_task(drain.run())

    holding, let_go = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def hold() -> None:
        with transaction.atomic():
            ChainHead.objects.filter(chain=shard).update(seq=1)
            loop.call_soon_threadsafe(holding.set)
            asyncio.run_coroutine_threadsafe(let_go.wait(), loop).result(20)
        connection.close()

    held = loop.run_in_executor(None, hold)
    await holding.wait()
    await put(store, shard, first)
    await asyncio.sleep(1.2)
    assert await store.command("XLEN", stream_key(shard)) == 1
    await put(store, shard, second)
    let_go.set()
    await held
    await until(lambda: is_drained(store, shard))
    await drain.finish()
    await running
    assert (await recorded(shard))[1:] == [first["id"], second["id"]]


@pytest.fixture
def own_backend(transactional_db: None) -> int:
    """The connection that the test's fixtures use."""
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has no connections to end")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


async def test_a_database_that_ended_the_connection_is_connected_to_again(store, shard, acme, drains, own_backend):
    drain = drains(shard)
    running = asyncio.create_task(drain.run())
    first, second = stream_entry(acme.pk, "acme"), stream_entry(acme.pk, "acme")
    await put(store, shard, first)
    await until(lambda: is_drained(store, shard))
    assert await sync_to_async(_end_other_connections)(own_backend) >= 1
    await put(store, shard, second)
    await until(lambda: is_drained(store, shard))
    await drain.finish()
    await running
    assert await recorded(shard) == [first["id"], second["id"]]


def _end_other_connections(spared: int) -> int:
    """As a database does that is restarted."""
    others = "datname = current_database() AND pid NOT IN (pg_backend_pid(), %s)"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}", [spared])  # noqa: S608
        return len(cursor.fetchall())


async def test_a_batch_gives_way_when_it_and_a_change_wait_for_each_other(store, new_shard, acme, drains):
    """A change of the control plane locks chains in any order; it must not be the one that the database ends."""
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    low, high = sorted((new_shard(), new_shard()))
    await sync_to_async(record)([request_event(low), request_event(high)])
    drain = drains(low, high)
    loop = asyncio.get_running_loop()

    def change() -> None:
        with transaction.atomic():
            record([request_event(high)])
            asyncio.run_coroutine_threadsafe(fill(), loop).result(10)
            time.sleep(0.3)  # the drain has locked the lower chain meanwhile and waits for the higher
            record([request_event(low)])
        connection.close()

    async def fill() -> None:
        await put(store, low, stream_entry(acme.pk, "acme"))
        await put(store, high, stream_entry(acme.pk, "acme"))

    running = asyncio.create_task(drain.run())
    await loop.run_in_executor(None, change)
    await until(lambda: is_drained(store, high))
    await drain.finish()
    await running
    assert [len(await recorded(chain)) for chain in (low, high)] == [3, 3]
