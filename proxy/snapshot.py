"""The immutable, versioned configuration that the data plane reads: its own types, no database, no Django.

`proxy.snapshot_loader` builds it from the database; on an error the last good one stays in force.
Money is nano-USD, prices are atto-USD per token (exact for any decimal price), times are seconds or epoch ms.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections import OrderedDict
from fnmatch import fnmatchcase

import msgspec

from proxy.canonical import Usage
from proxy.context import ProviderTarget

ATTO_PER_NANO = 1_000_000_000
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class PriceSpec(msgspec.Struct, kw_only=True, frozen=True):
    """Atto-USD per token of each class, from `effective_from_ms` on."""

    id: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    cache_write_1h: int
    effective_from_ms: int
    label: str  # what the audit event names: provider/model@date

    def cost_nano(self, usage: Usage) -> int:
        """Nano-USD of `usage`, rounded up once on the total. Each class is charged once, at its own rate."""
        long_writes = min(usage.cache_write_1h_tokens, usage.cache_write_tokens)
        plain = max(usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens, 0)
        total = (
            plain * self.input
            + usage.cache_read_tokens * self.cache_read
            + (usage.cache_write_tokens - long_writes) * self.cache_write
            + long_writes * self.cache_write_1h
            + usage.output_tokens * self.output
        )
        return -(-total // ATTO_PER_NANO)

    def worst_nano(self, input_bound: int, output_bound: int) -> int:
        """The most a request can cost: every input token at the dearest input class."""
        dearest = max(self.input, self.cache_read, self.cache_write, self.cache_write_1h)
        return -(-(input_bound * dearest + output_bound * self.output) // ATTO_PER_NANO)


class LimitSpec(msgspec.Struct, kw_only=True, frozen=True):
    """Rate limits of one owner; None: not limited."""

    rpm: int | None = None
    tpm: int | None = None
    concurrency: int | None = None
    user_rpm: int | None = None
    user_tpm: int | None = None
    algorithm: str = "token_bucket"


class QuotaSpec(msgspec.Struct, kw_only=True, frozen=True):
    """Tokens per calendar period (minute | hour | day | week | month | total) in a time zone."""

    id: int
    tokens: int
    per: str
    timezone: str = "UTC"


class BudgetSpec(msgspec.Struct, kw_only=True, frozen=True):
    """Nano-USD per calendar period. scope tenant | key | user; `owner` as in Redis keys, filled by admission."""

    id: int
    nano: int
    per: str
    scope: str
    timezone: str = "UTC"
    warn_at: tuple[int, ...] = (80, 95)


class ProviderSpec(msgspec.Struct, kw_only=True, frozen=True):
    """One provider account. Times in seconds."""

    id: int
    name: str
    kind: str
    base_url: str
    secret: str
    region: str | None = None
    api_version: str | None = None
    headers: dict[str, str] = {}
    connect: float = 5.0
    first_byte: float = 60.0
    idle: float = 30.0
    total: float = 600.0
    max_attempts: int = 3
    backoff: float = 0.5
    max_backoff: float = 10.0
    breaker_failures: int = 5
    breaker_window: float = 60.0
    breaker_open_for: float = 30.0
    breaker_close_after: int = 2
    limits: LimitSpec = LimitSpec()


class TargetSpec(msgspec.Struct, kw_only=True, frozen=True):
    """A provider's model behind an alias. `prices` newest first."""

    provider: ProviderSpec
    model: str
    weight: int
    prices: tuple[PriceSpec, ...]
    adapter_target: ProviderTarget

    def price_at(self, now_ms: int) -> PriceSpec | None:
        for price in self.prices:
            if price.effective_from_ms <= now_ms:
                return price
        return None


class ModelSpec(msgspec.Struct, kw_only=True, frozen=True):
    name: str
    strategy: str
    targets: tuple[TargetSpec, ...]
    max_output_tokens: int = 32000
    cache_exact_ttl: int = 0


class JwtSpec(msgspec.Struct, kw_only=True, frozen=True):
    issuer: str
    audience: str
    secret: str
    jwks_url: str
    algorithms: tuple[str, ...]


class TenantSpec(msgspec.Struct, kw_only=True, frozen=True):
    """`limits` and `quotas` already hold the tier's defaults where the tenant names none."""

    id: int
    slug: str
    shard: int
    active: bool
    priority: str
    models: tuple[str, ...]
    unpriced_allowed: bool
    limits: LimitSpec
    quotas: tuple[QuotaSpec, ...] = ()
    budgets: tuple[BudgetSpec, ...] = ()
    jwt: JwtSpec | None = None


class KeySpec(msgspec.Struct, kw_only=True, frozen=True):
    """A key as the data plane needs it. `digests` are (raw HMAC, usable until epoch ms or None)."""

    id: str
    name: str
    tenant_id: int
    digests: tuple[tuple[bytes, int | None], ...]
    scopes: frozenset[str]
    models: tuple[str, ...]
    cidrs: tuple[Network, ...] = ()
    may_speak_for_users: bool = True
    expires_at_ms: int | None = None
    revoked: bool = False
    limits: LimitSpec = LimitSpec()
    quotas: tuple[QuotaSpec, ...] = ()
    budgets: tuple[BudgetSpec, ...] = ()

    def accepts(self, digest: bytes, now_ms: int) -> bool:
        """Whether `digest` is a live secret of this key. Constant time over the digests it has."""
        good = False
        for known, until in self.digests:
            same = hmac.compare_digest(known, digest)
            good |= same and (until is None or now_ms < until)
        return good and not self.revoked and (self.expires_at_ms is None or now_ms < self.expires_at_ms)


class Snapshot(msgspec.Struct, kw_only=True, frozen=True):
    """Everything but the keys. `models` by alias, `tenants` by id."""

    version: int = 0
    models: dict[str, ModelSpec] = {}
    tenants: dict[int, TenantSpec] = {}
    tenants_by_issuer: dict[str, int] = {}
    providers: dict[str, ProviderSpec] = {}


class KeyCache:
    """Keys by digest: all that fit, the least used go first. Unknown digests are remembered too, until a change.

    A reload calls `replace` with the keys that changed since the last version, so a revocation drops the old entry.
    """

    def __init__(self, size: int = 50_000, unknown_size: int = 10_000) -> None:
        self._size, self._unknown_size = size, unknown_size
        self._by_digest: OrderedDict[bytes, KeySpec] = OrderedDict()
        self._digests_of: dict[str, tuple[bytes, ...]] = {}
        self._unknown: OrderedDict[bytes, None] = OrderedDict()

    def get(self, digest: bytes) -> KeySpec | None:
        key = self._by_digest.get(digest)
        if key is not None:
            self._by_digest.move_to_end(digest)
        return key

    def is_unknown(self, digest: bytes) -> bool:
        return digest in self._unknown

    def remember_unknown(self, digest: bytes) -> None:
        self._unknown[digest] = None
        if len(self._unknown) > self._unknown_size:
            self._unknown.popitem(last=False)

    def replace(self, keys: list[KeySpec]) -> None:
        """Put the current state of `keys` in, forgetting what was known of them and of unknown digests."""
        self._unknown.clear()
        for key in keys:
            self.add(key)

    def add(self, key: KeySpec) -> None:
        for digest in self._digests_of.pop(key.id, ()):
            self._by_digest.pop(digest, None)
        self._digests_of[key.id] = tuple(digest for digest, _ in key.digests)
        for digest, _ in key.digests:
            self._by_digest[digest] = key
        while len(self._by_digest) > self._size:
            _, oldest = self._by_digest.popitem(last=False)
            self._digests_of.pop(oldest.id, None)


def matches(globs: tuple[str, ...], name: str) -> bool:
    """Whether one of the model globs allows `name` (case counts, as model names do)."""
    return any(glob in ("*", name) or fnmatchcase(name, glob) for glob in globs)
