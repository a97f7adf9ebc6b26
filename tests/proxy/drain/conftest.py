"""A store, a shard of its own for each test, and drains that end with it."""

import itertools
import os
from collections.abc import AsyncIterator, Callable

import pytest
from asgiref.sync import sync_to_async

from proxy.drain import Drain
from proxy.embedded_store import EmbeddedStore
from proxy.redis_store import RedisStore
from proxy.store import Store
from tenants.models import Tenant
from tests.recording import close_connection

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
def new_shard() -> Callable[[], int]:
    return lambda: next(_shards)


@pytest.fixture
def shard(new_shard: Callable[[], int]) -> int:
    return new_shard()


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
