"""The data plane's Prometheus metrics, cheap enough to count every request.

Looking a labelled child up in prometheus-client costs about as much as counting; here every child's method is found
once and then read from a dictionary. Labels are bounded by the configuration: a model nobody configured is "unknown",
and no key, user or request id is ever a label. Durations are seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from proxy.canonical import Usage

disable_created_metrics()  # type: ignore[no-untyped-call]  # no _created series beside every counter

UNKNOWN_MODEL = "unknown"
#: Attempts above this share one label.
MAX_ATTEMPT_LABEL = 10
NANO = 1_000_000_000

CLOSED, HALF_OPEN, OPEN = 0, 1, 2

_ANSWER_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300, 600)
_OVERHEAD_SECONDS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1)

Count = Callable[[], None]
Add = Callable[[float], None]


class Meters:
    """Every metric of the data plane, in a registry of its own (the files of PROMETHEUS_MULTIPROC_DIR are shared).

    `models` is what may appear as a model label of a request: the runtime sets it with each snapshot.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self.models: Container[str] = ()
        self._counted: dict[tuple[str, str, str, str], Count] = {}
        self._attempted: dict[tuple[str, str, str, int], Count] = {}
        self._waited: dict[str, Add] = {}
        self._tokens: dict[tuple[str, str], tuple[Add, ...]] = {}
        self._cost: dict[tuple[str, str, str], Add] = {}
        self._declare_requests()
        self._declare_upstream()
        self._declare_rest()

    # ------------------------------------------------------------------------------------------------- a request's own

    def inflight(self, change: int) -> None:
        """+1 when a request begins, -1 when it ends."""
        self._inflight.inc(change)

    def observe_request(
        self,
        tenant: str,
        endpoint: str,
        model: str,
        outcome: str,
        seconds: float,
        overhead_seconds: float,
        ttft_seconds: float | None = None,
    ) -> None:
        """One finished request. `outcome` as the audit event's status; `ttft_seconds` of streams only."""
        try:
            count = self._counted[tenant, endpoint, model, outcome]
        except KeyError:
            count = self._count_of(tenant, endpoint, model, outcome)
        count()
        self._duration(seconds)
        self._overhead(overhead_seconds)
        if ttft_seconds is not None:
            self._first_token(ttft_seconds)

    def upstream(self, provider: str, model: str, outcome: str, attempt: int, seconds: float) -> None:
        """One attempt at a provider, the `attempt`th of its request; `model` is the target's configured name."""
        attempt = min(attempt, MAX_ATTEMPT_LABEL)
        try:
            count, wait = self._attempted[provider, model, outcome, attempt], self._waited[provider]
        except KeyError:
            count = self._upstream_requests.labels(provider, model, outcome, str(attempt)).inc
            wait = self._upstream_duration.labels(provider).observe
            self._attempted[provider, model, outcome, attempt], self._waited[provider] = count, wait
        count()
        wait(seconds)

    def tokens(self, tenant: str, model: str, usage: Usage) -> None:
        """What a charged request used; `model` is the alias or the target's configured name."""
        try:
            adders = self._tokens[tenant, model]
        except KeyError:
            kinds = ("input", "output", "cache_read", "cache_write", "reasoning")
            adders = tuple(self._tokens_total.labels(tenant, model, kind).inc for kind in kinds)
            self._tokens[tenant, model] = adders
        adders[0](usage.input_tokens)
        adders[1](usage.output_tokens)
        if usage.cache_read_tokens:
            adders[2](usage.cache_read_tokens)
        if usage.cache_write_tokens:
            adders[3](usage.cache_write_tokens)
        if usage.reasoning_tokens:
            adders[4](usage.reasoning_tokens)

    def cost(self, tenant: str, provider: str, model: str, nano: int) -> None:
        """Nano-USD charged."""
        try:
            add = self._cost[tenant, provider, model]
        except KeyError:
            add = self._cost[tenant, provider, model] = self._cost_usd.labels(tenant, provider, model).inc
        add(nano / NANO)

    # -------------------------------------------------------------------------------------------- what happens rarely

    def refused(self, tenant: str, scope: str, code: str) -> None:
        """`scope` is what refused (key, tenant, user, …); `tenant` is empty when nobody was authenticated."""
        self._refused.labels(tenant, scope, code).inc()

    def fallback(self, from_provider: str, to_provider: str) -> None:
        self._fallbacks.labels(from_provider, to_provider).inc()

    def breaker(self, provider: str, state: int) -> None:
        """`state` is CLOSED, HALF_OPEN or OPEN."""
        self._breaker_state.labels(provider).set(state)

    def cache(self, kind: str, result: str) -> None:
        """`kind` exact or semantic, `result` hit or miss."""
        self._cache_requests.labels(kind, result).inc()

    # ------------------------------------------------------------------------------------------------------- declared

    def _count_of(self, tenant: str, endpoint: str, model: str, outcome: str) -> Count:
        if model not in self.models:
            return self._requests.labels(tenant, endpoint, UNKNOWN_MODEL, outcome).inc
        count: Count = self._requests.labels(tenant, endpoint, model, outcome).inc
        self._counted[tenant, endpoint, model, outcome] = count
        return count

    def _declare_requests(self) -> None:
        registry = self.registry
        self._requests = Counter(
            "tollbar_requests_total", "Requests.", ("tenant", "endpoint", "model", "outcome"), registry=registry
        )
        self._duration = Histogram(
            "tollbar_request_duration_seconds", "Whole requests.", buckets=_ANSWER_SECONDS, registry=registry
        ).observe
        self._overhead = Histogram(
            "tollbar_overhead_seconds", "The gateway's own part.", buckets=_OVERHEAD_SECONDS, registry=registry
        ).observe
        self._first_token = Histogram(
            "tollbar_time_to_first_token_seconds",
            "To a stream's content.",
            buckets=_ANSWER_SECONDS,
            registry=registry,
        ).observe
        self._inflight = Gauge(
            "tollbar_inflight_requests", "Requests at work now.", multiprocess_mode="livesum", registry=registry
        )

    def _declare_upstream(self) -> None:
        registry = self.registry
        self._upstream_requests = Counter(
            "tollbar_upstream_requests_total",
            "Attempts at providers.",
            ("provider", "model", "outcome", "attempt"),
            registry=registry,
        )
        self._upstream_duration = Histogram(
            "tollbar_upstream_duration_seconds",
            "Attempts at providers.",
            ("provider",),
            buckets=_ANSWER_SECONDS,
            registry=registry,
        )
        self._breaker_state = Gauge(
            "tollbar_breaker_state",
            "0 closed, 1 half-open, 2 open.",
            ("provider",),
            multiprocess_mode="livemax",
            registry=registry,
        )
        self._fallbacks = Counter(
            "tollbar_fallbacks_total",
            "Requests served by another provider than the first one planned.",
            ("from_provider", "to_provider"),
            registry=registry,
        )

    def _declare_rest(self) -> None:
        registry = self.registry
        self._tokens_total = Counter(
            "tollbar_tokens_total",
            "Tokens charged; input includes cache.",
            ("tenant", "model", "kind"),
            registry=registry,
        )
        self._cost_usd = Counter(
            "tollbar_cost_usd_total", "USD charged.", ("tenant", "provider", "model"), registry=registry
        )
        self._refused = Counter(
            "tollbar_refused_total", "Requests refused.", ("tenant", "scope", "code"), registry=registry
        )
        self._cache_requests = Counter(
            "tollbar_cache_requests_total", "Look-ups in the answer cache.", ("kind", "result"), registry=registry
        )
