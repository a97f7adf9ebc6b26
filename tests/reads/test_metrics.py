"""GET /metrics, and the meters behind it."""

import re
import subprocess
import sys
import timeit
from decimal import Decimal

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from audit.models import ChainHead
from billing.models import Budget
from proxy import runtime
from proxy.canonical import Usage
from proxy.metrics import OPEN, Meters
from tests.reads.conftest import add_event

#: Every promised name.
NAMES = {
    "tollbar_requests_total",
    "tollbar_request_duration_seconds",
    "tollbar_overhead_seconds",
    "tollbar_time_to_first_token_seconds",
    "tollbar_upstream_requests_total",
    "tollbar_upstream_duration_seconds",
    "tollbar_tokens_total",
    "tollbar_cost_usd_total",
    "tollbar_refused_total",
    "tollbar_budget_used_ratio",
    "tollbar_breaker_state",
    "tollbar_fallbacks_total",
    "tollbar_cache_requests_total",
    "tollbar_inflight_requests",
    "tollbar_audit_backlog",
    "tollbar_audit_chain_ok",
    "tollbar_webhook_deliveries_total",
    "tollbar_store_up",
    "tollbar_build_info",
}


def samples(text):
    """(name, labels) -> value."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(text, name, **labels):
    return samples(text)[name, frozenset(labels.items())]


async def test_every_name_is_there_from_the_start(gateway):
    answer = await gateway.ask("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert set(re.findall(r"^# TYPE (\S+) ", answer.text, re.MULTILINE)) == NAMES


async def test_gauges_tell_the_state_of_store_and_chains(gateway):
    text = (await gateway.ask("/metrics")).text
    assert value(text, "tollbar_store_up") == 1
    assert value(text, "tollbar_audit_backlog") == 0
    assert value(text, "tollbar_audit_chain_ok") == 1
    assert value(text, "tollbar_inflight_requests") == 0


async def test_events_that_wait_in_the_store_are_the_backlog(gateway):
    await gateway.ask("/healthz")
    running = runtime.current()
    await running.store.command("XADD", "tb:{s03}:ev", "*", "e", "{}")
    await running.store.command("XADD", "tb:{s15}:ev", "*", "e", "{}")
    assert value((await gateway.ask("/metrics")).text, "tollbar_audit_backlog") == 2


async def test_without_the_store_it_says_so_and_claims_no_backlog(gateway_without_store):
    text = (await gateway_without_store.ask("/metrics")).text
    assert value(text, "tollbar_store_up") == 0
    assert ("tollbar_audit_backlog", frozenset()) not in samples(text)


@pytest.mark.parametrize(("hash_of_head", "ok"), [(f"{1:064x}", 1), ("f" * 64, 0)])
def test_a_chain_whose_head_is_not_its_last_event_is_broken(cast, hash_of_head, ok):
    from gatewaysite.metrics import _a_head_has_no_event  # noqa: PLC0415

    add_event("acme", 1, "{}")
    ChainHead.objects.update_or_create(chain=3, defaults={"seq": 1, "hash": hash_of_head})
    assert _a_head_has_no_event() is (not ok)


@pytest.fixture
def budgeted(cast):
    Budget.objects.create(tenant=cast.acme, usd=Decimal(10), per="month")
    return cast


async def test_a_budget_is_told_as_the_part_that_is_used(budgeted, gateway):
    text = (await gateway.ask("/metrics")).text
    assert value(text, "tollbar_budget_used_ratio", tenant="acme", window="month") == 0


@pytest.mark.parametrize(
    ("authorization", "status"),
    [(None, 401), ("Bearer wrong", 401), ("Bearer", 401), ("Basic scrape-me", 401), ("Bearer scrape-me", 200)],
)
async def test_a_token_that_is_set_is_needed(gateway, settings, authorization, status):
    settings.METRICS_TOKEN = "scrape-me"
    headers = {"authorization": authorization} if authorization else {}
    answer = await gateway.ask("/metrics", headers=headers)
    assert answer.status_code == status
    if status == 401:
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["error"]["code"] == "invalid_token"


# ------------------------------------------------------------------------------------------------------------- meters


@pytest.fixture
def meters():
    meters = Meters()
    meters.models = {"smart"}
    return meters


def count_one(meters):
    meters.inflight(1)
    meters.upstream("openai-main", "gpt-4o", "success", 1, 0.3)
    meters.tokens("acme", "smart", Usage(input_tokens=100, output_tokens=20, cache_read_tokens=40))
    meters.cost("acme", "openai-main", "smart", 105_000)
    meters.observe_request("acme", "/v1/chat", "smart", "success", 0.4, 0.0012, 0.2)
    meters.inflight(-1)


def test_a_request_is_counted_once_in_each_metric(meters):
    count_one(meters)
    count_one(meters)
    text = generate_latest(meters.registry).decode()
    request = {"tenant": "acme", "endpoint": "/v1/chat", "model": "smart", "outcome": "success"}
    assert value(text, "tollbar_requests_total", **request) == 2
    assert value(text, "tollbar_request_duration_seconds_count") == 2
    assert value(text, "tollbar_request_duration_seconds_bucket", le="0.5") == 2
    assert value(text, "tollbar_overhead_seconds_bucket", le="0.001") == 0
    assert value(text, "tollbar_overhead_seconds_bucket", le="0.002") == 2
    assert value(text, "tollbar_time_to_first_token_seconds_count") == 2
    attempt = {"provider": "openai-main", "model": "gpt-4o", "outcome": "success", "attempt": "1"}
    assert value(text, "tollbar_upstream_requests_total", **attempt) == 2
    assert value(text, "tollbar_upstream_duration_seconds_count", provider="openai-main") == 2
    tokens = {"tenant": "acme", "model": "smart"}
    assert value(text, "tollbar_tokens_total", kind="input", **tokens) == 200
    assert value(text, "tollbar_tokens_total", kind="cache_read", **tokens) == 80
    cost = {"tenant": "acme", "provider": "openai-main", "model": "smart"}
    assert value(text, "tollbar_cost_usd_total", **cost) == pytest.approx(0.00021)
    assert value(text, "tollbar_inflight_requests") == 0


def test_a_whole_answer_has_no_time_to_first_token(meters):
    meters.observe_request("acme", "/v1/chat", "smart", "success", 0.4, 0.001)
    assert value(generate_latest(meters.registry).decode(), "tollbar_time_to_first_token_seconds_count") == 0


def test_models_nobody_configured_share_one_label_and_no_memory(meters):
    for number in range(1000):
        meters.observe_request("acme", "/v1/chat", f"made-up-{number}", "refused", 0.01, 0.001)
    text = generate_latest(meters.registry).decode()
    labels = {"tenant": "acme", "endpoint": "/v1/chat", "model": "unknown", "outcome": "refused"}
    assert value(text, "tollbar_requests_total", **labels) == 1000
    assert "made-up" not in text


def test_attempts_share_a_label_after_the_tenth(meters):
    for attempt in (10, 11, 500):
        meters.upstream("p", "m", "failed", attempt, 0.1)
    text = generate_latest(meters.registry).decode()
    labels = {"provider": "p", "model": "m", "outcome": "failed", "attempt": "10"}
    assert value(text, "tollbar_upstream_requests_total", **labels) == 3


def test_what_happens_rarely_is_counted(meters):
    meters.refused("acme", "key", "rate_limit_exceeded")
    meters.fallback("a", "b")
    meters.breaker("a", OPEN)
    meters.cache("exact", "hit")
    text = generate_latest(meters.registry).decode()
    assert value(text, "tollbar_refused_total", tenant="acme", scope="key", code="rate_limit_exceeded") == 1
    assert value(text, "tollbar_fallbacks_total", from_provider="a", to_provider="b") == 1
    assert value(text, "tollbar_breaker_state", provider="a") == 2
    assert value(text, "tollbar_cache_requests_total", kind="exact", result="hit") == 1


def test_two_processes_worth_of_meters_do_not_collide():
    first, second = Meters(), Meters()
    count_one(first)
    assert 'outcome="success"' not in generate_latest(second.registry).decode()


def test_counting_a_request_costs_microseconds(meters):
    count_one(meters)
    best = min(timeit.repeat(lambda: count_one(meters), number=2000, repeat=5)) / 2000
    assert best < 60e-6, f"{best * 1e6:.1f} us"


WORKER = """
from proxy.metrics import Meters
meters = Meters()
meters.models = {"smart"}
meters.observe_request("acme", "/v1/chat", "smart", "success", 0.4, 0.001)
meters.inflight(1)
"""
SCRAPE = """
from prometheus_client import generate_latest
from gatewaysite.metrics import worker_meters
print(generate_latest(worker_meters(None)).decode())
"""


def test_with_a_shared_folder_the_meters_of_all_workers_are_summed(project_root, process_environment, tmp_path):
    settings = process_environment | {
        "PROMETHEUS_MULTIPROC_DIR": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "gatewaysite.settings",
    }

    def run(program):
        command = [sys.executable, "-c", f"import django; django.setup()\n{program}"]
        return subprocess.run(
            command, cwd=project_root, env=settings, capture_output=True, text=True, timeout=60, check=True
        ).stdout

    run(WORKER)
    run(WORKER)
    text = run(SCRAPE)
    labels = {"tenant": "acme", "endpoint": "/v1/chat", "model": "smart", "outcome": "success"}
    assert value(text, "tollbar_requests_total", **labels) == 2
    assert value(text, "tollbar_request_duration_seconds_count") == 2
