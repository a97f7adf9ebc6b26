"""The shapes of the /v1 reads: what ninja validates, documents and writes."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import BeforeValidator, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

Status = Literal["success", "failed", "refused", "cancelled", "indeterminate"]
LimitKind = Literal["requests", "tokens", "concurrency", "quota", "budget"]

_GROUPS = r"^(day|model|key)(,(day|model|key))*$"


def _iso_day(value: object) -> date:
    """A day as 2025-01-31 and in no other form (pydantic alone would take seconds since 1970, too)."""
    if isinstance(value, str) and len(value) == len("2025-01-31"):
        return date.fromisoformat(value)
    raise ValueError("a day is written like 2025-01-31")


Day = Annotated[date, BeforeValidator(_iso_day)]
RowCursor = Annotated[str, Field(pattern=r"^[0-9]{1,9}$")]
EventCursor = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
RequestId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class Problem(Schema):
    """What went wrong. `code` is for programs, `message` for people; `param` names the field or parameter."""

    message: str
    type: str
    param: str | None
    code: str
    details: dict[str, Any] | None


class ErrorBody(Schema):
    error: Problem
    request_id: str


ERRORS = dict.fromkeys((400, 401, 403, 500, 503), ErrorBody)


# ------------------------------------------------------------------------------------------------------------- models


class Model(Schema):
    """OpenAI's. `created` is 0: an alias has no release date."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "tollbar"


class ModelList(Schema):
    object: Literal["list"] = "list"
    data: list[Model]


class AnthropicModel(Schema):
    """Anthropic's; an unknown release date is the epoch."""

    type: Literal["model"] = "model"
    id: str
    display_name: str
    created_at: str = "1970-01-01T00:00:00Z"


class AnthropicModelList(Schema):
    data: list[AnthropicModel]
    has_more: bool
    first_id: str | None
    last_id: str | None


# -------------------------------------------------------------------------------------------------------------- usage


class UsageFilters(Schema):
    first: Day | SkipJsonSchema[None] = Field(
        None, alias="from", description="First UTC day. Default: 29 days before the last one."
    )
    last: Day | SkipJsonSchema[None] = Field(None, alias="to", description="Last UTC day, included. Default: today.")
    group_by: str = Field("day,model,key", pattern=_GROUPS, description="Some of day, model and key, in any order.")
    format: Literal["json", "csv"] | SkipJsonSchema[None] = Field(
        None, description="Default: json, or csv when the Accept header prefers text/csv."
    )
    cursor: RowCursor | SkipJsonSchema[None] = Field(
        None, description="`next_cursor` of the page before. CSV has no pages."
    )
    limit: int = Field(1000, ge=1, le=10_000, description="Rows a page.")


class UsageTotal(Schema):
    """Sums. `cost_usd` leaves out `unpriced_requests`, whose model had no price."""

    requests: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    unpriced_requests: int
    cost_usd: str


class UsageRow(UsageTotal):
    """The sums of one group; only the grouping fields asked for are there."""

    day: str | None = None
    model: str | None = None
    key: str | None = Field(None, description="Name of the key; null for token-authenticated calls.")
    key_id: str | None = None


class UsageReport(Schema):
    model_config = ConfigDict(populate_by_name=True)

    data: list[UsageRow]
    next_cursor: str | None
    total: UsageTotal
    first: str = Field(alias="from")
    last: str = Field(alias="to")


# -------------------------------------------------------------------------------------------------------------- audit


class AuditFilters(Schema):
    cursor: EventCursor | SkipJsonSchema[None] = Field(None, description="`next_cursor` of the page before.")
    limit: int = Field(50, ge=1, le=100, description="Events a page.")
    request_id: RequestId | SkipJsonSchema[None] = None
    status: Status | SkipJsonSchema[None] = None


class AuditEventOut(Schema):
    """One event as it was recorded, with its place in the chain. Requests have every field of docs/api.md."""

    model_config = ConfigDict(extra="allow")

    id: str
    chain: int
    seq: int
    prev_hash: str
    hash: str
    time: str
    tenant: str


class AuditPage(Schema):
    data: list[AuditEventOut]
    next_cursor: str | None


# ---------------------------------------------------------------------------------------------------- limits, health


class LimitOut(Schema):
    """Counts are numbers, money is decimal text in USD. `window` is a period, or "now" for requests in flight."""

    kind: LimitKind
    scope: str
    window: str
    limit: int | str
    used: int | str
    reserved: int | str
    remaining: int | str
    resets_at: str | None


class LimitList(Schema):
    data: list[LimitOut]
    next_cursor: str | None = None


class ProviderHealth(Schema):
    """`p50_ms` and `p95_ms` of recent answers, null while nothing is known; `last_probe` is when it was last probed."""

    name: str
    state: Literal["closed", "half_open", "open"]
    last_probe: str | None
    p50_ms: float | None
    p95_ms: float | None


class HealthReport(Schema):
    data: list[ProviderHealth]
    next_cursor: str | None = None
