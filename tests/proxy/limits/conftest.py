"""One caller on one store: every test has a shard and ids of its own, so tests on a shared Redis never meet."""

import asyncio
import inspect
import itertools
import random
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from audit.event_id import new_event_id
from proxy.admission import AdmissionRequest, Admitted, admit
from proxy.config import Config
from proxy.embedded_store import EmbeddedStore
from proxy.errors import GatewayError
from proxy.redis_keys import epoch_key, stream_key
from proxy.redis_store import RedisStore
from proxy.snapshot import BudgetSpec, KeySpec, LimitSpec, QuotaSpec, TenantSpec
from proxy.spool import spool_of
from proxy.store import Store

_numbers = itertools.count(random.randrange(10**6, 10**9))


async def until(done: Callable[[], Any], seconds: float = 3.0) -> float:
    """Wait for something that happens elsewhere; gives how long it took (seconds)."""
    began = time.monotonic()
    async with asyncio.timeout(seconds):
        while not ((told := done()) and (await told if inspect.isawaitable(told) else True)):  # noqa: ASYNC110  (nobody tells)
            await asyncio.sleep(0.005)
    return time.monotonic() - began


@dataclass
class Side:
    """What admission and settlement need of a process, and what they told it."""

    store: Store
    config: Config
    cold: list[int] = field(default_factory=list)

    def on_cold(self, shard: int) -> None:
        self.cold.append(shard)

    async def command(self, *args: Any) -> Any:
        return await self.store.command(*args)

    async def events(self, tenant: TenantSpec) -> list[dict[str, Any]]:
        """What the tenant's stream holds."""
        entries = await self.store.command("XRANGE", stream_key(tenant.shard), "-", "+")
        return [msgspec.json.decode(fields[1]) for _, fields in entries]


def new_number() -> int:
    return next(_numbers)


def make_tenant(**fields: Any) -> TenantSpec:
    """A tenant on a shard of its own."""
    limits = LimitSpec(**fields.pop("limits", {}))
    number = new_number()
    defaults: dict[str, Any] = {"shard": number, "slug": f"t{number}", "priority": "normal", "models": ("*",)}
    return TenantSpec(id=number, active=True, unpriced_allowed=False, limits=limits, **(defaults | fields))


def make_key(tenant: TenantSpec, **fields: Any) -> KeySpec:
    limits = LimitSpec(**fields.pop("limits", {}))
    return KeySpec(
        id=f"key{new_number()}",
        name="app",
        tenant_id=tenant.id,
        digests=(),
        scopes=frozenset(),
        models=("*",),
        limits=limits,
        **fields,
    )


def budget(nano: int, per: str = "total", scope: str = "tenant", **fields: Any) -> BudgetSpec:
    return BudgetSpec(id=new_number(), nano=nano, per=per, scope=scope, **fields)


def quota(tokens: int, per: str = "total", **fields: Any) -> QuotaSpec:
    return QuotaSpec(id=new_number(), tokens=tokens, per=per, **fields)


def entry(event_id: str, now_ms: int, **event: Any) -> bytes:
    """A stream entry as the pipeline writes it."""
    document = {
        "id": event_id,
        "time_ms": now_ms,
        "tenant_id": 1,
        "key_pk": None,
        "charged": False,
        "cost_nano": None,
        "price_id": None,
        "webhook_url": None,
        "event": {"id": event_id, "status": "success", "input_tokens": 0, "output_tokens": 0, **event},
    }
    return msgspec.json.encode(document)


def request_of(side: Side, tenant: TenantSpec, key: KeySpec | None = None, **fields: Any) -> AdmissionRequest:
    now_ms = side.store.now_ms()
    event_id = fields.pop("event_id", None) or new_event_id(now_ms)
    defaults: dict[str, Any] = {
        "user": None,
        "expected_tokens": 10,
        "worst_tokens": 10,
        "worst_nano": 100,
        "deadline_ms": now_ms + 60_000,
        "skeleton": entry(event_id, now_ms, status="indeterminate"),
    }
    return AdmissionRequest(event_id=event_id, tenant=tenant, key=key, **(defaults | fields))


async def ask(side: Side, tenant: TenantSpec, key: KeySpec | None = None, **fields: Any) -> Admitted:
    """Admit one request of a caller."""
    return await admit(side, request_of(side, tenant, key, **fields))


def details_of(refused: pytest.ExceptionInfo[GatewayError]) -> dict[str, Any]:
    """The details that a refusal told."""
    assert refused.value.details is not None
    return refused.value.details


def wait_of(refused: pytest.ExceptionInfo[GatewayError]) -> int:
    """The Retry-After that a refusal told (ms)."""
    assert refused.value.retry_after_ms is not None
    return refused.value.retry_after_ms


async def warm(side: Side, tenant: TenantSpec) -> TenantSpec:
    """Set the epoch of the tenant's shard, as a rebuild does."""
    await side.store.command("SET", epoch_key(tenant.shard), f"epoch-{tenant.shard}")
    return tenant


@pytest.fixture(params=["embedded", "redis"])
async def side(request: pytest.FixtureRequest, real_redis_url: str, tmp_path: Path) -> AsyncIterator[Side]:
    """The embedded store, and a real Redis where the suite has one."""
    if request.param == "redis" and not real_redis_url:
        pytest.skip("needs TEST_REDIS_URL")
    store: Store = RedisStore(real_redis_url) if request.param == "redis" else EmbeddedStore()
    await store.start()
    assert store.up
    side = Side(store, Config(spool_dir=str(tmp_path / "spool")))
    yield side
    spool_of(side.config).close()
    await store.close()
