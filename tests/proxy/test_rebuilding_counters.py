"""After the store lost its data, quotas and budgets are counted on from where the ledger says they stood."""

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction

from audit import recorder
from billing.ledger import post
from billing.models import Budget, Quota
from proxy.admission import read_limits
from proxy.config import Config
from proxy.counter_check import check_counters
from proxy.counters import counters
from proxy.drain import Drain
from proxy.drain_batch import write_taken
from proxy.embedded_store import EmbeddedStore
from proxy.errors import Unavailable
from proxy.rebuild import drained, newest_entry, rebuild_shard
from proxy.redis_keys import counter_key, epoch_key, key_owner, late_key, tenant_owner, user_owner
from proxy.settle import settle
from proxy.snapshot import Snapshot
from proxy.snapshot_loader import load_keys, load_snapshot
from tenants.models import Tenant
from tenants.services import create_key, create_tenant
from tests.proxy.limits.conftest import Side, ask
from tests.recording import close_connection, encoded, posting, stream_entry

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Place:
    """Tenant acme with two keys and every kind of counter, on a store that is drained."""

    side: Side
    tenant: Tenant
    keys: dict[str, Any]
    snapshot: Snapshot
    drain: Drain

    @property
    def shard(self) -> int:
        return self.tenant.shard

    async def call(self, key: str | None, user: str | None, tokens: int, nano: int) -> None:
        """One request from admission to settlement."""
        spec = self.keys[key] if key else None
        admitted = await ask(self.side, self.spec, spec, user=user, worst_tokens=tokens, worst_nano=nano)
        entry = stream_entry(
            self.tenant.pk,
            "acme",
            at_ms=admitted.now_ms,
            nano=nano,
            id=admitted.event_id,
            key_id=spec.id if spec else None,
            user=user,
            input_tokens=tokens - 1,
            output_tokens=1,
        )
        await settle(self.side, admitted, tokens=tokens, cost_nano=nano, entry=encoded(entry))

    @property
    def spec(self) -> Any:
        return self.snapshot.tenants[self.tenant.pk]

    async def spent(self) -> dict[str, int]:
        """Every counter of the store that says more than nothing."""
        found = {}
        for pattern in ("bu", "qu"):
            for name in await self.side.store.command("KEYS", f"tb:{{s{self.shard:02d}}}:{pattern}:*"):
                found[name.decode()] = int(await self.side.store.command("HGET", name, "s") or 0)
        return {name: spent for name, spent in found.items() if spent}

    async def drained(self) -> None:
        """Everything that was settled so far is in the ledger."""
        assert await drained(self.side.store, self.shard, await newest_entry(self.side.store, self.shard))

    async def lose_everything(self) -> None:
        await self.side.store.command("FLUSHALL")
        self.drain.ownership.forget()


def _tables() -> tuple[Tenant, dict[str, Any], Snapshot]:
    tenant = create_tenant(slug="acme", name="Acme", actor="test")
    app = create_key(tenant=tenant, name="app", actor="test").key
    job = create_key(tenant=tenant, name="job", actor="test").key
    for scope in ("tenant", "key", "user"):
        Budget.objects.create(tenant=tenant, scope=scope, usd=Decimal(5), per="month")
        Budget.objects.create(tenant=tenant, key=app, scope=scope, usd=Decimal(5), per="total", timezone="Asia/Tokyo")
    Quota.objects.create(tenant=tenant, tokens=10_000, per="day")
    Quota.objects.create(key=job, tokens=10_000, per="week", timezone="America/New_York")
    names = {app.pk: "app", job.pk: "job"}
    return tenant, {names[key.id]: key for key in load_keys(None, 10)}, load_snapshot()


@pytest.fixture
async def place(transactional_db: None, tmp_path: Path) -> AsyncIterator[Place]:
    tenant, keys, snapshot = await sync_to_async(_tables)()
    store = EmbeddedStore()
    await store.start()
    side = Side(store, Config(spool_dir=str(tmp_path)))
    drain = Drain(store, [tenant.shard])
    running = asyncio.create_task(drain.run())
    place = Place(side, tenant, keys, snapshot, drain)
    assert await rebuild_shard(store, snapshot, tenant.shard)
    yield place
    await drain.finish()
    await running
    await store.close()
    await sync_to_async(close_connection)()


async def some_traffic(place: Place) -> None:
    callers = [("app", "ada"), ("app", "bob"), ("app", None), ("job", "ada"), (None, "eve")]
    for number, (key, user) in enumerate(callers):
        await place.call(key, user, tokens=100 + number, nano=1_000_000 * (number + 1))


async def test_every_counter_comes_back_as_it_was(place: Place):
    await some_traffic(place)
    before = await place.spent()
    assert len(before) == 12  # budgets: 1, 2 keys, 3 users, 2 of the app key, 2 of its users; 2 quotas
    await place.drained()
    await place.lose_everything()
    assert await place.spent() == {}
    assert await rebuild_shard(place.side.store, place.snapshot, place.shard)
    assert await place.spent() == before


async def test_what_is_still_in_the_stream_is_counted_too(place: Place):
    await some_traffic(place)
    before = await place.spent()
    await place.side.store.command("DEL", epoch_key(place.shard), *before)
    assert await rebuild_shard(place.side.store, place.snapshot, place.shard)
    assert await place.spent() == before


async def test_requests_wait_for_the_rebuild_and_go_on_from_there(place: Place):
    await place.call("app", "ada", tokens=100, nano=4_000_000_000)
    await place.drained()
    await place.lose_everything()
    with pytest.raises(Unavailable):
        await place.call("app", "ada", tokens=100, nano=1)
    assert place.side.cold == [place.shard]
    await rebuild_shard(place.side.store, place.snapshot, place.shard)
    await place.call("app", "ada", tokens=100, nano=1_000_000_000)
    states = await read_limits(place.side.store, place.spec, place.keys["app"], "ada")
    assert {state.used for state in states if state.kind == "budget"} == {5_000_000_000}


async def test_a_store_that_lost_nothing_is_left_alone(place: Place):
    await some_traffic(place)
    key = counter_key(place.shard, "bu", 12345, "t1", "total")
    await place.side.store.command("HSET", key, "s", "7")
    epoch = await place.side.store.command("GET", epoch_key(place.shard))
    assert await rebuild_shard(place.side.store, place.snapshot, place.shard)
    assert await place.side.store.command("GET", epoch_key(place.shard)) == epoch
    assert (await place.spent())[key] == 7


async def test_rebuilders_at_the_same_time_count_once(place: Place):
    await some_traffic(place)
    before = await place.spent()
    await place.drained()
    await place.lose_everything()
    done = await asyncio.gather(*(rebuild_shard(place.side.store, place.snapshot, place.shard) for _ in range(4)))
    assert done == [True] * 4
    assert await place.spent() == before


async def test_a_request_settled_while_the_sums_are_read_is_not_forgotten(place: Place):
    """Admitted before the loss, settled after it: its event comes after the place up to which the ledger was read."""
    await some_traffic(place)
    await place.drained()
    admitted = await ask(place.side, place.spec, place.keys["job"], worst_tokens=50, worst_nano=9_000_000)
    before = await place.spent()
    await place.lose_everything()
    entry = stream_entry(
        place.tenant.pk,
        "acme",
        at_ms=admitted.now_ms,
        nano=9_000_000,
        id=admitted.event_id,
        key_id=place.keys["job"].id,
        input_tokens=49,
        output_tokens=1,
    )
    rebuilding = asyncio.create_task(rebuild_shard(place.side.store, place.snapshot, place.shard))
    await settle(place.side, admitted, tokens=50, cost_nano=9_000_000, entry=encoded(entry))
    assert await rebuilding
    after = await place.spent()
    grown = {name: after[name] - spent for name, spent in before.items() if after[name] != spent}
    assert sorted(grown.values()) == [50, 50, 9_000_000, 9_000_000]  # two quotas, the budgets of tenant and key
    assert not await place.side.store.command("EXISTS", late_key(place.shard))


async def test_a_batch_that_is_being_written_when_the_store_loses_its_data_is_counted(place: Place, monkeypatch):
    writing, go_on = threading.Event(), threading.Event()

    def linger(_events: Any) -> None:
        writing.set()
        go_on.wait(10)

    monkeypatch.setattr(recorder, "listeners", [linger])
    await place.call("app", "ada", tokens=100, nano=4_000_000)
    before = await place.spent()
    await asyncio.to_thread(writing.wait, 10)
    await place.lose_everything()
    rebuilding = asyncio.create_task(rebuild_shard(place.side.store, place.snapshot, place.shard))
    await asyncio.sleep(0.1)
    assert not rebuilding.done()
    go_on.set()
    assert await rebuilding
    await counted_again(place)
    assert await place.spent() == before


async def test_a_batch_that_is_written_after_the_rebuild_has_it_done_again(place: Place):
    """Its drain was stopped between reading and writing."""
    await place.drain.finish()
    drain = Drain(place.side.store, [place.shard])
    await drain.drain_all()
    await place.call("app", "ada", tokens=100, nano=4_000_000)
    before = await place.spent()
    taken = await drain._read()
    await place.lose_everything()
    assert await rebuild_shard(place.side.store, place.snapshot, place.shard)
    assert await place.spent() == {}
    await sync_to_async(write_taken)(taken)
    await drain._acknowledge(taken)
    assert not await place.side.store.command("EXISTS", epoch_key(place.shard))
    assert await rebuild_shard(place.side.store, place.snapshot, place.shard)
    assert await place.spent() == before
    await drain.finish()


async def counted_again(place: Place) -> None:
    """The drain may have found its entries gone and asked for another rebuild."""
    await asyncio.sleep(0.2)
    assert await rebuild_shard(place.side.store, place.snapshot, place.shard)


async def test_without_a_drain_it_gives_up_and_lets_nothing_in(place: Place, monkeypatch):
    monkeypatch.setattr("proxy.rebuild.PATIENCE_SECONDS", 0.1)
    await place.drain.finish()
    await place.call("app", "ada", tokens=100, nano=1_000_000)
    await place.side.store.command("DEL", epoch_key(place.shard))
    assert not await rebuild_shard(place.side.store, place.snapshot, place.shard)
    assert not await place.side.store.command("EXISTS", epoch_key(place.shard))


async def test_more_counters_than_one_call_takes(place: Place, monkeypatch):
    monkeypatch.setattr("proxy.rebuild.CHUNK", 3)
    await some_traffic(place)
    before = await place.spent()
    await place.drained()
    await place.lose_everything()
    assert await rebuild_shard(place.side.store, place.snapshot, place.shard)
    assert await place.spent() == before


# ---------------------------------------------------------------- which entries belong to a period


def at(text: str, zone: str = "UTC") -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC if zone == "UTC" else ZoneInfo(zone)).timestamp() * 1000)


@pytest.mark.parametrize(
    ("per", "zone", "now", "inside", "outside"),
    [
        ("day", "UTC", "2026-03-14T12:00", "2026-03-14T00:00", "2026-03-13T23:59:59.999"),
        ("day", "Asia/Tokyo", "2026-03-14T12:00", "2026-03-14T00:00", "2026-03-13T23:59:59.999"),
        ("month", "America/New_York", "2026-03-14T12:00", "2026-03-01T00:00", "2026-02-28T23:59:59.999"),
        ("week", "UTC", "2026-03-14T12:00", "2026-03-09T00:00", "2026-03-08T23:59:59.999"),
        ("hour", "UTC", "2026-03-14T12:30", "2026-03-14T12:00", "2026-03-14T11:59:59.999"),
        ("total", "UTC", "2026-03-14T12:00", "2020-01-01T00:00", None),
    ],
)
def test_a_period_counts_from_its_first_millisecond(per, zone, now, inside, outside):
    tenant = create_tenant(slug="acme", name="Acme", actor="test")
    budget = Budget.objects.create(tenant=tenant, usd=Decimal(5), per=per, timezone=zone)
    users = Budget.objects.create(tenant=tenant, usd=Decimal(5), per=per, timezone=zone, scope="user")
    with transaction.atomic():
        post([posting(tenant.pk, at_ms=at(inside, zone), cost_nano=3, user="ada")])
        if outside:
            post([posting(tenant.pk, at_ms=at(outside, zone), cost_nano=50, user="ada")])
    found = {counter.key: counter.spent for counter in counters(load_snapshot(), tenant.shard, at(now, zone))}
    spent = {name.split(":")[3] + name.split(":")[4]: amount for name, amount in found.items()}
    assert spent == {
        f"{budget.pk}{tenant_owner(tenant.pk)}": 3,
        f"{users.pk}{user_owner(tenant.pk, 'ada')}": 3,
    }


def test_a_revoked_keys_limits_are_not_counted():
    tenant = create_tenant(slug="acme", name="Acme", actor="test")
    key = create_key(tenant=tenant, name="app", actor="test").key
    Quota.objects.create(key=key, tokens=10, per="day")
    assert [key_owner(key.pk) in counter.key for counter in counters(load_snapshot(), tenant.shard, 0)] == [True]
    key.revoked_at = datetime.now(UTC)
    key.save()
    assert counters(load_snapshot(), tenant.shard, 0) == []


# ---------------------------------------------------------------- verify_ledger's look at the counters


async def test_counters_that_agree_with_the_ledger(place: Place):
    await some_traffic(place)
    result = await check_counters(place.side.store, place.snapshot)
    assert (result.checked, result.differences) == (12, [])


async def test_a_counter_that_says_something_else_is_named(place: Place):
    await some_traffic(place)
    name = next(name for name in await place.spent() if ":bu:" in name)
    await place.side.store.command("HINCRBY", name, "s", "1")
    result = await check_counters(place.side.store, place.snapshot)
    assert len(result.differences) == 1
    assert result.differences[0].startswith(f"{name}: ")
