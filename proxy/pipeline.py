"""The path of one request, top to bottom. Every stage is a module; this one only orders them.

    receive → authenticate → authorise → plan → admit → attempt → answer or stream → settle

Whatever happens after authentication ends in exactly one audit event: written by `settle` for an admitted request, by
`refuse` for any other.
"""

from __future__ import annotations

import asyncio
import logging

from audit.event_id import new_event_id
from billing.money import nano_to_text
from proxy import metering, settle
from proxy.admission import AdmissionRequest, Admitted, admit, rate_headers
from proxy.answering import answer_whole, failure_frames, head_of_answer, send_error
from proxy.attempts import deliver
from proxy.authenticate import authenticate, credential_of
from proxy.authorise import authorise, effective_user
from proxy.context import COUNT, Call
from proxy.counting import count
from proxy.dialects.base import canonical
from proxy.errors import BadRequest, ClientGone, GatewayError, Inexpressible, UpstreamFault
from proxy.exchange import Candidate, Delivery, Exchange, Plan
from proxy.metering import Outcome
from proxy.plan import find_model, make_plan
from proxy.plane import DataPlane
from proxy.request_headers import apply_headers
from proxy.streaming import relay_stream
from proxy.strict_json import decode_object

logger = logging.getLogger(__name__)


async def handle(plane: DataPlane, exchange: Exchange) -> None:
    """Answer one request, whatever happens to it."""
    try:
        exchange.principal = await authenticate(plane, credential_of(exchange.headers))
    except GatewayError as error:
        await send_error(plane, exchange, error)
        return
    exchange.event_id = new_event_id(plane.store.now_ms())
    key = exchange.principal.key
    exchange.decision.append({"step": "key", "id": key.id if key else None, "accepted": True})
    exchange.unshielded.clear()  # an admission must be known before a leaving client may end it
    try:
        deadline = await prepare(plane, exchange)
    except GatewayError as error:
        await refuse(plane, exchange, error)
        return
    exchange.unshielded.set()
    await serve(plane, exchange, deadline)


async def prepare(plane: DataPlane, exchange: Exchange) -> float:
    """Everything before a provider is asked; gives the deadline in loop time. Raises GatewayError for a refusal."""
    principal = exchange.principal
    assert principal is not None
    body = await exchange.read_body()
    exchange.body_bytes = len(body)
    document = decode_object(body)
    exchange.model_named, exchange.stream_wanted = document.get("model"), document.get("stream")
    call = exchange.call = exchange.dialect.parse_call(document)
    apply_headers(call, exchange.headers)
    refuse_unavailable(call)
    exchange.user = effective_user(principal, call.user)
    authorise(principal, "inference", exchange.address)
    now_ms = plane.store.now_ms()
    model = find_model(plane.snapshot, principal, call.model)
    plan = exchange.plan = make_plan(model, principal, call, now_ms)
    exchange.decision.append({"step": "plan", "candidates": [candidate_name(c) for c in plan.candidates]})
    exchange.decision.extend({"step": "candidate", **entry} for entry in plan.dropped)
    translate(exchange, plan)
    if call.max_tokens is None and needs_output_cap(exchange):
        call.output_cap = model.max_output_tokens
    bounds = metering.estimate(call, len(body), model)
    exchange.expected_input = bounds.input_expected
    seconds = time_allowed(exchange)  # past it and the grace, the sweeper charges what nobody settled
    request = AdmissionRequest(
        event_id=exchange.event_id,
        tenant=principal.tenant,
        key=principal.key,
        user=exchange.user,
        expected_tokens=bounds.input_expected + bounds.output_expected,
        worst_tokens=bounds.input_bound + bounds.output_bound,
        worst_nano=metering.worst_cost_nano(plan, bounds),
        deadline_ms=now_ms + int((seconds + plane.config.reservation_grace_seconds) * 1000),
        skeleton=metering.skeleton(exchange, now_ms),
    )
    note_admission(exchange, await admit(plane, request))
    return asyncio.get_running_loop().time() + seconds


def translate(exchange: Exchange, plan: Plan) -> None:
    """Build the canonical form when a candidate needs it: what is malformed is refused before anything is reserved.

    What only its own dialect can say leaves the candidates that speak it. Raises BadRequest.
    """
    call = exchange.call
    assert call is not None
    if all(call.dialect in candidate.adapter.dialects for candidate in plan.candidates):
        return
    try:
        canonical(exchange.dialect, call)
    except Inexpressible as error:
        native = [candidate for candidate in plan.candidates if call.dialect in candidate.adapter.dialects]
        if not native:
            raise
        exchange.decision.append({"step": "candidates", "kept": "same dialect", "param": error.param})
        plan.candidates = native


def refuse_unavailable(call: Call) -> None:
    """What the format has and this version does not do yet is refused, never quietly left out."""
    for name, wanted in (("background", call.background), ("webhook_url", call.webhook_url is not None)):
        if wanted:
            raise BadRequest(f"'{name}' is not available in this version.", param=name)


def candidate_name(candidate: Candidate) -> str:
    return f"{candidate.target.provider.name}/{candidate.target.model}"


def note_admission(exchange: Exchange, admitted: Admitted) -> None:
    """Keep what was admitted: the limits for the answer's headers, and each decision for the record."""
    exchange.admitted = admitted
    exchange.limit_headers = rate_headers(admitted.states)
    if admitted.degraded:
        exchange.limit_headers.append((b"x-ratelimit-degraded", b"true"))
        exchange.decision.append({"step": "store", "degraded": True})
    for state in admitted.states:
        after = state.used + state.reserved
        tell = nano_to_text if state.kind == "budget" else int
        exchange.decision.append(
            {
                "step": "limit",
                "kind": state.kind,
                "scope": state.scope,
                "window": state.window,
                "limit": tell(state.limit),
                "before": tell(after - state.amount),
                "after": tell(after),
            }
        )


def needs_output_cap(exchange: Exchange) -> bool:
    """Whether a quota or a budget must know the most that may come out."""
    principal = exchange.principal
    assert principal is not None
    owners = (principal.tenant, principal.key) if principal.key else (principal.tenant,)
    return any(owner.budgets or owner.quotas for owner in owners)


def time_allowed(exchange: Exchange) -> float:
    """Seconds for the whole call: the caller's own deadline, else the most patient candidate's."""
    call, plan = exchange.call, exchange.plan
    assert call is not None
    assert plan is not None
    longest = max(candidate.target.provider.total for candidate in plan.candidates)
    return min(call.timeout_ms / 1000, longest) if call.timeout_ms else longest


async def serve(plane: DataPlane, exchange: Exchange, deadline: float) -> None:
    """Ask providers and answer; always settles, also when the client has gone (then the task is cancelled)."""
    try:
        if exchange.call is not None and exchange.call.operation == COUNT:
            await serve_count(plane, exchange, deadline)
            return
        delivery = await deliver(plane, exchange, deadline)
        if delivery.stream is not None:
            await serve_stream(plane, exchange, delivery, deadline)
        else:
            await serve_whole(plane, exchange, delivery)
    except GatewayError as error:
        status = "failed" if exchange.attempts else "refused"  # no provider could even be asked
        await finish(plane, exchange, Outcome(status=status, http_status=error.status, error_code=error.code))
        await send_error(plane, exchange, error)
    except asyncio.CancelledError:
        if exchange.admitted is not None:
            exchange.usage_source = "estimated" if exchange.usage else None
            await finish(
                plane, exchange, Outcome(status="cancelled", http_status=499, error_code=ClientGone.default_code)
            )
        raise
    except Exception:
        await finish(plane, exchange, Outcome(status="failed", http_status=500, error_code="upstream_error"))
        raise


async def serve_count(plane: DataPlane, exchange: Exchange, deadline: float) -> None:
    """Tell how many tokens a call would have; free of charge."""
    answer = await count(plane, exchange, deadline)
    await finish(plane, exchange, Outcome(status="success", http_status=200))
    await answer_whole(exchange, answer)


async def serve_whole(plane: DataPlane, exchange: Exchange, delivery: Delivery) -> None:
    answer = delivery.answer
    assert answer is not None
    exchange.usage_source = "provider" if answer.usage is not None else "estimated"
    exchange.usage = answer.usage or metering.estimated_usage(answer.produced_chars, exchange.expected_input, None)
    await finish(plane, exchange, Outcome(status="success", http_status=200))
    await answer_whole(exchange, answer)


async def serve_stream(plane: DataPlane, exchange: Exchange, delivery: Delivery, deadline: float) -> None:
    """Hand a stream on; its closing frames go out after settlement, an error frame when it broke."""
    relay, stream = delivery.relay, delivery.stream
    assert relay is not None
    assert stream is not None
    try:
        await head_of_answer(exchange, streaming=True)
        fault = await relay_stream(plane, exchange, delivery, deadline)
    except asyncio.CancelledError:
        exchange.usage = metering.estimated_usage(relay.produced_chars, exchange.expected_input, relay.usage)
        raise
    finally:
        stream.close()
    if fault is None:
        told = relay.usage if relay.usage_final else None
        exchange.usage_source = "provider" if told is not None else "estimated"
        exchange.usage = told or metering.estimated_usage(relay.produced_chars, exchange.expected_input, relay.usage)
        await finish(plane, exchange, Outcome(status="success", http_status=200))
        await exchange.send_body(relay.end(metering.facts(exchange, relay.finish_reason)), False)
    else:
        await fail_stream(plane, exchange, delivery, fault)


async def fail_stream(plane: DataPlane, exchange: Exchange, delivery: Delivery, fault: UpstreamFault) -> None:
    """A stream that broke after content: charged for what was produced, and told to the client."""
    relay = delivery.relay
    assert relay is not None
    error = fault.to_gateway_error()
    exchange.attempts[-1].outcome, exchange.attempts[-1].error_code = "failed", fault.kind
    exchange.usage_source = "estimated"
    exchange.usage = metering.estimated_usage(relay.produced_chars, exchange.expected_input, relay.usage)
    await finish(plane, exchange, Outcome(status="failed", http_status=200, error_code=error.code))
    await exchange.send_body(failure_frames(exchange, relay, error), False)


async def finish(plane: DataPlane, exchange: Exchange, outcome: Outcome) -> None:
    """Settle once: holds released, the difference charged, the event written. Idempotent by event id."""
    admitted = exchange.admitted
    if admitted is None:
        return
    exchange.unshielded.clear()
    exchange.admitted = None
    if exchange.attempts:
        metering.price_answer(exchange)
    usage = exchange.usage
    await settle.settle(
        plane,
        admitted,
        tokens=usage.input_tokens + usage.output_tokens if usage else 0,
        cost_nano=exchange.cost_nano or 0,
        entry=metering.entry(exchange, outcome, admitted.now_ms),
    )
    exchange.unshielded.set()
    metering.observe(plane.meters, exchange, outcome)


async def refuse(plane: DataPlane, exchange: Exchange, error: GatewayError) -> None:
    """A request that was not admitted: one event, nothing consumed."""
    assert exchange.principal is not None
    outcome = Outcome(status="refused", http_status=error.status, error_code=error.code)
    if error.details:
        exchange.decision.append({"step": "refused", "code": error.code, **error.details})
    now_ms = plane.store.now_ms()
    await settle.record(plane, exchange.principal.tenant.shard, metering.entry(exchange, outcome, now_ms))
    metering.observe(plane.meters, exchange, outcome)
    plane.meters.refused(exchange.principal.tenant.slug, (error.details or {}).get("scope", "request"), error.code)
    await send_error(plane, exchange, error)
