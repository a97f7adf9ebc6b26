"""What fails around the gateway, one thing at a time: nothing hangs, nothing is lost, no good key is called wrong."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes.gateway import Gateway, free_port
from tests.fakes.provider import FakeProvider, openai_answer, openai_stream

pytestmark = pytest.mark.slow

BODY = {"model": "gpt", "max_tokens": 20, "messages": [{"role": "user", "content": "hello"}]}
FREE, PAID = "free-key-0123456789-abcdefgh", "paid-key-0123456789-abcdefgh"


def config(provider: FakeProvider) -> dict[str, Any]:
    def key(secret: str) -> dict[str, Any]:
        return {"name": "app", "secret": secret, "scopes": ["inference", "audit:read"]}

    return {
        "providers": [{"name": "o", "kind": "openai", "base_url": provider.url + "/v1", "api_key": "sk-o"}],
        "models": [{"name": "gpt", "targets": [{"provider": "o", "model": "gpt-4o"}]}],
        "prices": [{"provider": "o", "model": "gpt-4o", "input": "3.00", "output": "15.00"}],
        "tenants": [
            {"slug": "free", "name": "Free", "limits": {"rpm": 6000}, "keys": [key(FREE)]},
            {"slug": "paid", "name": "Paid", "budgets": [{"usd": "10.00", "per": "month"}], "keys": [key(PAID)]},
        ],
    }


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    fake = FakeProvider()
    fake.always = openai_answer()
    yield fake
    fake.stop()


@pytest.fixture
def gateway(tmp_path: Path, provider: FakeProvider) -> Iterator[Gateway]:
    running = Gateway(tmp_path).migrate().apply(config(provider)).serve()
    yield running
    running.stop()


class OwnRedis:
    """A Redis server of the test's own, which it may kill."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        command = [
            "redis-server",
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--dir",
            str(self.folder),
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 10
        while time.monotonic() < end:
            ping = subprocess.run(["redis-cli", "-p", str(self.port), "ping"], capture_output=True, check=False)
            if ping.stdout.strip() == b"PONG":
                return
            time.sleep(0.05)
        raise AssertionError("redis-server did not start")

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()


def until(seconds: float, condition: Any) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def test_a_client_that_leaves_closes_the_upstream_and_is_charged_what_it_got(
    gateway: Gateway, provider: FakeProvider
) -> None:
    provider.always = openai_stream([{"content": f"word{n} "} for n in range(100)], gap=0.05)
    headers = {"authorization": f"Bearer {PAID}", "x-request-id": "leaver-1"}
    with gateway.client.stream(
        "POST", "/v1/chat/completions", json={**BODY, "stream": True}, headers=headers
    ) as answer:
        for text in answer.iter_text():
            if "word3" in text:
                break
    left = time.monotonic()
    assert until(2, lambda: provider.requests[0].closed_early)
    assert time.monotonic() - left < 1.5
    event = gateway.audit_event(PAID, "leaver-1")
    assert (event["status"], event["http_status"], event["usage_source"]) == ("cancelled", 499, "estimated")
    assert 1 <= event["output_tokens"] < 100
    budget = gateway.get("/v1/limits", PAID).json()["data"][-1]
    assert (budget["reserved"], budget["used"]) == ("0.000000", event["cost_usd"])


def test_a_stream_survives_sigterm_and_the_process_ends_cleanly(gateway: Gateway, provider: FakeProvider) -> None:
    provider.always = openai_stream([{"content": f"word{n} "} for n in range(20)], gap=0.1)
    got: list[str] = []

    def read() -> None:
        headers = {"authorization": f"Bearer {FREE}"}
        with httpx.stream(
            "POST", gateway.url + "/v1/chat/completions", json={**BODY, "stream": True}, headers=headers, timeout=30
        ) as answer:
            got.extend(answer.iter_lines())

    reader = threading.Thread(target=read)
    reader.start()
    assert until(5, lambda: provider.requests)
    time.sleep(0.5)
    gateway.processes[0].send_signal(signal.SIGTERM)
    reader.join(20)
    assert got[-2:] == ["data: [DONE]", ""]
    assert gateway.processes[0].wait(10) == 0


def test_a_killed_server_is_charged_for_what_it_had_open(tmp_path: Path, provider: FakeProvider) -> None:
    redis = OwnRedis(tmp_path)
    redis.start()
    settings = config(provider)
    settings["providers"][0]["timeout"] = {"total": 1}
    running = Gateway(tmp_path, REDIS_URL=redis.url, RESERVATION_GRACE_SECONDS="1").migrate().apply(settings).serve()
    try:
        slow = openai_answer()
        slow.delay = 20
        provider.always = slow
        doomed = threading.Thread(target=lambda: _ignore_errors(running))
        doomed.start()
        assert until(5, lambda: provider.requests)
        running.processes[0].kill()
        doomed.join(10)
        running.serve()
        assert until(20, lambda: running.get("/v1/usage", PAID).json()["total"]["requests"] == 1)
        event = running.audit_event(PAID, "doomed-1")
        assert event["status"] == "indeterminate"
        budget = running.get("/v1/limits", PAID).json()["data"][-1]
        assert budget["reserved"] == "0.000000"
        assert budget["used"] == event["cost_usd"] != "0.000000"
    finally:
        running.stop()
        redis.kill()


def _ignore_errors(running: Gateway) -> None:
    try:
        running.post("/v1/chat/completions", PAID, BODY, **{"x-request-id": "doomed-1"})
    except httpx.HTTPError:
        pass  # the server was killed under it


def test_without_redis_rates_degrade_budgets_refuse_and_nothing_is_lost(tmp_path: Path, provider: FakeProvider) -> None:
    redis = OwnRedis(tmp_path)
    redis.start()
    running = Gateway(tmp_path, REDIS_URL=redis.url).migrate().apply(config(provider)).serve()
    try:
        assert running.post("/v1/chat/completions", PAID, BODY).status_code == 200
        redis.kill()
        time.sleep(0.3)
        for number in range(5):
            begun = time.monotonic()
            free = running.post("/v1/chat/completions", FREE, BODY, **{"x-request-id": f"degraded-{number}"})
            assert (free.status_code, free.headers.get("x-ratelimit-degraded")) == (200, "true"), free.text
            paid = running.post("/v1/chat/completions", PAID, BODY)
            assert (paid.status_code, paid.json()["error"]["code"]) == (503, "budget_unavailable")
            assert int(paid.headers["retry-after"]) >= 1
            assert running.post("/v1/chat/completions", "wrong-key-0123456789-abcdef", BODY).status_code == 401
            assert time.monotonic() - begun < 2
        assert running.client.get("/readyz").status_code == 503
        assert running.client.get("/healthz").status_code == 200
        redis.start()
        assert until(8, lambda: running.post("/v1/chat/completions", PAID, BODY).status_code == 200)
        for number in range(5):
            event = running.audit_event(FREE, f"degraded-{number}", seconds=15)
            assert event["status"] == "success"
    finally:
        running.stop()
        redis.kill()


def test_without_the_database_known_keys_are_served_and_events_wait(gateway: Gateway, tmp_path: Path) -> None:
    assert gateway.post("/v1/chat/completions", PAID, BODY).status_code == 200
    files = sorted(tmp_path.glob("tollbar.sqlite3*"))
    away = tmp_path / "away"
    away.mkdir()
    for file in files:
        file.rename(away / file.name)
    (tmp_path / "tollbar.sqlite3").mkdir()  # so that nobody makes a new one
    time.sleep(0.6)
    answers = [
        gateway.post("/v1/chat/completions", PAID, BODY, **{"x-request-id": f"waiting-{number}"}) for number in range(3)
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    unknown = gateway.post("/v1/chat/completions", "some-key-0123456789-abcdefgh", BODY)
    assert unknown.status_code == 503, "a key that cannot be checked is not called wrong"
    (tmp_path / "tollbar.sqlite3").rmdir()
    for file in sorted(away.iterdir()):
        file.rename(tmp_path / file.name)
    for number in range(3):
        assert gateway.audit_event(PAID, f"waiting-{number}", seconds=15)["status"] == "success"
    assert gateway.manage("verify_audit").returncode == 0
    assert gateway.manage("verify_ledger").returncode == 0
