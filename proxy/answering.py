"""What goes back to the client: heads with the gateway's own headers, whole answers, errors in the dialect's words."""

from __future__ import annotations

import math

import msgspec

from proxy import metering
from proxy.context import Answer, Relay
from proxy.errors import GatewayError
from proxy.exchange import Exchange
from proxy.plane import DataPlane

Header = tuple[bytes, bytes]

_JSON: Header = (b"content-type", b"application/json")
_EVENTS: Header = (b"content-type", b"text/event-stream; charset=utf-8")
_NO_STORE: Header = (b"cache-control", b"no-store")


def common_headers(exchange: Exchange) -> list[Header]:
    """On every answer: the request id in both spellings, and that nobody stores it."""
    request_id = exchange.request_id.encode()
    return [(b"x-request-id", request_id), (b"request-id", request_id), _NO_STORE]


def answer_headers(exchange: Exchange) -> list[Header]:
    """What is known of a served request."""
    headers = common_headers(exchange)
    served = exchange.candidate
    overhead = exchange.overhead_ms
    if served is not None:
        headers += [
            (b"x-tollbar-provider", served.target.provider.name.encode()),
            (b"x-tollbar-model", served.target.model.encode("ascii", "replace")),
        ]
    headers += [
        (b"x-tollbar-attempts", b"%d" % len(exchange.attempts)),
        (b"x-tollbar-fallback", b"true" if exchange.fallback_used else b"false"),
        (b"x-tollbar-cache", b"off"),
        (b"x-tollbar-overhead-ms", b"%.3f" % overhead),
        (b"server-timing", b"gateway;dur=%.3f, upstream;dur=%.3f" % (overhead, exchange.upstream_seconds * 1000)),
    ]
    headers += exchange.limit_headers
    return headers


async def head_of_answer(exchange: Exchange, *, streaming: bool) -> None:
    """Start a 200."""
    headers = answer_headers(exchange)
    if streaming:
        headers += [_EVENTS, (b"x-accel-buffering", b"no")]
    exchange.answered = True
    await exchange.send_head(200, headers)


async def answer_whole(exchange: Exchange, answer: Answer) -> None:
    """A 200 with the whole answer in the client's dialect."""
    call = exchange.call
    assert call is not None
    if answer.body is not None:
        body = answer.body
    else:
        body = exchange.dialect.render_response(call, answer.response, metering.facts(exchange, answer.finish_reason))
    headers = answer_headers(exchange)
    cost = metering.cost_text(exchange.cost_nano)
    if cost is not None:
        headers.append((b"x-tollbar-cost-usd", cost.encode()))
    headers += [_JSON, (b"content-length", b"%d" % len(body))]
    exchange.answered = True
    await exchange.send_head(200, headers)
    await exchange.send_body(body, False)


def failure_frames(exchange: Exchange, relay: Relay, error: GatewayError) -> bytes:
    """The error frames of a stream that broke after its head was sent."""
    return relay.fail(error.message, error.code, error.type, exchange.request_id)


async def send_error(plane: DataPlane, exchange: Exchange, error: GatewayError) -> None:
    """An error answer in the dialect's envelope; nothing when an answer was begun."""
    if exchange.answered:
        return
    exchange.answered = True
    body = msgspec.json.encode(exchange.dialect.error_body(error, exchange.request_id))
    headers = answer_headers(exchange) if exchange.attempts else common_headers(exchange) + exchange.limit_headers
    headers += [_JSON, (b"content-length", b"%d" % len(body))]
    headers += [(name.encode(), value.encode("latin-1", "replace")) for name, value in error.headers.items()]
    headers += retry_headers(error)
    await exchange.send_head(error.status, headers)
    await exchange.send_body(body, False)


def retry_headers(error: GatewayError) -> list[Header]:
    """Retry-After (whole seconds, rounded up, at least 1) and its millisecond twin; x-should-retry for the SDKs."""
    headers: list[Header] = []
    wait_ms = error.retry_after_ms
    if wait_ms is None and error.status in (429, 503):
        wait_ms = 1000
    if wait_ms is not None:
        wait_ms = max(wait_ms, 1)
        headers.append((b"retry-after", b"%d" % max(math.ceil(wait_ms / 1000), 1)))
        if error.status in (429, 503):
            headers.append((b"retry-after-ms", b"%d" % wait_ms))
    if error.should_retry is not None:
        headers.append((b"x-should-retry", b"true" if error.should_retry else b"false"))
    return headers
