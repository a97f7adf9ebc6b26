"""Tells the limiter at once that a key is revoked, without waiting for the workers to see the new configuration.

The marker is read inside the Lua call that admits a request, so it costs no round trip. It only shortens the wait:
workers also poll the configuration's version, which is why a Redis that is away never fails a revocation.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import redis
from django.conf import settings

logger = logging.getLogger(__name__)

#: Longer than any worker can go without a fresh configuration (seconds).
MARKER_SECONDS = 86_400
TIMEOUT_SECONDS = 0.5


def revocation_marker(shard: int, key_id: str) -> str:
    """The same name as proxy.redis_keys.revoked_key, which lies above (a test keeps them equal)."""
    return f"tb:{{s{shard:02d}}}:rv:{key_id}"


def mark_revoked(keys: Iterable[tuple[int, str]]) -> bool:
    """Set the markers of (shard, key id) in Redis. Best effort: gives whether they are set, and logs when not."""
    markers = [revocation_marker(shard, key_id) for shard, key_id in keys]
    if not settings.REDIS_URL or not markers:
        return False
    try:
        with open_redis(settings.REDIS_URL) as connection:
            for marker in markers:
                connection.set(marker, 1, ex=MARKER_SECONDS)
    except (redis.RedisError, OSError) as error:
        logger.warning("revocation not announced, workers will poll it", extra={"code": type(error).__name__})
        return False
    return True


def open_redis(url: str) -> Any:
    """A short-lived synchronous connection to REDIS_URL, with timeouts (seconds) that a command can wait for."""
    parts = urlsplit(url)
    timeouts = {"socket_timeout": TIMEOUT_SECONDS, "socket_connect_timeout": TIMEOUT_SECONDS}
    base, _, flavour = parts.scheme.partition("+")
    plain = urlunsplit(parts._replace(scheme=base))
    if flavour == "cluster":
        return redis.RedisCluster.from_url(plain, **timeouts)
    if flavour == "sentinel":
        sentinel: Any = redis.Sentinel(  # type: ignore[no-untyped-call]
            [(parts.hostname or "127.0.0.1", parts.port or 26379)], **timeouts
        )
        return sentinel.master_for(parts.path.strip("/").split("/")[0] or "mymaster")
    return redis.Redis.from_url(plain, **timeouts)
