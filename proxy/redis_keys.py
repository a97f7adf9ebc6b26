"""Names of the keys in the store (formats: docs/redis-keys.md). All of a tenant's carry its shard's hash tag."""

from __future__ import annotations

import hashlib


def shard_prefix(shard: int) -> str:
    """`tb:{sNN}:`; the braces make Redis Cluster put all keys of a shard into one slot."""
    return f"tb:{{s{shard:02d}}}:"


def epoch_key(shard: int) -> str:
    return f"{shard_prefix(shard)}epoch"


def late_key(shard: int) -> str:
    return f"{shard_prefix(shard)}late"


def open_key(shard: int) -> str:
    return f"{shard_prefix(shard)}open"


def stream_key(shard: int) -> str:
    return f"{shard_prefix(shard)}ev"


def dead_key(shard: int) -> str:
    """Stream of entries that could not be written as they are."""
    return f"{shard_prefix(shard)}dead"


def drain_lock_key(shard: int) -> str:
    """Names the process that drains the shard."""
    return f"{shard_prefix(shard)}drain"


def record_key(shard: int, event_id: str) -> str:
    return f"{shard_prefix(shard)}rs:{event_id}"


def revoked_key(shard: int, key_id: str) -> str:
    return f"{shard_prefix(shard)}rv:{key_id}"


def counter_key(shard: int, kind: str, spec_id: int, owner: str, period: str) -> str:
    """A budget's (`kind` bu) or quota's (qu) counter for one owner and one period (`proxy.periods.Period.label`)."""
    return f"{shard_prefix(shard)}{kind}:{spec_id}:{owner}:{period}"


def tenant_owner(tenant_id: int) -> str:
    return f"t{tenant_id}"


def key_owner(key_id: str) -> str:
    return f"k{key_id}"


def user_owner(tenant_id: int, user: str) -> str:
    """A user of a tenant. Callers choose user names freely, so a digest stands for the name."""
    return f"u{tenant_id}.{_digest(user)}"


def key_user_owner(key_id: str, user: str) -> str:
    """A user as one key sees it: limits that a key sets for each of its users."""
    return f"v{key_id}.{_digest(user)}"


def _digest(user: str) -> str:
    return hashlib.blake2b(user.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
