"""Workers die without warning: whatever was answered is audited once, charged once, and the chain holds."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.fakes.gateway import Gateway
from tests.fakes.load import Answered, steady

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

REQUESTS = int(os.environ.get("CHAOS_REQUESTS", "4000"))
SECONDS_BETWEEN_KILLS = 5.0
CONFIG = {
    "providers": [{"name": "m", "kind": "mock", "timeout": {"total": 5}}],
    "models": [{"name": "echo", "targets": [{"provider": "m", "model": "echo"}]}],
    "prices": [{"provider": "m", "model": "echo", "input": "1.00", "output": "2.00"}],
    "tenants": [
        {"slug": name, "name": name.title(), "budgets": [{"usd": "100.00", "per": "month"}]} for name in ("red", "blue")
    ],
}


@pytest.fixture
def gateway(tmp_path: Path, shared_redis: str):
    running = Gateway(tmp_path, REDIS_URL=shared_redis).migrate().apply(CONFIG).serve("--workers", "4")
    yield running
    running.stop()


def workers_of(gateway: Gateway) -> list[int]:
    """Process ids of the server's own children."""
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(gateway.processes[0].pid)], capture_output=True, text=True, check=False
    )
    lines = [line.split(None, 1) for line in listed.stdout.splitlines()]
    return [int(pid) for pid, command in lines if "resource_tracker" not in command]


async def run_and_kill(gateway: Gateway, keys: list[str]) -> tuple[list[Answered], int]:
    body = {"model": "echo", "max_tokens": 20, "messages": [{"role": "user", "content": "hello there"}]}
    load = asyncio.create_task(steady(gateway.url + "/v1/chat", keys, body, REQUESTS, lanes=20, name="kill"))
    killed, next_kill = 0, time.monotonic() + 1.0
    while not load.done():
        await asyncio.sleep(0.1)
        if time.monotonic() >= next_kill:
            victims = workers_of(gateway)
            if victims:
                os.kill(random.choice(victims), signal.SIGKILL)
                killed += 1
            next_kill = time.monotonic() + SECONDS_BETWEEN_KILLS
    return await load, killed


def test_every_answered_request_is_audited_once_and_in_the_ledger_once(gateway: Gateway) -> None:
    keys = [gateway.create_key(tenant)["secret"] for tenant in ("red", "blue")]
    answers, killed = asyncio.run(run_and_kill(gateway, keys))
    answered = {answer.request_id for answer in answers if answer.status == 200}
    assert killed >= 1
    assert len(answered) > REQUESTS * 0.8
    assert {answer.status for answer in answers} <= {200, 0}

    gateway.manage("drain_events", "--once")
    events = [json.loads(line) for line in gateway.manage("export_audit").stdout.splitlines()]
    audited = Counter(event["request_id"] for event in events if event.get("request_id"))
    missing = answered - set(audited)
    assert not missing, f"{len(missing)} answered requests are not audited"
    assert [name for name in answered if audited[name] != 1] == []
    with sqlite3.connect(gateway.folder / "tollbar.sqlite3") as database:
        ledger = Counter(row[0] for row in database.execute("SELECT request_id FROM billing_ledgerentry"))
    assert [name for name in answered if ledger[name] != 1] == []
    assert gateway.manage("verify_audit", "--json").returncode == 0
    assert gateway.manage("verify_ledger", "--json").returncode == 0
