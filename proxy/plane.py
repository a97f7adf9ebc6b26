"""What the pipeline needs of its process: the store, the providers' side, the configuration in force, the meters.

The runtime builds one per process and keeps `snapshot` current; the pipeline only reads it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from proxy.config import Config
from proxy.snapshot import KeyCache, KeySpec, Snapshot

if TYPE_CHECKING:
    from proxy.metrics import Meters
    from proxy.redis_store import Store
    from proxy.upstream import Upstream


class KeyLookup(Protocol):
    """Asks the database for a key by its digest, off the loop. Raises Unavailable when the database is away."""

    def __call__(self, digest: bytes) -> Awaitable[KeySpec | None]: ...


class DataPlane:
    """The process's side of every request."""

    def __init__(
        self,
        *,
        config: Config,
        store: Store,
        upstream: Upstream,
        meters: Meters,
        lookup_key: KeyLookup,
        on_cold: Callable[[int], None],
    ) -> None:
        self.config = config
        self.store = store
        self.upstream = upstream
        self.meters = meters
        self.lookup_key = lookup_key
        self.on_cold = on_cold  # a shard's counters are gone: rebuild them
        self.snapshot = Snapshot()
        self.keys = KeyCache()
        self.draining = False
