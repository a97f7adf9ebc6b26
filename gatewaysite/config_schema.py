"""The configuration file as types: every field, its default, its bounds. Unknown fields are errors.

A secret that an entry leaves out stays as it is (or is made, or is empty); `null` takes a provider's away. Every other
field that is left out has the default named here.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from gatewaysite.config_values import (
    Amount,
    BaseUrl,
    Cidr,
    HeaderName,
    HeaderValue,
    Label,
    Moment,
    Name,
    Scope,
    Secret,
    Slug,
    TargetModel,
    WebhookUrl,
    Zone,
)
from tenants.limit_fields import MAX_PER_MINUTE

#: A price without a date has always held.
ALWAYS = date(1970, 1, 1)

Limit = Annotated[int, Meta(ge=1, le=MAX_PER_MINUTE)]
Seconds = Annotated[float, Meta(ge=0.001, le=86_400)]
SecondsOrZero = Annotated[float, Meta(ge=0, le=86_400)]
TimeToLive = Annotated[int, Meta(ge=0, le=31_536_000)]
Count = Annotated[int, Meta(ge=1, le=1000)]
Period = Literal["minute", "hour", "day", "week", "month", "total"]
Glob = Annotated[str, Meta(min_length=1, max_length=200)]
Plain = Annotated[str, Meta(max_length=40, pattern=r"^[A-Za-z0-9._-]*$")]
Text = Annotated[str, Meta(min_length=1, max_length=300)]


class Entry(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """One mapping of the file."""


# ------------------------------------------------------------------------------------------------------- where calls go


class Timeout(Entry, kw_only=True, frozen=True):
    """Seconds: to connect, to the first byte, between two pieces of a stream, for the whole answer."""

    connect: Seconds = 5.0
    first_byte: Seconds = 60.0
    idle: Seconds = 30.0
    total: Seconds = 600.0


class Retries(Entry, kw_only=True, frozen=True):
    """`max_attempts` counts all attempts at this provider, the first included; waits in seconds."""

    max_attempts: Annotated[int, Meta(ge=1, le=20)] = 3
    backoff: SecondsOrZero = 0.5
    max_backoff: SecondsOrZero = 10.0


class Breaker(Entry, kw_only=True, frozen=True):
    """Opens after `failures` within `window` seconds, lets a probe through after `open_for`, closes after successes."""

    failures: Annotated[int, Meta(ge=1, le=1_000_000)] = 5
    window: Seconds = 60.0
    open_for: Seconds = 30.0
    close_after: Count = 2


class ProviderLimits(Entry, kw_only=True, frozen=True):
    """What the account at the provider allows."""

    rpm: Limit | None = None
    tpm: Limit | None = None
    concurrency: Limit | None = None


class ProviderEntry(Entry, kw_only=True, frozen=True):
    """One account at one provider."""

    name: Label
    kind: Plain  # of an adapter in proxy/providers/
    base_url: BaseUrl | None = None
    api_key: Secret | UnsetType | None = UNSET
    region: Plain | None = None
    api_version: Plain | None = None
    headers: dict[HeaderName, HeaderValue] = {}
    timeout: Timeout = Timeout()
    retries: Retries = Retries()
    breaker: Breaker = Breaker()
    limits: ProviderLimits = ProviderLimits()


class TargetEntry(Entry, kw_only=True, frozen=True):
    """One place that a model may be served from."""

    provider: Label
    model: TargetModel
    weight: Annotated[int, Meta(ge=0, le=1_000_000)] = 1


class CacheEntry(Entry, kw_only=True, frozen=True):
    """Seconds that answers are kept; 0: off."""

    exact_ttl: TimeToLive = 0
    semantic_ttl: TimeToLive = 0
    semantic_threshold: Annotated[float, Meta(ge=0, le=1)] = 0.95


class ModelEntry(Entry, kw_only=True, frozen=True):
    """What callers may name in "model". `max_output_tokens`: the most a caller may ask for."""

    name: Label
    strategy: Literal["ordered", "weighted", "cheapest", "fastest"] = "ordered"
    targets: Annotated[tuple[TargetEntry, ...], Meta(min_length=1)]
    max_output_tokens: Annotated[int, Meta(ge=1, le=2_000_000)] = 32_000
    cache: CacheEntry = CacheEntry()


class PriceEntry(Entry, kw_only=True, frozen=True):
    """USD per `per` tokens from a date on."""

    provider: Label
    model: TargetModel
    input: Amount
    output: Amount
    cache_read: Amount | None = None
    cache_write: Amount | None = None
    cache_write_1h: Amount | None = None
    per: Annotated[int, Meta(ge=1, le=1_000_000_000)] = 1_000_000
    effective_from: date = ALWAYS


# ------------------------------------------------------------------------------------------------------------ who calls


class Limits(Entry, kw_only=True, frozen=True):
    """Requests and tokens per minute, requests at once; `user_…` of each user."""

    rpm: Limit | None = None
    tpm: Limit | None = None
    concurrency: Limit | None = None
    user_rpm: Limit | None = None
    user_tpm: Limit | None = None
    algorithm: Literal["token_bucket", "sliding_window"] = "token_bucket"


class QuotaEntry(Entry, kw_only=True, frozen=True):
    """Tokens per calendar period."""

    tokens: Annotated[int, Meta(ge=1, lt=2**53)]
    per: Period = "day"
    timezone: Zone = Zone("UTC")


class BudgetEntry(Entry, kw_only=True, frozen=True):
    """USD per calendar period. `scope` defaults to the owner's: tenant, or key inside a key."""

    usd: Amount
    per: Period = "month"
    warn_at: tuple[Annotated[int, Meta(ge=1, le=100)], ...] = (80, 95)
    timezone: Zone = Zone("UTC")
    scope: Literal["tenant", "key", "user"] | None = None


class TierEntry(Entry, kw_only=True, frozen=True):
    """Default limits and quotas for tenants."""

    name: Slug
    limits: Limits = Limits()
    quotas: tuple[QuotaEntry, ...] = ()


class JwtEntry(Entry, kw_only=True, frozen=True):
    """How the tenant's tokens are checked: by a shared secret or a key set."""

    issuer: Text
    audience: Text
    jwks_url: BaseUrl | None = None
    secret: Secret | UnsetType | None = UNSET
    algorithms: tuple[
        Literal["HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "ES256", "ES384", "EdDSA"], ...
    ] = ()


class KeyEntry(Entry, kw_only=True, frozen=True):
    """A key of a tenant. Without `secret` the key must exist already."""

    name: Name
    secret: Secret | UnsetType = UNSET
    scopes: tuple[Scope, ...] = (Scope("inference"),)
    models: tuple[Glob, ...] = ("*",)
    cidrs: tuple[Cidr, ...] = ()
    may_speak_for_users: bool = True
    expires_at: Moment | None = None
    limits: Limits = Limits()
    quotas: tuple[QuotaEntry, ...] = ()
    budgets: tuple[BudgetEntry, ...] = ()


class WebhookEntry(Entry, kw_only=True, frozen=True):
    """A receiver of the tenant's events; `events` are globs of event types."""

    url: WebhookUrl
    events: tuple[Glob, ...] = ("*",)
    secret: Secret | UnsetType = UNSET


class TenantEntry(Entry, kw_only=True, frozen=True):
    """A team or customer."""

    slug: Slug
    name: Name | None = None
    tier: Slug | None = None
    priority: Literal["low", "normal", "high"] = "normal"
    models: tuple[Glob, ...] = ("*",)
    unpriced: Literal["refuse", "allow"] = "refuse"
    webhook_secret: Secret | UnsetType = UNSET
    limits: Limits = Limits()
    quotas: tuple[QuotaEntry, ...] = ()
    budgets: tuple[BudgetEntry, ...] = ()
    jwt: JwtEntry | None = None
    keys: tuple[KeyEntry, ...] = ()
    webhooks: tuple[WebhookEntry, ...] = ()


class ConfigFile(Entry, kw_only=True, frozen=True):
    """The whole file."""

    version: Literal[1]
    providers: tuple[ProviderEntry, ...] = ()
    models: tuple[ModelEntry, ...] = ()
    prices: tuple[PriceEntry, ...] = ()
    tiers: tuple[TierEntry, ...] = ()
    tenants: tuple[TenantEntry, ...] = ()
