"""The product as its users run it: `manage.py` in processes of its own, stopped by the test that started it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests import environment

ROOT = Path(__file__).parent.parent.parent
START_SECONDS = 60


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Gateway:
    """One installation: a state folder, a configuration, and its processes."""

    def __init__(self, folder: Path, **settings: str) -> None:
        inherited = {name: os.environ[name] for name in ("HOME", "LANG", "PATH", "TMPDIR", "TZ") if name in os.environ}
        own = {
            "DATABASE_URL": f"sqlite:///{folder / 'tollbar.sqlite3'}",
            "PYTHONUNBUFFERED": "1",
            "DRAIN_SECONDS": "5",
            "REDIS_URL": "",
            "WEBHOOK_ALLOW_PRIVATE_NETWORKS": "true",
            "STATE_DIR": str(folder / "state"),
        }
        self.folder = folder
        self.environment = inherited | environment.settings_for_tests() | own | settings
        self.port = free_port()
        self.processes: list[subprocess.Popen[bytes]] = []
        self.client = httpx.Client(base_url=self.url, timeout=30, trust_env=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    # ---------------------------------------------------------------- commands

    def manage(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{arguments[0]} failed ({done.returncode}):\n{done.stdout}\n{done.stderr}")
        return done

    def migrate(self) -> Gateway:
        self.manage("migrate", "--noinput")
        return self

    def apply(self, config: dict[str, Any]) -> Gateway:
        path = self.folder / "config.yaml"
        path.write_text(yaml.safe_dump({"version": 1, **config}, sort_keys=False))
        self.manage("apply_config", str(path))
        return self

    def create_key(self, tenant: str, name: str = "app") -> dict[str, Any]:
        made: dict[str, Any] = json.loads(
            self.manage("create_key", tenant, "--name", name, "--scopes", "inference,audit:read", "--json").stdout
        )
        return made

    # ---------------------------------------------------------------- processes

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        with open(self.log_path, "ab") as log:
            process = subprocess.Popen(
                [sys.executable, "manage.py", *arguments],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def serve(self, *arguments: str) -> Gateway:
        process = self.start("serve", "--host", "127.0.0.1", "--port", str(self.port), *arguments)
        if self.environment["REDIS_URL"]:
            self.start("drain_events")
        self.wait_ready(process)
        return self

    def wait_ready(self, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if process.poll() is not None:
                raise AssertionError(f"serve ended with {process.returncode}:\n{self.log()[-3000:]}")
            with contextlib.suppress(httpx.HTTPError):
                if self.client.get("/readyz").status_code == 200:
                    return
            time.sleep(0.1)
        raise AssertionError(f"not ready within {START_SECONDS} s:\n{self.log()[-3000:]}")

    def stop(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(5)
        self.client.close()

    @property
    def log_path(self) -> Path:
        return self.folder / "processes.log"

    def log(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    # ---------------------------------------------------------------- requests

    def post(self, path: str, key: str, body: Any, **headers: str) -> httpx.Response:
        return self.client.post(path, json=body, headers={"authorization": f"Bearer {key}", **headers})

    def get(self, path: str, key: str, **headers: str) -> httpx.Response:
        return self.client.get(path, headers={"authorization": f"Bearer {key}", **headers})

    def audit_event(self, key: str, request_id: str, seconds: float = 8) -> dict[str, Any]:
        """The one audit event of a request, awaited."""
        end = time.monotonic() + seconds
        while True:
            answer = self.get(f"/v1/audit?request_id={request_id}", key)
            events = answer.json().get("data", []) if answer.status_code == 200 else []
            if events or time.monotonic() > end:
                assert len(events) == 1, f"{len(events)} audit events: {answer.text[:500]}"
                event: dict[str, Any] = events[0]
                return event
            time.sleep(0.05)
