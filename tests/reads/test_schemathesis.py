"""The running gateway keeps what /v1/openapi.json says, for requests nobody thought of."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from proxy.v1_docs import CALLS
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


@pytest.fixture(scope="module")
def served(tmp_path_factory, real_redis_url):
    gateway = Gateway(tmp_path_factory.mktemp("schema"), REDIS_URL=real_redis_url).migrate().apply(CONFIG)
    try:
        yield gateway.serve()
    finally:
        gateway.stop()


def run_schemathesis(document, folder, *options):
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        "run",
        document,
        f"--header=Authorization: Bearer {SECRET}",
        "--phases=coverage,fuzzing",
        "--max-examples=8",
        "--seed=1",
        "--no-color",
        *options,
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.slow
def test_schemathesis_finds_nothing_at_the_reads(served, tmp_path):
    run_schemathesis(f"{served.url}/v1/openapi.json", tmp_path, "--include-method=GET")


@pytest.mark.slow
def test_schemathesis_finds_nothing_at_the_calls_of_a_model_that_answers(served, tmp_path):
    document = served.client.get("/v1/openapi.json").json()
    for call in CALLS:
        document["components"]["schemas"][call]["properties"]["model"] = {"enum": ["echo"]}
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(document))
    run_schemathesis(str(path), tmp_path, "--url", served.url, "--include-method=POST")
