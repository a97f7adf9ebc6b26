"""What the data plane knows of the process's settings: read once from Django's by the runtime, then plain data."""

from __future__ import annotations

import msgspec


class Config(msgspec.Struct, kw_only=True, frozen=True):
    """`redis_url` empty: the embedded store. Policies are fail_open or fail_closed. `pepper` keys the secrets' HMAC."""

    redis_url: str = ""
    pepper: bytes = b""
    key_environment: str = "live"  # the middle of tb_<env>_…
    demo: bool = False
    max_request_bytes: int = 2_097_152
    rate_limit_failure_policy: str = "fail_open"
    budget_failure_policy: str = "fail_closed"
    drain_seconds: float = 60.0
    reservation_grace_seconds: float = 60.0
    spool_dir: str = "var/spool"
    allowed_hosts: tuple[str, ...] = ("*",)
    store_timeout_ms: int = 50
    workers: int = 1
    provider_allow_private_networks: bool = True
