"""From stream to record: everything once, in order, whatever goes wrong on the way."""

import asyncio
import itertools
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, transaction

from audit import recorder
from audit.chain import verify_chains
from audit.models import AuditEvent, ChainHead
from audit.recorder import record
from billing.models import LedgerEntry, UsageRollup
from billing.reconcile import compare_books
from proxy import shard_ownership
from proxy.drain import GROUP, Drain
from proxy.drain_write import read_entry, write_batch
from proxy.embedded_store import EmbeddedStore
from proxy.errors import StoreUnavailable
from proxy.redis_keys import dead_key, drain_lock_key, stream_key
from proxy.redis_store import RedisStore
from proxy.store import Store
from tenants.models import Tenant
from tests.recording import close_connection, encoded, request_event, stream_entry

pytestmark = pytest.mark.django_db(transaction=True)

REDIS_URL = os.environ["REDIS_URL"]
_shards = itertools.count(100)  # a shard is a chain, and a chain is one byte


@pytest.fixture(params=["embedded", pytest.param("redis", marks=pytest.mark.skipif(not REDIS_URL, reason="no Redis"))])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    opened = EmbeddedStore() if request.param == "embedded" else RedisStore(REDIS_URL, timeout_ms=5000)
    await opened.start()
    yield opened
    await opened.close()


@pytest.fixture(autouse=True)
async def _no_connection_stays_open(transactional_db: None) -> AsyncIterator[None]:
    """Of the thread that sync_to_async works in."""
    yield
    await sync_to_async(close_connection)()


@pytest.fixture
def shard() -> int:
    return next(_shards)


@pytest.fixture
def acme(transactional_db: None) -> Tenant:
    return Tenant.objects.create(slug="acme", name="Acme")


@pytest.fixture
async def drains(store: Store) -> AsyncIterator[Callable[..., Drain]]:
    """Makes drains, and ends them after the test."""
    made: list[Drain] = []

    def make(*shards: int, on: Store = store) -> Drain:
        made.append(Drain(on, shards))
        return made[-1]

    yield make
    for drain in made:
        await drain.finish()


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


# ---------------------------------------------------------------- the straight way


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


async def test_more_than_one_batch_and_more_than_one_shard(store, acme, drains):
    shards = [next(_shards) for _ in range(3)]
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
        await until(AuditEvent.objects.filter(id=entry["id"]).aexists)
        took.append(time.monotonic() - began)
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


# ---------------------------------------------------------------- crashes


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


async def test_wherever_the_store_goes_away_everything_is_recorded_once(acme):
    for dies_at in range(1, 40):
        store, shard = DyingStore(10_000), next(_shards) % 100 + 100
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


# ---------------------------------------------------------------- the database


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
    await until(lambda: _empty(store, shard))
    await drain.finish()
    await running
    assert (await recorded(shard))[1:] == [first["id"], second["id"]]


async def _empty(store: Store, shard: int) -> bool:
    return await left(store, shard) == (0, 0)


async def test_a_batch_gives_way_when_it_and_a_change_wait_for_each_other(store, acme, drains):
    """A change of the control plane locks chains in any order; it must not be the one that the database ends."""
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    low, high = sorted((next(_shards), next(_shards)))
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
    await until(lambda: _empty(store, high))
    await drain.finish()
    await running
    assert [len(await recorded(chain)) for chain in (low, high)] == [3, 3]


# ---------------------------------------------------------------- entries that cannot be written


MALFORMED = [
    b"",
    b"not json",
    b"{}",
    b'{"id": "x", "time_ms": "soon"}',
    encoded(stream_entry(1, "acme", id="too short")),
    encoded(stream_entry(1, "acme", envelope={"id": "01900000-0000-7000-8000-000000000000"})),
    encoded(stream_entry(1, "acme", envelope={"time_ms": -1})),
    encoded(stream_entry(1, "acme", envelope={"cost_nano": -5})),
    encoded(stream_entry(1, "acme", envelope={"cost_nano": 2**63})),
    encoded(stream_entry(1, "acme", input_tokens=2**63)),
    encoded(stream_entry(1, "acme", http_status=70000)),
    encoded(stream_entry(1, "acme", fallback_used="yes")),
    encoded(stream_entry(1, "acme", time="yesterday")),
    b'{"e": "\xff"}',
    b'{"e": "\\ud800"}',
]


async def test_malformed_entries_are_set_aside_and_hold_nothing_up(store, shard, acme, drains):
    good = stream_entry(acme.pk, "acme")
    await put(store, shard, *MALFORMED, good)
    drain = drains(shard)
    await drain.drain_all()
    assert await recorded(shard) == [good["id"]]
    assert (drain.stats.written, drain.stats.dead) == (1, len(MALFORMED))
    dead = await store.command("XRANGE", dead_key(shard), "-", "+")
    assert [fields[:2] for _, fields in dead] == [[b"e", raw] for raw in MALFORMED]
    assert await left(store, shard) == (0, 0)


async def test_texts_that_columns_cannot_hold_are_recorded_all_the_same(store, shard, acme, drains):
    odd = stream_entry(acme.pk, "acme", user="a\0b" * 400, model_requested="m\0" * 200, latency_ms=2**40)
    await put(store, shard, odd)
    await drains(shard).drain_all()
    assert await recorded(shard) == [odd["id"]]
    row = await LedgerEntry.objects.aget()
    assert len(row.user) == 512
    assert row.user.startswith("a\ufffdba")
    assert row.latency_ms == 2**31 - 1


async def test_an_entry_that_the_ledger_refuses_is_audited_and_set_aside(store, shard, acme, drains):
    """Its tenant was deleted while the request ran."""
    orphan, good = stream_entry(acme.pk + 1000, "gone"), stream_entry(acme.pk, "acme")
    await put(store, shard, orphan, good)
    drain = drains(shard)
    await drain.drain_all()
    assert await recorded(shard) == [orphan["id"], good["id"]]
    assert await ledger_ids() == {good["id"]}
    assert await store.command("XLEN", dead_key(shard)) == 1
    assert await left(store, shard) == (0, 0)


async def test_a_listener_that_fails_costs_no_event(store, shard, acme, drains, monkeypatch):
    poison = stream_entry(acme.pk, "acme", user="poison")
    good = stream_entry(acme.pk, "acme")

    def fails_for_poison(events):
        if any(event.body.get("user") == "poison" for event in events):
            raise KeyError("payload")

    monkeypatch.setattr(recorder, "listeners", [fails_for_poison])
    await put(store, shard, poison, good)
    await drains(shard).drain_all()
    assert sorted(await recorded(shard)) == sorted([poison["id"], good["id"]])
    assert await ledger_ids() >= {good["id"]}
    assert await store.command("XLEN", dead_key(shard)) == 1


# ---------------------------------------------------------------- ownership


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
    await until(lambda: _empty(store, shard))
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
    await until(lambda: _empty(store, shard))
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
