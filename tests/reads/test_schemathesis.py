"""The running gateway keeps what /v1/openapi.json says, for requests nobody thought of."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.gateway import Gateway

SECRET = "schema-checker-0123456789-abcdefghijkl"
CONFIG = {
    "providers": [{"name": "demo", "kind": "mock"}],
    "models": [{"name": "echo", "targets": [{"provider": "demo", "model": "echo"}]}],
    "prices": [{"provider": "demo", "model": "echo", "input": "1.00", "output": "2.00"}],
    "tenants": [
        {
            "slug": "acme",
            "name": "Acme",
            "budgets": [{"usd": "1000", "per": "month"}],
            "keys": [{"name": "checker", "secret": SECRET, "scopes": ["inference", "audit:read"]}],
        }
    ],
}


@pytest.fixture
def served(tmp_path, real_redis_url):
    gateway = Gateway(tmp_path, REDIS_URL=real_redis_url).migrate().apply(CONFIG)
    try:
        yield gateway.serve()
    finally:
        gateway.stop()


@pytest.mark.slow
def test_schemathesis_finds_nothing(served, tmp_path):
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        "run",
        f"{served.url}/v1/openapi.json",
        f"--header=Authorization: Bearer {SECRET}",
        "--phases=coverage,fuzzing",
        "--max-examples=10",
        "--seed=1",
        "--no-color",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
