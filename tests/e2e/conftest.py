"""One running gateway for the tests of a module, with fake providers behind it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gateway import Gateway
from tests.fakes.provider import FakeProvider, anthropic_answer, openai_answer

PRICE = {"input": "3.00", "output": "15.00", "cache_read": "0.30", "cache_write": "3.75"}
QUICK = {"retries": {"max_attempts": 1, "backoff": 0.01, "max_backoff": 0.05}}


class Stage:
    """Gateway, providers and keys of a module."""

    def __init__(self, folder: Path, redis_url: str) -> None:
        self.openai, self.anthropic = FakeProvider(), FakeProvider()
        self.gateway = Gateway(folder, REDIS_URL=redis_url).migrate()
        self.gateway.apply(self.config())
        self.gateway.serve()
        self.key = self.gateway.create_key("acme")["secret"]
        self.clients: list[Any] = []  # of the official SDKs, closed after each test

    def config(self) -> dict[str, Any]:
        dead = {"name": "dead", "kind": "openai", "base_url": "http://127.0.0.1:9/v1", "api_key": "sk-dead-provider"}
        return {
            "providers": [
                {"name": "o", "kind": "openai", "base_url": self.openai.url + "/v1", "api_key": "sk-o", **QUICK},
                {"name": "a", "kind": "anthropic", "base_url": self.anthropic.url, "api_key": "sk-a", **QUICK},
                dead,
            ],
            "models": [
                {"name": "gpt", "targets": [{"provider": "o", "model": "gpt-4o"}]},
                {"name": "claude", "targets": [{"provider": "a", "model": "claude-sonnet-4-5"}]},
                {
                    "name": "resilient",
                    "targets": [{"provider": "dead", "model": "big"}, {"provider": "o", "model": "gpt-4o"}],
                },
                {
                    "name": "either",
                    "targets": [{"provider": "a", "model": "claude-sonnet-4-5"}, {"provider": "o", "model": "gpt-4o"}],
                },
                {"name": "private", "targets": [{"provider": "o", "model": "gpt-4o"}]},
            ],
            "prices": [
                {"provider": "o", "model": "gpt-4o", **PRICE},
                {"provider": "a", "model": "claude-sonnet-4-5", **PRICE},
                {"provider": "dead", "model": "big", "input": "30.00", "output": "60.00"},
            ],
            "tenants": [
                {"slug": "acme", "name": "Acme", "models": ["gpt", "claude", "resilient", "either"]},
                {"slug": "poor", "name": "Poor", "budgets": [{"usd": "0.000001", "per": "month"}]},
                {"slug": "slow", "name": "Slow", "limits": {"rpm": 60}},
                {"slug": "queue", "name": "Queue", "limits": {"concurrency": 1}},
            ],
        }

    def reset(self) -> None:
        for provider, answer in ((self.openai, openai_answer()), (self.anthropic, anthropic_answer())):
            provider.requests.clear()
            provider.script.clear()
            provider.always = answer

    def stop(self) -> None:
        self.gateway.stop()
        self.openai.stop()
        self.anthropic.stop()


@pytest.fixture(scope="session")
def running_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = Stage(tmp_path_factory.mktemp("stage"), os.environ["REDIS_URL"])
    yield stage
    stage.stop()


@pytest.fixture
def stage(running_stage: Stage) -> Iterator[Stage]:
    running_stage.reset()
    yield running_stage
    while running_stage.clients:
        running_stage.clients.pop().close()
