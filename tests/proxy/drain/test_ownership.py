"""Which process drains a shard."""

import asyncio

import pytest

from billing.models import UsageRollup
from proxy import shard_ownership
from proxy.redis_keys import drain_lock_key, stream_key
from proxy.store import Store
from tests.proxy.drain.draining import is_drained, put, recorded, until
from tests.recording import stream_entry

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_shard_has_one_owner_at_a_time(store, shard, acme, drains):
    first, second = drains(shard), drains(shard)
    await first.drain_all()
    await put(store, shard, stream_entry(acme.pk, "acme"))
    await second.drain_all()
    assert second.stats.written == 0
    await first.drain_all()
    assert first.stats.written == 1


async def test_the_shards_of_an_owner_that_fell_silent_are_taken_over(store, shard, acme, drains, monkeypatch):
    monkeypatch.setattr(shard_ownership, "OWNER_MS", 200)
    monkeypatch.setattr(shard_ownership, "ASK_SECONDS", 0.05)
    await drains(shard).drain_all()
    await put(store, shard, stream_entry(acme.pk, "acme"))
    second = drains(shard)
    running = asyncio.create_task(second.run())
    await until(lambda: is_drained(store, shard))
    await second.finish()
    await running
    assert len(await recorded(shard)) == 1


async def test_an_owner_that_renews_keeps_its_shards(store, shard, acme, drains, monkeypatch):
    monkeypatch.setattr(shard_ownership, "OWNER_MS", 600)
    monkeypatch.setattr(shard_ownership, "RENEW_SECONDS", 0.1)
    first, second = drains(shard), drains(shard)
    await first.drain_all()
    running = [asyncio.create_task(drain.run()) for drain in (first, second)]
    await asyncio.sleep(1.0)
    await put(store, shard, stream_entry(acme.pk, "acme"))
    await until(lambda: is_drained(store, shard))
    assert (first.stats.written, second.stats.written) == (1, 0)
    await first.finish()
    await second.finish()
    await asyncio.gather(*running)


async def test_two_owners_at_once_write_every_event_once(store, shard, acme, drains):
    """A process that was stopped for longer than its lock lives goes on as if it still had it."""
    entries = [stream_entry(acme.pk, "acme") for _ in range(40)]
    first, second = drains(shard), drains(shard)
    await first.drain_all()
    await store.command("DEL", drain_lock_key(shard))
    await second.drain_all()
    await put(store, shard, *entries)
    await asyncio.gather(first.step(), second.step())
    await second.step()
    assert sorted(await recorded(shard)) == sorted(entry["id"] for entry in entries)
    assert (await UsageRollup.objects.aget()).requests == 40


async def test_a_store_that_lost_its_data_is_drained_on(store, shard, acme, drains):
    drain = drains(shard)
    running = asyncio.create_task(drain.run())
    await until(lambda: store.command("EXISTS", drain_lock_key(shard)))
    await store.command("DEL", stream_key(shard), drain_lock_key(shard))
    entry = stream_entry(acme.pk, "acme")
    await put(store, shard, entry)
    await until(lambda: _empty_or_absent(store, shard))
    await drain.finish()
    await running
    assert await recorded(shard) == [entry["id"]]


async def _empty_or_absent(store: Store, shard: int) -> bool:
    return not await store.command("XLEN", stream_key(shard))
