"""Runs the gateway under uvicorn: one process, or several workers with a supervisor."""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from django.conf import settings
from prometheus_client.multiprocess import mark_process_dead
from uvicorn.supervisors import Multiprocess

M_ARENA_MAX = -8  # malloc.h
APPLICATION = "gatewaysite.asgi:application"
BACKLOG = 2048
#: Clients keep connections for reuse; longer than the 60 s that proxies in front keep theirs (seconds).
KEEP_ALIVE_SECONDS = 75
#: After DRAIN_SECONDS the application ends its streams itself; the server waits this much longer before it cuts.
GRACE_SECONDS = 2
#: A worker that does not answer its supervisor for this long is replaced (seconds).
HUNG_SECONDS = 30


class AnnouncedServer(uvicorn.Server):
    """Calls `on_listening(port)` once connections are accepted. Told to end, it ends with status 0."""

    def __init__(self, config: uvicorn.Config, on_listening: Callable[[int], None]) -> None:
        super().__init__(config)
        self._on_listening = on_listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_listening(self.servers[0].sockets[0].getsockname()[1])

    async def _serve(self, sockets: list[socket.socket] | None = None) -> None:
        await super()._serve(sockets)
        self._captured_signals.clear()  # uvicorn would raise the signal again and die of it


class Supervisor(Multiprocess):
    """Replaces workers that die, and takes their live gauges out of the meters."""

    def keep_subprocess_alive(self) -> None:
        before = {process.pid for process in self.processes}
        super().keep_subprocess_alive()
        for pid in before - {process.pid for process in self.processes}:
            mark_process_dead(pid, os.environ["PROMETHEUS_MULTIPROC_DIR"])


def run_server(*, host: str, port: int, workers: int, on_listening: Callable[[int], None]) -> bool:
    """Serve until a signal ends it. Gives whether it could start."""
    _limit_arenas()
    os.environ["MALLOC_ARENA_MAX"] = "1"  # for workers
    os.environ["WEB_CONCURRENCY"] = str(workers)  # what a worker reads as settings.WORKERS
    config = uvicorn.Config(APPLICATION, host=host, port=port, workers=workers, **_options())
    if workers == 1:
        server = AnnouncedServer(config, on_listening)
        server.run()
        return server.started
    _share_metrics()
    listener = config.bind_socket()
    on_listening(listener.getsockname()[1])
    Supervisor(config, sockets=[listener]).run()
    return True


def _options() -> dict[str, Any]:
    return {
        "loop": "uvloop",
        "http": "gatewaysite.http_protocol:GatewayProtocol",
        "ws": "none",
        "lifespan": "on",
        "log_config": None,
        "access_log": False,
        "server_header": False,
        # Who forwards is trusted by its address only; from anyone else such headers are ignored.
        "proxy_headers": bool(settings.TRUSTED_PROXIES),
        "forwarded_allow_ips": list(settings.TRUSTED_PROXIES),
        "backlog": BACKLOG,
        "timeout_keep_alive": KEEP_ALIVE_SECONDS,
        "timeout_graceful_shutdown": int(settings.DRAIN_SECONDS) + GRACE_SECONDS,
        "timeout_worker_healthcheck": HUNG_SECONDS,
    }


def _limit_arenas() -> None:
    """One heap for all threads: glibc gives each thread its own and never returns what they once held."""
    try:
        ctypes.CDLL("libc.so.6").mallopt(M_ARENA_MAX, 1)
    except (OSError, AttributeError):  # another C library
        pass


def _share_metrics() -> None:
    """Give the workers a folder in which prometheus_client sums their meters; what an earlier run left is removed."""
    folder = settings.STATE_DIR / "metrics"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
