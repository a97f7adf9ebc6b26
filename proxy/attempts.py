"""Attempts at providers inside one deadline: every candidate once, then again those that may be retried.

Another candidate is tried at once; the same one only after a pause (full jitter, or what the provider asked for), and
never more often than its `max_attempts`. Nothing is tried again once the first content was seen.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from proxy.context import Answer, AttemptRecord, Call, ProviderReply
from proxy.errors import BadRequest, GatewayError, Unavailable, UpstreamFault
from proxy.exchange import Candidate, Delivery, Exchange, UpstreamStream
from proxy.plane import DataPlane
from proxy.provider_words import clean
from proxy.relay import TranslatingRelay
from proxy.upstream import MAX_ANSWER_BYTES, MAX_ERROR_BYTES, Timeouts, read_reply

logger = logging.getLogger(__name__)

#: What an adapter raises when a provider's answer has not the shape it should have.
_MALFORMED = (RecursionError, ValueError, TypeError, KeyError, IndexError, AttributeError, msgspec.MsgspecError)


class _Tries:
    """How the candidates have fared so far: who may be tried again, and what is told when nobody answers."""

    def __init__(self, candidates: list[Candidate]) -> None:
        self.waiting = candidates
        self.rounds = max(candidate.target.provider.max_attempts for candidate in candidates)
        self.made: dict[int, int] = {}
        self.fault: UpstreamFault | None = None
        self.refused: BadRequest | None = None

    def note(self, candidate: Candidate, fault: UpstreamFault) -> bool:
        """Count a failure; whether the same candidate may be tried again."""
        self.fault = fault
        made = self.made[id(candidate)] = self.made.get(id(candidate), 0) + 1
        return fault.retryable and made < candidate.target.provider.max_attempts

    def error(self) -> GatewayError:
        if self.fault is not None:
            return self.fault.to_gateway_error()
        return self.refused or Unavailable("No provider can serve this request.")


async def deliver(plane: DataPlane, exchange: Exchange, deadline: float) -> Delivery:
    """The first good answer within `deadline` (loop time). Raises GatewayError when no candidate gave one."""
    assert exchange.plan is not None
    tries = _Tries(exchange.plan.candidates)
    for round_number in range(tries.rounds):
        delivery = await _round(plane, exchange, tries, deadline)
        if delivery is not None:
            return delivery
        if not tries.waiting or tries.fault is None:
            break
        if not await _pause(tries.waiting[0], tries.fault, round_number, deadline):
            break
    raise tries.error()


async def _round(plane: DataPlane, exchange: Exchange, tries: _Tries, deadline: float) -> Delivery | None:
    """Every waiting candidate once; leaves those waiting that may be tried again."""
    again = []
    for candidate in tries.waiting:
        try:
            return await _attempt(plane, exchange, candidate, deadline)
        except BadRequest as error:
            tries.refused = error
            _note_inexpressible(exchange, candidate, error)
        except UpstreamFault as fault:
            if not fault.failover:
                raise fault.to_gateway_error() from None
            if tries.note(candidate, fault):
                again.append(candidate)
    tries.waiting = again
    return None


def _note_inexpressible(exchange: Exchange, candidate: Candidate, error: BadRequest) -> None:
    exchange.decision.append(
        {
            "step": "candidate",
            "provider": candidate.target.provider.name,
            "model": candidate.target.model,
            "dropped": "cannot express the request",
            "param": error.param,
        }
    )


async def _pause(candidate: Candidate, fault: UpstreamFault, round_number: int, deadline: float) -> bool:
    """Wait before the next round; False when the wait would be too long to make sense."""
    provider = candidate.target.provider
    ceiling = min(provider.backoff * 2**round_number, provider.max_backoff)
    pause = random.uniform(0, ceiling)
    if fault.retry_after_ms is not None:
        pause = max(pause, fault.retry_after_ms / 1000)
        if pause > provider.max_backoff:
            return False
    if asyncio.get_running_loop().time() + pause >= deadline:
        return False
    await asyncio.sleep(pause)
    return True


async def _attempt(plane: DataPlane, exchange: Exchange, candidate: Candidate, deadline: float) -> Delivery:
    """One try, recorded whatever happens. Raises UpstreamFault, or BadRequest for what the adapter cannot express."""
    call, target = exchange.call, candidate.target
    assert call is not None
    request = candidate.adapter.build_request(call, target.adapter_target)
    exchange.candidate = candidate
    record = AttemptRecord(provider=target.provider.name, model=target.model, outcome="cancelled")
    exchange.attempts.append(record)
    started = time.perf_counter()
    try:
        now = asyncio.get_running_loop().time()
        until = min(deadline, now + target.provider.total)
        async with asyncio.timeout_at(min(until, now + target.provider.first_byte)) as timer:
            stream = await plane.upstream.open(request, timeouts_of(candidate))
            timer.reschedule(until)
            delivery = await _receive(exchange, candidate, stream, record)
        record.outcome = "success"
        return delivery
    except TimeoutError:
        raise _failed(record, UpstreamFault("timeout", "the deadline passed"), candidate) from None
    except UpstreamFault as fault:
        raise _failed(record, fault, candidate) from None
    except _MALFORMED as error:
        logger.warning(
            "provider answer not understood", extra={"provider": target.provider.name, "why": repr(error)[:200]}
        )
        raise _failed(record, UpstreamFault("protocol", "the answer was not understood"), candidate) from None
    finally:
        elapsed = time.perf_counter() - started
        record.latency_ms = int(elapsed * 1000)
        exchange.upstream_seconds += elapsed
        plane.meters.upstream(target.provider.name, target.model, record.outcome, len(exchange.attempts), elapsed)


def timeouts_of(candidate: Candidate) -> Timeouts:
    provider = candidate.target.provider
    return Timeouts(provider.connect, provider.first_byte, provider.idle, provider.total)


def _failed(record: AttemptRecord, fault: UpstreamFault, candidate: Candidate) -> UpstreamFault:
    record.outcome = "failed"
    record.http_status = fault.status
    record.error_code = fault.kind
    fault.message = clean(fault.message, candidate.target.provider)
    return fault


async def _receive(exchange: Exchange, candidate: Candidate, stream: UpstreamStream, record: AttemptRecord) -> Delivery:
    call, adapter = exchange.call, candidate.adapter
    assert call is not None
    record.http_status = stream.status
    if not 200 <= stream.status < 300:
        raise adapter.parse_error(await read_reply(stream, MAX_ERROR_BYTES))
    if call.stream:
        return await _open_stream(exchange, candidate, stream)
    reply = await read_reply(stream, MAX_ANSWER_BYTES)
    return Delivery(candidate, answer=_whole_answer(call, candidate, reply))


def _whole_answer(call: Call, candidate: Candidate, reply: ProviderReply) -> Answer:
    if call.dialect in candidate.adapter.dialects:
        return candidate.adapter.pass_through(call, reply)
    response = candidate.adapter.parse_response(call, reply)
    return Answer(
        body=None,
        usage=response.usage,
        finish_reason=response.finish_reason,
        produced_chars=_characters(response.parts) if response.usage is None else 0,
        response=response,
    )


def _characters(parts: Sequence[Any]) -> int:
    """Of the texts, thinking and tool arguments of an answer, for an estimate of its tokens."""
    texts = (getattr(part, name, None) for part in parts for name in ("text", "name", "arguments"))
    return sum(len(text) for text in texts if text)


async def _open_stream(exchange: Exchange, candidate: Candidate, stream: UpstreamStream) -> Delivery:
    """Read until the first content (or the end): up to here another candidate may still answer."""
    call, adapter = exchange.call, candidate.adapter
    assert call is not None
    if call.dialect in adapter.dialects:
        relay = adapter.stream_pass_through(call)
    else:
        renderer = exchange.dialect.stream_renderer(call, exchange.request_id, candidate.target.model)
        relay = TranslatingRelay(adapter.stream_decoder(call), renderer)
    pieces = []
    try:
        while not (relay.started or relay.done or relay.fault):
            chunk = await stream.chunk()
            pieces.append(relay.feed(chunk) if chunk else relay.eof())
            if not chunk:
                break
        if relay.fault is not None and not relay.started:
            raise relay.fault
    except BaseException:
        stream.close()
        raise
    exchange.first_byte_at = time.perf_counter()
    return Delivery(candidate, stream=stream, relay=relay, buffered=b"".join(pieces))
