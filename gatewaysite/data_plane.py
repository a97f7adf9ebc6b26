"""Joins the data plane to this process's settings, and names the jobs that run beside the requests."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from django.conf import settings

from gatewaysite.config_watch import watch_config_file
from proxy.config import Config
from proxy.runtime import Job, Runtime
from tenants.services import key_environment


def data_plane_config() -> Config:
    """The settings as the data plane takes them."""
    return Config(
        redis_url=settings.REDIS_URL,
        pepper=settings.KEY_PEPPER.encode(),
        key_environment=key_environment(),
        demo=settings.DEMO,
        max_request_bytes=settings.MAX_REQUEST_SIZE_BYTES,
        rate_limit_failure_policy=settings.RATE_LIMIT_REDIS_FAILURE_POLICY,
        budget_failure_policy=settings.BUDGET_REDIS_FAILURE_POLICY,
        drain_seconds=settings.DRAIN_SECONDS,
        reservation_grace_seconds=settings.RESERVATION_GRACE_SECONDS,
        spool_dir=str(settings.STATE_DIR / "spool"),
        allowed_hosts=tuple(settings.ALLOWED_HOSTS),
        workers=settings.WORKERS,
        provider_allow_private_networks=settings.PROVIDER_ALLOW_PRIVATE_NETWORKS,
    )


def background_jobs() -> tuple[Job, ...]:
    """What a server process does beside requests and the data plane's own loops."""
    return (watch_configuration,) if settings.GATEWAY_CONFIG else ()


async def watch_configuration(_runtime: Runtime) -> None:
    """Keep the configuration file applied, in a thread of its own, until the server stops."""
    stop = threading.Event()
    try:
        await asyncio.to_thread(watch_config_file, Path(settings.GATEWAY_CONFIG), stop)
    finally:
        stop.set()
