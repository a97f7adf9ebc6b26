"""Where a call may go: the alias's targets in the order they will be tried, each dropped one with its reason."""

from __future__ import annotations

import random

from proxy.context import COUNT, Call
from proxy.errors import BadRequest, Forbidden, NotFound, Unavailable
from proxy.exchange import Candidate, Plan, Principal
from proxy.providers.base import adapters
from proxy.snapshot import ModelSpec, Snapshot, TargetSpec, matches


def find_model(snapshot: Snapshot, principal: Principal, name: str) -> ModelSpec:
    """The alias a caller named. Raises NotFound when there is none, Forbidden when this caller may not use it."""
    model = snapshot.models.get(name)
    if model is None:
        raise NotFound("The model does not exist.", code="model_not_found", param="model")
    if not matches(principal.models, name) or not matches(principal.tenant.models, name):
        raise Forbidden("This key may not use this model.", code="model_not_allowed", param="model")
    return model


def make_plan(model: ModelSpec, principal: Principal, call: Call, now_ms: int) -> Plan:
    """Order the alias's targets for `call`. Raises Forbidden `model_not_priced` or Unavailable when none is left."""
    plan = Plan(model, [], [])
    known = adapters()
    counting = call.operation == COUNT  # any model's tokens can be estimated, and nothing is charged
    for target in model.targets:
        adapter = known.get(target.provider.kind)
        price = target.price_at(now_ms)
        if adapter is None:
            _drop(plan, target, "kind not supported")
        elif not counting and call.operation not in adapter.operations:
            _drop(plan, target, f"does not offer {call.operation}")
        elif price is None and not counting and not principal.tenant.unpriced_allowed:
            _drop(plan, target, "no price")
        else:
            plan.candidates.append(Candidate(target, adapter, price))
    if not plan.candidates:
        if any(entry["reason"] == "no price" for entry in plan.dropped):
            raise Forbidden("The model has no price, and this tenant refuses unpriced models.", code="model_not_priced")
        if any(entry["reason"].startswith("does not offer") for entry in plan.dropped):
            raise BadRequest(f"The providers of this model do not offer {call.operation}.", param="model")
        raise Unavailable("No provider serves this model.", retry_after_ms=1_000)
    if len(plan.candidates) > 1:
        _order(plan, model.strategy, call)
    return plan


def _drop(plan: Plan, target: TargetSpec, reason: str) -> None:
    plan.dropped.append({"provider": target.provider.name, "model": target.model, "reason": reason})


def _order(plan: Plan, strategy: str, call: Call) -> None:
    if call.cheapest_first or strategy == "cheapest":
        plan.candidates.sort(key=_dearness)
    elif strategy == "weighted":
        # Efraimidis and Spirakis: sorting by u^(1/w) draws an order in which weight decides the chances.
        plan.candidates.sort(key=lambda c: random.random() ** (1 / max(c.target.weight, 1)), reverse=True)
    if call.provider_preference:
        rank = {name: place for place, name in enumerate(call.provider_preference)}
        plan.candidates.sort(key=lambda c: rank.get(c.target.provider.name, len(rank)))


def _dearness(candidate: Candidate) -> tuple[bool, int]:
    price = candidate.price
    return (price is None, price.worst_nano(1000, 1000) if price else 0)
