"""Entries that cannot be written hold nothing up, and are kept."""

import pytest

from audit import recorder
from billing.models import LedgerEntry
from proxy.redis_keys import dead_key
from tests.proxy.drain.draining import ledger_ids, left, put, recorded
from tests.recording import encoded, stream_entry

pytestmark = pytest.mark.django_db(transaction=True)


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
