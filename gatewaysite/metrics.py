"""GET /metrics: the data plane's meters, and what is looked up when Prometheus asks.

With PROMETHEUS_MULTIPROC_DIR set, the meters of all workers are summed from its files.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import platform
from collections.abc import Iterable

from django.conf import settings
from django.db.models import Exists, OuterRef
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from audit.models import AuditEvent, ChainHead
from gatewaysite.version import version
from proxy.admission import read_limits
from proxy.errors import GatewayError, StoreUnavailable, Unauthenticated, Unavailable
from proxy.metrics import Meters
from proxy.plane import DataPlane
from proxy.redis_keys import stream_key
from proxy.runtime import ensure_started
from proxy.snapshot import TenantSpec
from proxy.v1_database import read
from proxy.v1_errors import error_response
from tenants.shards import SHARDS

logger = logging.getLogger(__name__)

TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
#: The audit chains are looked at for this long and no longer (seconds): a scrape must not wait for a dead database.
CHAIN_SECONDS = 2.0


class Looked(Collector):
    """Families made for one answer."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self.families = tuple(families)

    def collect(self) -> Iterable[Metric]:
        return self.families


@csrf_exempt
@require_safe
async def metrics(request: HttpRequest) -> HttpResponse:
    if not _may_scrape(request):
        refusal = error_response(request, Unauthenticated("Metrics need their own token.", code="invalid_token"))
        refusal.headers["WWW-Authenticate"] = "Bearer"
        return refusal
    plane = await ensure_started()
    looked = CollectorRegistry()
    looked.register(Looked(await _looked_up(plane)))
    return HttpResponse(
        generate_latest(worker_meters(plane.meters)) + generate_latest(looked), content_type=TEXT_FORMAT
    )


def _may_scrape(request: HttpRequest) -> bool:
    if not settings.METRICS_TOKEN:
        return True
    scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(token.encode(), settings.METRICS_TOKEN.encode())


def worker_meters(own: Meters | None) -> CollectorRegistry:
    """What this worker counted, or, from the shared folder, what all did."""
    if own is not None and "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return own.registry
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    return registry


async def _looked_up(plane: DataPlane) -> list[Metric]:
    store, chains = await asyncio.gather(_of_the_store(plane), _chain_ok())
    build = InfoMetricFamily(
        "tollbar_build", "This build.", value={"version": version(), "python": platform.python_version()}
    )
    deliveries = CounterMetricFamily("tollbar_webhook_deliveries", "Webhook deliveries.", labels=("event", "result"))
    return [*store, chains, build, deliveries]


# ---------------------------------------------------------------------------------------------------------- the store


async def _of_the_store(plane: DataPlane) -> list[Metric]:
    """When the store is away, its gauges have no value rather than a wrong one."""
    up = GaugeMetricFamily("tollbar_store_up", "Whether the limiter's store answers.")
    backlog = GaugeMetricFamily("tollbar_audit_backlog", "Events that are not yet in the database.")
    ratio = GaugeMetricFamily(
        "tollbar_budget_used_ratio", "Spent part of a tenant's budget.", labels=("tenant", "window")
    )
    try:
        lengths = await asyncio.gather(*(plane.store.command("XLEN", stream_key(shard)) for shard in range(SHARDS)))
    except StoreUnavailable:
        up.add_metric((), 0)
        return [up, backlog, ratio]
    up.add_metric((), 1)
    backlog.add_metric((), sum(int(length) for length in lengths))
    for labels, used in (await _budgets_used(plane)).items():
        ratio.add_metric(labels, used)
    return [up, backlog, ratio]


async def _budgets_used(plane: DataPlane) -> dict[tuple[str, str], float]:
    """(tenant, window) -> used / limit; of two budgets with one window, the fuller one."""
    budgeted = [tenant for tenant in plane.snapshot.tenants.values() if tenant.budgets]
    found: dict[tuple[str, str], float] = {}
    for used in await asyncio.gather(*(_tenant_budgets(plane, tenant) for tenant in budgeted)):
        for labels, ratio in used:
            found[labels] = max(ratio, found.get(labels, 0.0))
    return found


async def _tenant_budgets(plane: DataPlane, tenant: TenantSpec) -> list[tuple[tuple[str, str], float]]:
    try:
        states = await read_limits(plane.store, tenant, None)
    except Unavailable:
        return []  # not counted yet after a loss of the store
    return [
        ((tenant.slug, str(state.window)), state.used / state.limit if state.limit else 1.0)
        for state in states
        if state.kind == "budget" and state.scope == "tenant"
    ]


# ---------------------------------------------------------------------------------------------------------- the chains


async def _chain_ok() -> Metric:
    family = GaugeMetricFamily(
        "tollbar_audit_chain_ok",
        "Whether every audit chain ends where its head says (verify_audit checks all of it).",
    )
    try:
        async with asyncio.timeout(CHAIN_SECONDS):
            broken = await read(_a_head_has_no_event)
    except (GatewayError, TimeoutError) as error:
        logger.warning("the audit chains cannot be looked at", extra={"why": type(error).__name__})
    else:
        family.add_metric((), 0 if broken else 1)
    return family


def _a_head_has_no_event() -> bool:
    last_event = AuditEvent.objects.filter(chain=OuterRef("chain"), seq=OuterRef("seq"), hash=OuterRef("hash"))
    return ChainHead.objects.filter(seq__gt=0).exclude(Exists(last_event)).exists()
