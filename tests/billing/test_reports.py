"""usage_report, cost_report and top_requests."""

import csv
import json
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from billing.ledger import post
from tenants.services import create_key, create_tenant
from tests.recording import MOMENT_MS, posting

pytestmark = pytest.mark.django_db

DAY_MS = 86_400_000
SPAN = ("--from", "2026-03-14", "--to", "2026-03-15")


def run(command: str, *arguments: str) -> str:
    out = StringIO()
    call_command(command, *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(text)))


@pytest.fixture
def used() -> str:
    """Two tenants on two days; gives the id of acme's key."""
    acme = create_tenant(slug="acme", name="Acme", actor="test")
    globex = create_tenant(slug="globex", name="Globex", actor="test")
    key = create_key(tenant=acme, name="=cmd()", actor="test").key
    post([posting(acme.pk, key_id=key.pk, latency_ms=number) for number in range(1, 41)])
    post([posting(acme.pk, at_ms=MOMENT_MS + DAY_MS, cost_nano=None, status="failed", provider="")])
    post(
        [posting(globex.pk, cost_nano=7_000_000_000, fallback_used=True), posting(globex.pk, cached=True, cost_nano=0)]
    )
    return key.pk


def test_usage_is_grouped_by_tenant_model_and_day_as_csv(used):
    text = run("usage_report", *SPAN)
    assert text.splitlines()[0] == (
        "tenant,model,day,requests,input_tokens,output_tokens,cache_read_tokens,cache_write_tokens,reasoning_tokens,"
        "unpriced_requests,cost_usd"
    )
    assert [(row["tenant"], row["day"], row["requests"], row["cost_usd"]) for row in rows(text)] == [
        ("acme", "2026-03-14", "40", "0.010000"),
        ("acme", "2026-03-15", "1", "0.000000"),
        ("globex", "2026-03-14", "2", "7.000000"),
    ]
    assert rows(text)[1]["unpriced_requests"] == "1"


def test_usage_by_key_names_the_key_and_no_formula_reaches_a_spreadsheet(used):
    named = rows(run("usage_report", *SPAN, "--group-by", "key,provider"))
    assert [(row["key"], row["key_id"], row["provider"], row["requests"]) for row in named] == [
        ("", "", "", "1"),
        ("", "", "north", "2"),
        ("'=cmd()", used, "north", "40"),
    ]


def test_usage_as_json(used):
    document = json.loads(run("usage_report", *SPAN, "--group-by", "tenant", "--format", "json"))
    assert [(row["tenant"], row["requests"], row["cost_usd"]) for row in document] == [
        ("acme", 41, "0.010000"),
        ("globex", 2, "7.000000"),
    ]
    assert json.loads(run("usage_report", "--from", "2020-01-01", "--to", "2020-01-02", "--format", "json")) == []


def test_usage_into_a_file(used, tmp_path: Path):
    path = tmp_path / "usage.csv"
    assert run("usage_report", *SPAN, "-o", str(path)) == ""
    assert path.read_bytes().decode() == run("usage_report", *SPAN)
    with pytest.raises(CommandError, match="No such file"):
        run("usage_report", *SPAN, "-o", str(tmp_path / "missing" / "usage.csv"))


def test_both_days_of_a_span_are_included(used):
    one_day = ("--from", "2026-03-15", "--to", "2026-03-15")
    assert [row["day"] for row in rows(run("usage_report", *one_day))] == ["2026-03-15"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--from", "2026-03-15", "--to", "2026-03-14"),
        ("--from", "today"),
        ("--group-by", "tenant,colour"),
        ("--format", "xml"),
    ],
)
def test_what_cannot_be_reported_is_a_usage_error(arguments):
    with pytest.raises(CommandError) as error:
        run("usage_report", *arguments)
    assert error.value.returncode in (1, 2)


def test_costs_by_day_and_tenant(used):
    found = json.loads(run("cost_report", *SPAN, "--json"))
    assert [(row["day"], row["tenant"], row["cost_usd"], row["p95_latency_ms"]) for row in found] == [
        ("2026-03-14", "acme", "0.010000", 38),
        ("2026-03-14", "globex", "7.000000", 12),
        ("2026-03-15", "acme", "0.000000", 12),
    ]
    globex = found[1]
    assert (globex["cache_hit_rate"], globex["fallback_rate"], globex["failure_rate"]) == (0.5, 0.5, 0.0)
    assert found[2]["failure_rate"] == 1.0
    assert found[0]["input_tokens"] == 4000


def test_costs_as_a_table(used):
    lines = run("cost_report", *SPAN).splitlines()
    assert lines[0].split()[:4] == ["day", "tenant", "requests", "USD"]
    assert lines[2].split()[:4] == ["2026-03-14", "globex", "2", "7.000000"]


def test_the_dearest_requests_come_first():
    acme = create_tenant(slug="acme", name="Acme", actor="test")
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    old_ms = now_ms - int(timedelta(days=8).total_seconds() * 1000)
    post([posting(acme.pk, at_ms=now_ms, cost_nano=nano) for nano in (5, 9, 7, 0)])
    post([posting(acme.pk, at_ms=now_ms, cost_nano=None), posting(acme.pk, at_ms=old_ms, cost_nano=100)])
    costs = [row["cost_usd"] for row in json.loads(run("top_requests", "--json"))]
    assert costs == ["0.000000009", "0.000000007", "0.000000005"]
    assert len(json.loads(run("top_requests", "--json", "--limit", "2"))) == 2
    assert json.loads(run("top_requests", "--json", "--days", "9"))[0]["cost_usd"] == "0.0000001"
    assert "acme" in run("top_requests")
    with pytest.raises(CommandError):
        run("top_requests", "--limit", "0")
