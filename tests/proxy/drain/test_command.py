"""drain_events as a process: it ends when told to, and whatever kills it costs nothing."""

import json
import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from proxy.redis_keys import drain_lock_key, stream_key
from tenants.shards import shard_of
from tests.fakes.gateway import Gateway
from tests.recording import encoded, stream_entry

pytestmark = pytest.mark.slow

TENANTS = ("red", "blue", "green")


@pytest.fixture
def place(tmp_path: Path, real_redis_url: str) -> Iterator[Gateway]:
    """Three tenants and no process yet."""
    if not real_redis_url:
        pytest.skip("needs TEST_REDIS_URL")
    tenants = [{"slug": slug, "name": slug.title()} for slug in TENANTS]
    place = Gateway(tmp_path, REDIS_URL=real_redis_url).migrate().apply({"tenants": tenants})
    with redis.Redis.from_url(real_redis_url) as connection:
        connection.flushdb()
    yield place
    place.stop()


def fill(place: Gateway, count: int) -> list[str]:
    """Put events of all tenants into their streams; gives the events' ids."""
    with sqlite3.connect(place.folder / "tollbar.sqlite3") as database:
        ids = dict(database.execute("SELECT slug, id FROM tenants_tenant"))
    made = []
    with redis.Redis.from_url(place.environment["REDIS_URL"]) as connection:
        pipeline = connection.pipeline()
        for number in range(count):
            slug = TENANTS[number % len(TENANTS)]
            entry = stream_entry(ids[slug], slug)
            pipeline.xadd(stream_key(shard_of(slug)), {"e": encoded(entry)})
            made.append(entry["id"])
        pipeline.execute()
    return made


def written(place: Gateway) -> list[str]:
    with sqlite3.connect(place.folder / "tollbar.sqlite3") as database:
        return [row[0] for row in database.execute("SELECT event_id FROM billing_ledgerentry")]


def waiting(place: Gateway) -> int:
    with redis.Redis.from_url(place.environment["REDIS_URL"]) as connection:
        return sum(connection.xlen(stream_key(shard_of(slug))) for slug in TENANTS)


def eventually(done) -> None:
    end = time.monotonic() + 30
    while not done():
        assert time.monotonic() < end, "this did not happen within 30 s"
        time.sleep(0.05)


def test_once_writes_what_is_there_and_ends(place: Gateway):
    made = fill(place, 1200)
    done = place.manage("drain_events", "--once", "--json")
    assert json.loads(done.stdout)["written"] == 1200
    assert sorted(written(place)) == sorted(made)
    assert json.loads(place.manage("drain_events", "--once", "--json").stdout)["written"] == 0
    assert place.manage("verify_audit").returncode == 0
    assert place.manage("verify_ledger").returncode == 0


def test_once_beside_a_running_drain_waits_for_that(place: Gateway):
    process = place.start("drain_events")
    eventually(lambda: _owned(place))
    made = fill(place, 600)
    assert json.loads(place.manage("drain_events", "--once", "--json").stdout)["written"] == 0
    assert sorted(written(place)) == sorted(made)
    assert process.poll() is None


def test_told_to_end_it_writes_what_is_there_and_gives_its_shards_back(place: Gateway):
    process = place.start("drain_events")
    eventually(lambda: _owned(place))
    made = fill(place, 300)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert sorted(written(place)) == sorted(made)
    assert not _owned(place)


def test_killed_again_and_again_it_loses_nothing_and_doubles_nothing(place: Gateway):
    made = []
    for _ in range(4):
        made += fill(place, 1500)
        process = place.start("drain_events")
        eventually(lambda: waiting(place) < 1500)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(5)
        _forget_owner(place)
    place.manage("drain_events", "--once")
    assert sorted(written(place)) == sorted(made)
    assert place.manage("verify_audit").returncode == 0
    assert place.manage("verify_ledger").returncode == 0


def _owned(place: Gateway) -> bool:
    with redis.Redis.from_url(place.environment["REDIS_URL"]) as connection:
        return bool(connection.exists(drain_lock_key(0)))


def _forget_owner(place: Gateway) -> None:
    """The lock of a dead owner runs out after ten seconds; here at once."""
    with redis.Redis.from_url(place.environment["REDIS_URL"]) as connection:
        for shard in range(16):
            connection.delete(drain_lock_key(shard))


def test_two_processes_share_the_shards(place: Gateway):
    place.start("drain_events", "--shards", "0-7")
    place.start("drain_events", "--shards", "8-15")
    made = fill(place, 600)
    eventually(lambda: waiting(place) == 0)
    assert sorted(written(place)) == sorted(made)


def test_without_redis_there_is_nothing_to_drain(tmp_path: Path):
    place = Gateway(tmp_path)
    assert place.manage("drain_events", "--once").returncode == 0
    refused = place.manage("drain_events", check=False)
    assert refused.returncode == 2
    assert "drains its own events" in refused.stderr
    place.stop()


@pytest.mark.parametrize("shards", ["16", "3-1", "a-b", "-1"])
def test_shards_that_do_not_exist_are_a_usage_error(tmp_path: Path, shards: str):
    place = Gateway(tmp_path)
    assert place.manage("drain_events", f"--shards={shards}", check=False).returncode == 2
    place.stop()
