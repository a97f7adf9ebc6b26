"""The connection: one write a tick, replies in order, lost and found again, and its clock."""

import asyncio
import time

import hiredis
import pytest

from proxy.config import Config
from proxy.errors import StoreUnavailable
from proxy.redis_scripts import READ_LIMITS
from proxy.redis_store import OutcomeUnknown, RedisStore, StoreError, open_store
from proxy.store import Store
from tests.proxy.limits.conftest import until
from tests.proxy.limits.own_redis import OwnRedis, own_redis


@pytest.fixture
def redis(tmp_path):
    with own_redis(tmp_path) as server:
        yield server


async def opened(server: OwnRedis, **options) -> RedisStore:
    store = RedisStore(server.url, **options)
    await store.start()
    assert store.up
    return store


async def until_up(store: Store) -> float:
    return await until(lambda: store.up)


async def test_calls_of_one_tick_leave_as_one_write(side):
    async def push(text: str) -> int:
        return await side.command("RPUSH", f"list:{id(side)}", text)

    lengths = await asyncio.gather(*(push(str(i)) for i in range(50)))
    assert lengths == list(range(1, 51))
    assert await side.command("LRANGE", f"list:{id(side)}", "0", "-1") == [b"%d" % i for i in range(50)]
    await side.command("DEL", f"list:{id(side)}")


async def test_every_tick_is_one_write_on_the_wire():
    reads: list[int] = []
    left = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls = hiredis.Reader()
        while data := await reader.read(1 << 20):
            calls.feed(data)
            reads.append(0)
            while call := calls.gets():
                reads[-1] += 1
                writer.write(b"*2\r\n$1\r\n1\r\n$1\r\n0\r\n" if call == [b"TIME"] else b"+OK\r\n")
        writer.close()
        await writer.wait_closed()
        left.set()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    store = RedisStore(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    await store.start()
    reads.clear()
    await asyncio.gather(*(store.command("GET", str(i)) for i in range(200)))
    assert reads == [200]
    await store.close()
    await left.wait()
    server.close()
    await server.wait_closed()


async def test_a_reply_to_a_caller_that_left_goes_to_nobody_else(side):
    leaving = asyncio.ensure_future(side.command("ECHO", "left"))
    staying = asyncio.ensure_future(side.command("ECHO", "stayed"))
    await asyncio.sleep(0)
    leaving.cancel()
    assert await staying == b"stayed"


async def test_a_wrong_call_is_told_apart_from_a_store_that_is_away(side):
    with pytest.raises(StoreError) as refused:
        await side.command("XGROUP", "CREATE", "nothing-here", "g", "0")
    assert not isinstance(refused.value, StoreUnavailable)
    assert side.store.up


async def test_a_script_that_redis_forgot_is_loaded_again(redis):
    store = await opened(redis)
    await store.command("SCRIPT", "FLUSH")
    assert (await store.run(READ_LIMITS, ["e"], []))[0] == b"ok"
    await store.close()


async def test_a_frozen_store_fails_its_calls_soon_and_later_ones_at_once(redis):
    store = await opened(redis)
    redis.freeze()
    began = time.monotonic()
    outcomes = await asyncio.gather(*(store.command("GET", "a") for _ in range(50)), return_exceptions=True)
    assert all(isinstance(outcome, OutcomeUnknown) for outcome in outcomes)
    assert 0.04 < time.monotonic() - began < 0.15
    assert not store.up
    began = time.monotonic()
    for _ in range(100):
        with pytest.raises(StoreUnavailable):
            await store.command("GET", "a")
    assert time.monotonic() - began < 0.05
    redis.thaw()
    assert await until_up(store) < 2.0
    assert await store.command("GET", "a") is None
    await store.close()


async def test_a_busy_loop_is_not_taken_for_a_dead_store(redis):
    store = await opened(redis)
    for _ in range(5):
        call = asyncio.ensure_future(store.command("PING"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        time.sleep(0.2)  # noqa: ASYNC251  (the loop is busy with something else)
        assert await call == b"PONG"
    assert store.up
    await store.close()


async def test_a_killed_store_is_found_again_and_tells_so(redis):
    store = await opened(redis)
    told = []

    async def came_up() -> None:
        told.append(await store.command("DBSIZE"))

    await store.command("SET", "a", "1")
    store.on_up.append(came_up)
    redis.kill()
    await until(lambda: not store.up)
    with pytest.raises(StoreUnavailable):
        await store.command("GET", "a")
    redis.start()
    assert await until_up(store) < 2.0
    await until(lambda: told)
    assert told == [0]
    await store.close()


async def test_a_store_that_is_away_at_start_does_not_hold_up_the_process(redis):
    redis.kill()
    store = RedisStore(redis.url)
    began = time.monotonic()
    await store.start()
    assert time.monotonic() - began < 2.5
    assert not store.up
    redis.start()
    await until_up(store)
    await store.close()


async def test_password_user_and_database_come_from_the_address(tmp_path):
    with own_redis(tmp_path, "--requirepass", "s3cret/with@signs") as server:
        wrong = RedisStore(server.url)
        await wrong.start()
        assert not wrong.up
        await wrong.close()
        store = RedisStore(f"redis://default:s3cret%2Fwith%40signs@127.0.0.1:{server.port}/3")
        await store.start()
        await store.command("SET", "here", "1")
        assert b"db=3" in await store.command("CLIENT", "INFO")
        assert b"name=tollbar" in await store.command("CLIENT", "INFO")
        await store.close()


async def test_its_clock_is_the_stores(side):
    seconds, micros = await side.command("TIME")
    assert abs(side.store.now_ms() - (int(seconds) * 1000 + int(micros) // 1000)) <= 20


async def test_the_clock_follows_a_store_whose_clock_was_set(redis):
    store = await opened(redis)
    for step_ms in (5000, -3_600_000):
        told = store.now_ms() + step_ms
        store.observe_clock(told)
        assert told <= store.now_ms() <= told + 20
    store.observe_clock(store.now_ms() - 50)  # a reply that took its time
    assert store.now_ms() >= told
    await store.close()


async def test_what_waits_for_the_store_is_done_when_it_is_back(redis):
    store = await opened(redis)
    await store.command("SET", "e", "epoch")
    redis.freeze()
    with pytest.raises(OutcomeUnknown):
        await store.command("PING")
    store.run_later(READ_LIMITS, ["e"], [])
    assert len(store._later) == 1
    redis.thaw()
    await until_up(store)
    await until(lambda: not store._later)
    await store.close()


@pytest.mark.parametrize("url", ["redis+cluster://a:1", "redis+sentinel://a:1"])
def test_an_address_that_is_not_supported_yet_says_so(url):
    with pytest.raises(ValueError, match="not supported yet"):
        open_store(Config(redis_url=url))


async def test_without_an_address_the_store_is_embedded():
    store = open_store(Config())
    await store.start()
    assert await store.command("PING") == b"PONG"
    await store.close()


async def test_a_replica_is_left_for_the_primary_that_its_address_leads_to(redis):
    store = await opened(redis)
    await store.command("REPLICAOF", "127.0.0.1", "1")
    with pytest.raises(StoreUnavailable, match="READONLY"):
        await store.command("SET", "a", "1")
    assert not store.up
    await until_up(store)
    await store.command("REPLICAOF", "NO", "ONE")
    assert await store.command("SET", "a", "1") == b"OK"
    await store.close()
