"""What a request may use, what it used, what that costs, and the record of it.

Bounds come before the call: input tokens never exceed the UTF-8 bytes of the prompt, because a
byte-level tokenizer makes at least one byte a token; providers render tool schemas again, and images have a tariff.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

from billing.money import nano_to_text
from proxy.canonical import FinishReason, Usage
from proxy.context import COUNT, EMBED, AnswerFacts, Call
from proxy.exchange import Exchange, Plan
from proxy.metrics import Meters
from proxy.snapshot import ModelSpec

JSON = dict[str, Any]

#: Tokens providers add around a prompt (roles, separators), and around tools.
PROMPT_OVERHEAD, TOOLS_OVERHEAD = 64, 600
#: The dearest known tariff of one image (low-cost OpenAI models count an image as up to 48,000 tokens).
IMAGE_TOKENS = 50_000
#: What an image usually costs, for estimates.
IMAGE_TOKENS_EXPECTED = 1_000
#: Expected output when a caller names no max_tokens and nothing needs a hard bound.
OUTPUT_TOKENS_EXPECTED = 1_000

BYTES_PER_TOKEN = 4
_IMAGE_TYPES = frozenset(("image", "image_url", "input_image"))


class Estimate(msgspec.Struct, frozen=True):
    """Tokens: what is expected (for rates) and what cannot be exceeded (for quotas and money)."""

    input_expected: int
    input_bound: int
    output_expected: int
    output_bound: int


def estimate(call: Call, body_bytes: int, model: ModelSpec) -> Estimate:
    """Before the call. `body_bytes` is the size of the request as received."""
    if call.operation == COUNT:
        return Estimate(0, 0, 0, 0)
    if call.operation == EMBED:
        return _embedding_estimate(call.body.get("input"), body_bytes)
    images, image_bytes = _images(call.body) if body_bytes > 512 else (0, 0)
    text = body_bytes - image_bytes
    bound = text + PROMPT_OVERHEAD + images * IMAGE_TOKENS
    if "tools" in call.body or "functions" in call.body:
        bound += text // 2 + TOOLS_OVERHEAD
    cap = model.max_output_tokens if call.output_cap is None else call.output_cap
    named = OUTPUT_TOKENS_EXPECTED
    if call.max_tokens is not None:
        cap = named = call.max_tokens
    return Estimate(
        input_expected=text // BYTES_PER_TOKEN + 1 + images * IMAGE_TOKENS_EXPECTED,
        input_bound=bound,
        output_expected=named * call.choices,
        output_bound=cap * call.choices,
    )


def _embedding_estimate(given: Any, body_bytes: int) -> Estimate:
    """Nothing comes out. Token ids are counted; of texts, models add a few tokens to each, as JSON adds bytes."""
    entries = given if isinstance(given, list) else ()
    if entries and isinstance(entries[0], int | float):
        tokens = len(entries)
    elif entries and isinstance(entries[0], list):
        tokens = sum(map(len, entries))
    else:
        return Estimate(body_bytes // BYTES_PER_TOKEN + 1, body_bytes + PROMPT_OVERHEAD, 0, 0)
    return Estimate(tokens, tokens + PROMPT_OVERHEAD, 0, 0)


def counted_tokens(call: Call, body_bytes: int) -> int:
    """What the input of a chat comes to, for a caller that only wants it counted."""
    images, image_bytes = _images(call.body)
    return (body_bytes - image_bytes) // BYTES_PER_TOKEN + 1 + images * IMAGE_TOKENS_EXPECTED


def worst_cost_nano(plan: Plan, bounds: Estimate) -> int | None:
    """The most the call can cost at the dearest candidate, in nano-USD; None when none of them has a price."""
    costs = [c.price.worst_nano(bounds.input_bound, bounds.output_bound) for c in plan.candidates if c.price]
    return max(costs, default=None)


def _images(value: Any) -> tuple[int, int]:
    """How many images a body holds, and the bytes of those that are inline."""
    count = size = 0
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            kind = item.get("type")
            if isinstance(kind, str) and kind in _IMAGE_TYPES:
                count += 1
                size += _long_text(item)
            else:
                pending.extend(child for child in item.values() if isinstance(child, (dict, list)))
        elif isinstance(item, list):
            pending.extend(child for child in item if isinstance(child, (dict, list)))
    return count, size


def _long_text(value: Any) -> int:
    if isinstance(value, str):
        return len(value) if len(value) > 256 else 0
    if isinstance(value, dict):
        return sum(_long_text(child) for child in value.values())
    return sum(_long_text(child) for child in value) if isinstance(value, list) else 0


# ---------------------------------------------------------------- after the call


def estimated_usage(produced_chars: int, input_expected: int, seen: Usage | None) -> Usage:
    """For an answer without (final) usage: what the provider said of the input, and the output counted by its text."""
    known = seen or Usage(input_tokens=input_expected)
    if not known.input_tokens:
        known = msgspec.structs.replace(known, input_tokens=input_expected)
    output = -(-produced_chars // BYTES_PER_TOKEN)
    return msgspec.structs.replace(known, output_tokens=output, reasoning_tokens=0)


def price_answer(exchange: Exchange) -> None:
    """Set the exchange's cost from its usage, at the price of the target that served it."""
    if exchange.usage is None or exchange.candidate is None:
        exchange.cost_nano = 0
        return
    price = exchange.candidate.price
    exchange.cost_nano = price.cost_nano(exchange.usage) if price is not None else None


def cost_text(cost_nano: int | None) -> str | None:
    return None if cost_nano is None else nano_to_text(cost_nano)


def facts(exchange: Exchange, finish_reason: FinishReason) -> AnswerFacts:
    """What the answer tells of itself, once settled."""
    served = exchange.candidate
    assert served is not None
    return AnswerFacts(
        request_id=exchange.request_id,
        provider=served.target.provider.name,
        model=served.target.model,
        usage=exchange.usage or Usage(),
        latency_ms=exchange.latency_ms,
        cost_usd=cost_text(exchange.cost_nano),
        fallback_used=exchange.fallback_used,
        attempts=len(exchange.attempts),
        finish_reason=finish_reason,
    )


# ---------------------------------------------------------------- the record


class Outcome(msgspec.Struct, kw_only=True):
    """How a request ended. status: success | failed | refused | cancelled | indeterminate."""

    status: str
    http_status: int
    error_code: str | None = None


def iso_ms(epoch_ms: int) -> str:
    """ISO 8601 with milliseconds and Z."""
    seconds, milliseconds = divmod(epoch_ms, 1000)
    return f"{_iso_seconds(seconds)}.{milliseconds:03d}Z"


@lru_cache(maxsize=4)
def _iso_seconds(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def entry(exchange: Exchange, outcome: Outcome, now_ms: int) -> bytes:
    """The stream entry of a request: the audit event and what the ledger needs beside it."""
    principal = exchange.principal
    assert principal is not None
    charged = outcome.status != "refused" and bool(exchange.attempts)
    price = exchange.candidate.price if exchange.candidate is not None and charged else None
    document = {
        "id": exchange.event_id,
        "time_ms": now_ms,
        "tenant_id": principal.tenant.id,
        "key_pk": principal.key.id if principal.key else None,
        "charged": charged,
        "cost_nano": exchange.cost_nano if charged else None,
        "price_id": price.id if price else None,
        "webhook_url": exchange.call.webhook_url if exchange.call else None,
        "event": _event(exchange, outcome, now_ms, price.label if price else None),
    }
    return msgspec.json.encode(document)


def skeleton(exchange: Exchange, now_ms: int) -> bytes:
    """The stream entry as far as it is known at admission; the sweeper completes it when nobody settles."""
    principal, call = exchange.principal, exchange.call
    assert principal is not None
    assert call is not None
    key_id = principal.key.id if principal.key else None
    document = {
        "id": exchange.event_id,
        "time_ms": now_ms,
        "tenant_id": principal.tenant.id,
        "key_pk": key_id,
        "price_id": None,
        "webhook_url": call.webhook_url,
        "event": {
            "id": exchange.event_id,
            "time": iso_ms(now_ms),
            "request_id": exchange.request_id,
            "tenant": principal.tenant.slug,
            "key_id": key_id,
            "user": exchange.user,
            "endpoint": exchange.endpoint,
            "stream": call.stream,
            "model_requested": call.model,
            "input_tokens": exchange.expected_input,
            "metadata": call.metadata,
        },
    }
    return msgspec.json.encode(document)


def _event(exchange: Exchange, outcome: Outcome, now_ms: int, price: str | None) -> JSON:
    principal, call, served = exchange.principal, exchange.call, exchange.candidate
    assert principal is not None
    usage = exchange.usage or Usage()
    named = exchange.model_named
    began = exchange.first_byte_at
    return {
        "id": exchange.event_id,
        "time": iso_ms(now_ms),
        "request_id": exchange.request_id,
        "tenant": principal.tenant.slug,
        "key_id": principal.key.id if principal.key else None,
        "user": exchange.user,
        "endpoint": exchange.endpoint,
        "stream": exchange.stream_wanted is True,
        "model_requested": named[:200] if isinstance(named, str) else None,
        "model_served": served.target.model if served else None,
        "provider": served.target.provider.name if served else None,
        "status": outcome.status,
        "http_status": outcome.http_status,
        "error_code": outcome.error_code,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "usage_source": exchange.usage_source,
        "cost_usd": cost_text(exchange.cost_nano),
        "price": price,
        "latency_ms": exchange.latency_ms,
        "ttft_ms": int((began - exchange.started) * 1000) if began else None,
        "overhead_ms": exchange.overhead_ms,
        "attempts": exchange.attempts,
        "fallback_used": exchange.fallback_used,
        "cached": False,
        "metadata": call.metadata if call else None,
        "decision": exchange.decision,
    }


def observe(meters: Meters, exchange: Exchange, outcome: Outcome) -> None:
    """Count a finished request."""
    principal, served = exchange.principal, exchange.candidate
    assert principal is not None
    tenant = principal.tenant.slug
    known = exchange.plan.model.name if exchange.plan else "unknown"
    began = exchange.first_byte_at
    meters.observe_request(
        tenant,
        exchange.endpoint,
        known,
        outcome.status,
        time.perf_counter() - exchange.started,
        exchange.overhead_ms / 1000,
        began - exchange.started if began else None,
    )
    if served is None or exchange.usage is None:
        return
    meters.tokens(tenant, known, exchange.usage)
    if exchange.cost_nano:
        meters.cost(tenant, served.target.provider.name, known, exchange.cost_nano)
    if exchange.fallback_used and exchange.plan is not None:
        meters.fallback(exchange.plan.candidates[0].target.provider.name, served.target.provider.name)
