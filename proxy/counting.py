"""How many tokens the input of a call has, for callers that ask before they call: by the provider, or estimated.

Nothing is generated and nothing is charged. A provider that counts itself is asked; when none does, or none answers
soon, the gateway tells its own estimate and marks it.
"""

from __future__ import annotations

import asyncio

import msgspec

from proxy import metering
from proxy.attempts import deliver
from proxy.context import COUNT, Answer
from proxy.errors import BadRequest, GatewayError
from proxy.exchange import Exchange
from proxy.plane import DataPlane

#: A provider has this long to count (seconds): an estimate now is worth more than a count later.
COUNT_SECONDS = 10.0


async def count(plane: DataPlane, exchange: Exchange, deadline: float) -> Answer:
    """The count for the client, by `deadline` (loop time). Raises BadRequest for what a provider refused."""
    plan, call = exchange.plan, exchange.call
    assert plan is not None
    assert call is not None
    exchange.cost_nano = 0
    able = [c for c in plan.candidates if COUNT in c.adapter.operations and call.dialect in c.adapter.dialects]
    if able:
        plan.candidates = able
        try:
            soon = min(deadline, asyncio.get_running_loop().time() + COUNT_SECONDS)
            delivery = await deliver(plane, exchange, soon)
        except BadRequest:
            raise
        except GatewayError as error:
            exchange.decision.append({"step": "count", "estimated": True, "because": error.code})
        else:
            assert delivery.answer is not None
            return delivery.answer
    exchange.candidate = None  # nobody served it
    tokens = metering.counted_tokens(call, exchange.body_bytes)
    body = msgspec.json.encode({"input_tokens": tokens, "estimated": True})
    return Answer(body=body, usage=None, finish_reason="stop")
