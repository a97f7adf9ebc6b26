"""Starting and refusing to start, as a user sees it."""

import json
import re
import signal
import subprocess
import sys
import time

import httpx
import pytest
import redis
import yaml

from tests.conftest import ROOT
from tests.fakes.gateway import free_port
from tests.gatewaysite.configuring import minimal

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["SECRET_KEY", "KEY_PEPPER", "FIELD_ENCRYPTION_KEYS"])
def test_without_a_secret_it_does_not_start_and_says_which(manage, name):
    done = manage("serve", **{name: ""})
    assert done.returncode == 1
    assert done.stderr.startswith(f"{name} is empty")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_without_migrations_it_does_not_start(manage):
    done = manage("serve", "--port", "0")
    assert done.returncode == 1
    assert "manage.py migrate" in done.stderr


def test_several_workers_need_a_real_store(manage):
    done = manage("serve", "--workers", "2", REDIS_URL="")
    assert done.returncode == 2
    assert "REDIS_URL" in done.stderr


def test_a_command_used_wrongly_ends_with_two(manage):
    assert manage("revoke_keys").returncode == 2
    assert manage("rotate_keys", "--key", "a", "--tenant", "b").returncode == 2
    assert manage("rotate_keys", "--key", "a", "--overlap", "soon").returncode == 2


def test_a_production_environment_passes_the_deployment_check(manage):
    done = manage(
        "check",
        "--deploy",
        "--fail-level",
        "WARNING",
        ALLOWED_HOSTS="gateway.example",
        METRICS_TOKEN="metrics-token-0123456789",
        SECRET_KEY="production-secret-key-0123456789-abcdefghijklmnopqrstuvwxyz",
        DATABASE_URL="postgres://tollbar@127.0.0.1/tollbar",
    )
    assert done.returncode == 0, done.stderr


def test_a_file_that_cannot_be_applied_ends_with_one_and_its_places(manage, tmp_path):
    path = tmp_path / "tollbar.yaml"
    path.write_text("version: 1\ntenants: [{slug: acme, foo: 1}]\n")
    done = manage("apply_config", str(path))
    assert done.returncode == 1
    assert "tenants[0].foo: unknown field" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def serve(process_environment, manage, tmp_path):
    """Serve in the background; gives the process and its address once it is ready."""
    started = []

    def start(*arguments, **changes):
        assert manage("migrate", "-v0", **changes).returncode == 0
        port = free_port()
        with (tmp_path / "serve.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "manage.py", "serve", "--port", str(port), *arguments],
                cwd=ROOT,
                env=process_environment | {"DRAIN_SECONDS": "2"} | changes,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        started.append(process)
        wait_for(lambda: ready(port), 30)
        return process, f"http://127.0.0.1:{port}"

    yield start
    for process in started:
        process.terminate()
        process.wait(20)


def ready(port):
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.05)


def chat(url, key):
    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.post(f"{url}/v1/chat/completions", json=body, headers=headers, trust_env=False)


def config(*keys):
    return minimal(
        providers=[{"name": "p", "kind": "mock"}],
        models=[{"name": "m", "targets": [{"provider": "p", "model": "echo"}]}],
        prices=[{"provider": "p", "model": "echo", "input": "1", "output": "1"}],
        tenants=[{"slug": "acme", "keys": [{"name": key, "secret": key} for key in keys]}],
    )


FIRST, SECOND = "the-first-key-of-the-file-0123", "the-second-key-of-the-file-012"


def test_a_configuration_file_is_in_force_at_start_and_within_two_seconds_of_a_change(serve, tmp_path):
    path = tmp_path / "tollbar.yaml"
    path.write_text(yaml.safe_dump(config(FIRST)))
    _, url = serve(REDIS_URL="", GATEWAY_CONFIG=str(path))
    assert chat(url, FIRST).json()["choices"][0]["message"]["content"] == "Echo: hello"
    assert chat(url, SECOND).status_code == 401
    path.write_text(yaml.safe_dump(config(FIRST, SECOND)))
    wait_for(lambda: chat(url, SECOND).status_code == 200, 2)


def test_a_revoked_key_is_refused_within_a_second(serve, manage, tmp_path):
    path = tmp_path / "tollbar.yaml"
    path.write_text(yaml.safe_dump(config()))
    _, url = serve(REDIS_URL="", GATEWAY_CONFIG=str(path))
    made = json.loads(manage("create_key", "acme", "--name", "k", "--json").stdout)
    wait_for(lambda: chat(url, made["secret"]).status_code == 200, 2)
    assert manage("revoke_keys", "--key", made["id"]).returncode == 0
    wait_for(lambda: chat(url, made["secret"]).status_code == 401, 1)


def test_it_says_where_it_is_and_ends_cleanly(serve, tmp_path):
    process, url = serve(REDIS_URL="")
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    log = (tmp_path / "serve.log").read_text()
    assert f"Tollbar serves {url}" in log
    assert "Traceback" not in log
    assert "Warning" not in log
    for line in log.splitlines():
        assert not line.startswith("{") or json.loads(line)["event"]


def test_workers_share_one_address_and_are_replaced(serve, real_redis_url, tmp_path):
    if not real_redis_url:
        pytest.skip("several workers need a real Redis")
    with redis.Redis.from_url(real_redis_url) as connection:
        connection.flushdb()
    process, url = serve("--workers", "2")
    children = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(process.pid)], capture_output=True, text=True, check=True
    ).stdout
    workers = [int(pid) for pid in re.findall(r"^\s*(\d+) .*spawn_main", children, re.MULTILINE)]
    assert len(workers) == 2
    subprocess.run(["kill", "-9", str(workers[0])], check=True)
    wait_for(lambda: all(httpx.get(f"{url}/healthz", trust_env=False).status_code == 200 for _ in range(5)), 20)
    # The supervisor notices the death when it next looks, and clears what the dead worker counted as in flight.
    wait_for(lambda: not list((tmp_path / "metrics").glob(f"gauge_live*_{workers[0]}.db")), 20)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert list((tmp_path / "metrics").glob(f"*_{workers[1]}.db"))
