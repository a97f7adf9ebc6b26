"""One cast for the reads: two tenants with keys, two providers, three models, asked through the ASGI application."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

import httpx
import msgspec
import pytest
import redis

from audit.models import AuditEvent
from billing.models import UsageRollup
from proxy import runtime
from proxy.models import ModelAlias, Provider, Target
from tenants.models import ApiKey, Tenant
from tenants.services import create_key, create_tenant


@dataclass
class Cast:
    """Tenants acme and globex; `keys` holds secrets by name, `ids` the public ids."""

    acme: Tenant
    globex: Tenant
    keys: dict[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)

    def add_key(self, tenant: Tenant, name: str, **fields: Any) -> ApiKey:
        issued = create_key(tenant=tenant, name=name, actor="test", **fields)
        self.keys[name], self.ids[name] = issued.secret, issued.key.id
        return issued.key


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    cast = Cast(
        acme=create_tenant(slug="acme", name="Acme", actor="test"),
        globex=create_tenant(slug="globex", name="Globex", actor="test", allowed_models=["fast"]),
    )
    cast.add_key(cast.acme, "app", scopes=["inference", "audit:read"])
    cast.add_key(cast.acme, "plain", scopes=["inference"])
    cast.add_key(cast.acme, "narrow", allowed_models=["smart-*"])
    cast.add_key(cast.globex, "other", scopes=["inference", "audit:read"])
    for provider, models in (("alpha", ("smart-large", "smart-small")), ("beta", ("fast",))):
        account = Provider.objects.create(name=provider, kind="mock")
        for model in models:
            alias = ModelAlias.objects.create(name=model)
            Target.objects.create(alias=alias, provider=account, model="echo")
    return cast


class Gateway(httpx.AsyncClient):
    """The whole ASGI application, asked without a socket in between."""

    def __init__(self, application: Any) -> None:
        self.application = application
        transport = httpx.ASGITransport(app=application, client=("127.0.0.1", 50000))
        super().__init__(transport=transport, base_url="http://127.0.0.1")

    async def ask(self, path: str, key: str | None = None, **options: Any) -> httpx.Response:
        headers = dict(options.pop("headers", {}))
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        return await self.request(options.pop("method", "GET"), path, headers=headers, **options)


@pytest.fixture
def empty_store(real_redis_url: str) -> None:
    if real_redis_url:
        with redis.Redis.from_url(real_redis_url) as connection:
            connection.flushdb()


@pytest.fixture
async def gateway(cast: Cast, empty_store: None) -> AsyncIterator[Gateway]:
    from gatewaysite.asgi import application  # noqa: PLC0415  (needs Django set up)

    async with Gateway(application) as client:
        yield client
    await runtime.shut_down()


@pytest.fixture
async def gateway_without_store(cast: Cast, unused_tcp_port: int) -> AsyncIterator[Gateway]:
    """The application with a Redis that is not there."""
    from gatewaysite.asgi import application  # noqa: PLC0415
    from gatewaysite.data_plane import background_jobs, data_plane_config  # noqa: PLC0415

    config = data_plane_config()
    away = msgspec.structs.replace(config, redis_url=f"redis://127.0.0.1:{unused_tcp_port}/0")
    runtime.configure(away, *background_jobs())
    async with Gateway(application) as client:
        yield client
    await runtime.shut_down()
    runtime.configure(config, *background_jobs())


def add_usage(tenant: Tenant, day: str, **fields: Any) -> UsageRollup:
    defaults = {"model": "fast", "provider": "beta", "requests": 1}
    return UsageRollup.objects.create(tenant=tenant, day=date.fromisoformat(day), **defaults | fields)


def event_id(number: int) -> str:
    """A UUIDv7 that sorts by `number`."""
    return f"01900000-0000-7000-8000-{number:012x}"


def add_event(tenant: str, number: int, body: str, **fields: Any) -> AuditEvent:
    return AuditEvent.objects.create(
        id=event_id(number),
        chain=fields.pop("chain", 3),
        seq=number,
        prev_hash="0" * 64,
        hash=f"{number:064x}",
        time=datetime(2025, 1, 31, tzinfo=UTC),
        tenant=tenant,
        body=body,
        **fields,
    )
