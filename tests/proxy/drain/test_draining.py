"""From stream to record, once and in order."""

import asyncio
import time

import pytest

from audit.models import AuditEvent
from billing.models import UsageRollup
from proxy.redis_keys import drain_lock_key
from tests.proxy.drain.draining import books_agree, is_drained, ledger_ids, left, put, recorded, until
from tests.recording import stream_entry

pytestmark = pytest.mark.django_db(transaction=True)


async def test_events_become_audit_events_ledger_entries_and_daily_sums(store, shard, acme, drains):
    entries = [stream_entry(acme.pk, "acme", nano=1_000_000), stream_entry(acme.pk, "acme", nano=500_000)]
    refused = stream_entry(acme.pk, "acme", nano=None, status="refused", envelope={"charged": False})
    await put(store, shard, *entries, refused)
    drain = drains(shard)
    await drain.drain_all()
    assert await recorded(shard) == [entry["id"] for entry in [*entries, refused]]
    assert await ledger_ids() == {entry["id"] for entry in entries}
    rollup = await UsageRollup.objects.aget()
    assert (rollup.requests, rollup.cost_nano, rollup.input_tokens) == (2, 1_500_000, 200)
    assert await books_agree()
    assert await left(store, shard) == (0, 0)
    assert (drain.stats.written, drain.stats.dead) == (3, 0)


async def test_more_than_one_batch_and_more_than_one_shard(store, new_shard, acme, drains):
    shards = [new_shard() for _ in range(3)]
    for number in range(700):
        await put(store, shards[number % 2], stream_entry(acme.pk, "acme"))
    drain = drains(*shards)
    await drain.drain_all()
    assert [len(await recorded(shard)) for shard in shards] == [350, 350, 0]
    assert len(await ledger_ids()) == 700
    assert await books_agree()


async def test_an_event_is_in_the_record_well_within_a_second(store, shard, acme, drains):
    drain = drains(shard)
    running = asyncio.create_task(drain.run())
    await until(lambda: store.command("EXISTS", drain_lock_key(shard)))
    took = []
    for _ in range(5):
        entry = stream_entry(acme.pk, "acme")
        began = time.monotonic()
        await put(store, shard, entry)
        await until(lambda: is_drained(store, shard))
        took.append(time.monotonic() - began)
        assert await AuditEvent.objects.filter(id=entry["id"]).aexists()
    await drain.finish()
    await running
    assert min(took) < 1.0


async def test_the_end_of_the_process_writes_what_is_there(store, shard, acme, drains):
    drain = drains(shard)
    running = asyncio.create_task(drain.run())
    await until(lambda: store.command("EXISTS", drain_lock_key(shard)))
    await put(store, shard, *(stream_entry(acme.pk, "acme") for _ in range(5)))
    await drain.finish()
    await running
    assert len(await recorded(shard)) == 5
    assert not await store.command("EXISTS", drain_lock_key(shard))
