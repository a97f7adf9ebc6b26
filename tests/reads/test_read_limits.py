"""GET /v1/limits and GET /v1/health."""

from decimal import Decimal

import pytest

from billing.models import Budget, Quota


@pytest.fixture
def limited(cast):
    key = cast.add_key(cast.acme, "limited", rpm=10, tpm=1000, concurrency=3)
    Budget.objects.create(tenant=cast.acme, usd=Decimal("12.5"), per="month")
    Budget.objects.create(tenant=cast.acme, key=key, scope="key", usd=Decimal("0.000105"), per="total")
    Quota.objects.create(tenant=cast.acme, tokens=5000, per="day")
    return cast


async def test_every_limit_of_the_key_is_told_and_reading_uses_none_up(gateway, limited):
    first = await gateway.ask("/v1/limits", limited.keys["limited"])
    assert first.status_code == 200
    second = await gateway.ask("/v1/limits", limited.keys["limited"])
    rows = second.json()["data"]
    for row in rows:
        assert list(row) == ["kind", "scope", "window", "limit", "used", "reserved", "remaining", "resets_at"]
    told = {(row["kind"], row["scope"], row["window"]): (row["limit"], row["remaining"]) for row in rows}
    assert told == {
        ("requests", "key", "minute"): (10, 10),
        ("tokens", "key", "minute"): (1000, 1000),
        ("concurrency", "key", "now"): (3, 3),
        ("quota", "tenant", "day"): (5000, 5000),
        ("budget", "tenant", "month"): ("12.500000", "12.500000"),
        ("budget", "key", "total"): ("0.000105", "0.000105"),
    }


async def test_a_period_tells_when_it_begins_again(gateway, limited):
    rows = (await gateway.ask("/v1/limits", limited.keys["limited"])).json()["data"]
    resets = {(row["kind"], row["window"]): row["resets_at"] for row in rows}
    assert resets["quota", "day"].endswith("T00:00:00.000Z")
    assert resets["budget", "month"].endswith("-01T00:00:00.000Z")
    assert resets["budget", "total"] is None


async def test_a_key_without_limits_has_an_empty_list(gateway, cast):
    answer = await gateway.ask("/v1/limits", cast.keys["other"])
    assert answer.json() == {"data": [], "next_cursor": None}


async def test_without_the_store_it_is_503(limited, gateway_without_store):
    answer = await gateway_without_store.ask("/v1/limits", limited.keys["limited"])
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "rate_limit_unavailable"
    assert answer.headers["retry-after"] == "1"


async def test_health_names_the_providers_a_key_can_reach(gateway, cast):
    every = (await gateway.ask("/v1/health", cast.keys["app"])).json()
    assert every["data"] == [
        {"name": name, "state": "closed", "last_probe": None, "p50_ms": None, "p95_ms": None}
        for name in ("alpha", "beta")
    ]
    narrow = (await gateway.ask("/v1/health", cast.keys["narrow"])).json()
    assert [provider["name"] for provider in narrow["data"]] == ["alpha"]
