"""Handing an open stream on: read, relay, write, under the idle timeout and the deadline, until its terminal marker."""

from __future__ import annotations

import asyncio
import time

from proxy.context import Relay
from proxy.errors import UpstreamFault
from proxy.exchange import Delivery, Exchange, UpstreamStream
from proxy.plane import DataPlane
from proxy.provider_words import clean


async def relay_stream(
    plane: DataPlane, exchange: Exchange, delivery: Delivery, deadline: float
) -> UpstreamFault | None:
    """Copy the stream to the client. Gives the fault that broke it, None when its terminal marker came."""
    relay, stream = delivery.relay, delivery.stream
    assert relay is not None
    assert stream is not None
    fault: UpstreamFault | None = None
    started = time.perf_counter()
    try:
        if delivery.buffered:
            await exchange.send_body(delivery.buffered, True)
        async with asyncio.timeout_at(deadline):
            await _copy(exchange, relay, stream)
        fault = relay.fault
    except TimeoutError:
        fault = UpstreamFault("timeout", "the deadline passed")
    except UpstreamFault as error:
        fault = error
    if fault is not None:
        fault.message = clean(fault.message, delivery.candidate.target.provider)
        if fault.kind == "request":  # it accepted the request before: this is its own failure
            fault = UpstreamFault("server", fault.message, status=fault.status)
    elapsed = time.perf_counter() - started
    exchange.attempts[-1].latency_ms += int(elapsed * 1000)
    return fault


async def _copy(exchange: Exchange, relay: Relay, stream: UpstreamStream) -> None:
    """Chunk by chunk, until the relay has seen the end or a fault, or the provider closed."""
    while not (relay.done or relay.fault):
        chunk = await stream.chunk()
        out = relay.feed(chunk) if chunk else relay.eof()
        if out:
            await exchange.send_body(out, True)
        if not chunk:
            return
        await asyncio.sleep(0)  # a provider that never waits must not keep a client's leaving from being noticed
