"""Many clients, several workers, one budget: never a nano-dollar above it."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from tests.fakes.gateway import Gateway
from tests.fakes.load import together

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

SEEDS = 20
WORKERS = 4
CLIENTS = 200


def secret(tenant: str) -> str:
    return f"{tenant}-key-0123456789-abcdefgh"


def config() -> dict[str, object]:
    budgets = [random.Random(seed).randrange(20, 150) for seed in range(SEEDS)]
    return {
        "providers": [{"name": "m", "kind": "mock"}],
        "models": [{"name": "echo", "targets": [{"provider": "m", "model": "echo"}]}],
        "prices": [{"provider": "m", "model": "echo", "input": "0", "output": "1000.00"}],
        "tenants": [
            {
                "slug": f"seed-{seed}",
                "name": f"Seed {seed}",
                "budgets": [{"usd": f"{cents / 100:.2f}", "per": "total"}],
                "keys": [{"name": "app", "secret": secret(f"seed-{seed}")}],
            }
            for seed, cents in enumerate(budgets)
        ]
        + [
            {
                "slug": "bucket",
                "name": "Bucket",
                "limits": {"rpm": 37},
                "keys": [{"name": "app", "secret": secret("bucket")}],
            }
        ],
    }


@pytest.fixture
def gateway(tmp_path: Path, shared_redis: str):
    running = Gateway(tmp_path, REDIS_URL=shared_redis).migrate().apply(config()).serve("--workers", str(WORKERS))
    yield running
    running.stop()


def test_200_concurrent_requests_on_the_last_cents_never_overspend(gateway: Gateway) -> None:
    url = gateway.url + "/v1/chat"
    for seed in range(SEEDS):
        tenant = config()["tenants"][seed]  # type: ignore[index]
        budget = Decimal(tenant["budgets"][0]["usd"])
        key = secret(f"seed-{seed}")
        max_tokens = random.Random(seed + 1000).randrange(5, 40)
        body = {
            "model": "echo",
            "max_tokens": max_tokens,
            "messages": [{"role": "user", "content": "spend " * (max_tokens // 2)}],
        }
        answers = asyncio.run(together(url, key, body, CLIENTS, f"race-{seed}"))
        statuses = Counter(answer.status for answer in answers)
        assert set(statuses) <= {200, 402}, f"seed {seed}: {statuses}"
        spent = sum(Decimal(answer.cost_usd or 0) for answer in answers)
        worst = Decimal(max_tokens) * Decimal("0.001")
        assert spent <= budget, f"seed {seed}: spent {spent} of {budget}"
        assert statuses[200] >= min(CLIENTS, int(budget / worst)), f"seed {seed}: too few admitted: {statuses}"
        limits = gateway.get("/v1/limits", key).json()["data"]
        told = next(entry for entry in limits if entry["kind"] == "budget")
        assert Decimal(told["used"]) == spent
        assert Decimal(told["reserved"]) == 0


def test_a_burst_of_100_on_one_bucket_admits_exactly_its_capacity(gateway: Gateway) -> None:
    key = secret("bucket")
    body = {"model": "echo", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
    answers = asyncio.run(together(gateway.url + "/v1/chat", key, body, 100, "burst"))
    statuses = Counter(answer.status for answer in answers)
    # 37 a minute refill one token every 1.6 s: a burst shorter than that sees exactly the capacity.
    assert statuses == {200: 37, 429: 63}
    assert all(int(answer.headers["retry-after"]) in (1, 2) for answer in answers if answer.status == 429)
