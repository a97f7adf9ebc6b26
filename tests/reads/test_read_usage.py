"""GET /v1/usage."""

import csv
import io

import pytest

from tests.reads.conftest import add_usage

JANUARY = "from=2025-01-01&to=2025-01-31"


@pytest.fixture
def used(cast):
    """Three days of acme, one of globex."""
    app, plain = cast.ids["app"], cast.ids["plain"]
    add_usage(cast.acme, "2025-01-01", key_ref=app, input_tokens=10, output_tokens=5, cost_nano=105_000)
    add_usage(cast.acme, "2025-01-01", key_ref=app, provider="alpha", requests=2, input_tokens=7, cost_nano=1)
    add_usage(cast.acme, "2025-01-02", key_ref=plain, model="smart-large", requests=4, cache_read_tokens=3)
    add_usage(cast.acme, "2025-01-03", model="smart-large", unpriced=1, reasoning_tokens=2, cache_write_tokens=9)
    add_usage(cast.globex, "2025-01-02", key_ref=cast.ids["other"], requests=1000, cost_nano=10**12)
    return cast


async def test_rows_are_grouped_by_day_model_and_key_with_a_total(gateway, used):
    answer = await gateway.ask(f"/v1/usage?{JANUARY}", used.keys["app"])
    assert answer.status_code == 200
    report = answer.json()
    assert report["data"][0] == {
        "day": "2025-01-01",
        "model": "fast",
        "key": "app",
        "key_id": used.ids["app"],
        "requests": 3,
        "input_tokens": 17,
        "output_tokens": 5,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "reasoning_tokens": 0,
        "unpriced_requests": 0,
        "cost_usd": "0.000105001",
    }
    assert [(row["day"], row["key"]) for row in report["data"]] == [
        ("2025-01-01", "app"),
        ("2025-01-02", "plain"),
        ("2025-01-03", None),
    ]
    assert report["total"] == {
        "requests": 8,
        "input_tokens": 17,
        "output_tokens": 5,
        "cache_read_tokens": 3,
        "cache_write_tokens": 9,
        "reasoning_tokens": 2,
        "unpriced_requests": 1,
        "cost_usd": "0.000105001",
    }
    assert (report["from"], report["to"], report["next_cursor"]) == ("2025-01-01", "2025-01-31", None)


async def test_another_tenant_sees_only_its_own(gateway, used):
    report = (await gateway.ask(f"/v1/usage?{JANUARY}", used.keys["other"])).json()
    assert [row["requests"] for row in report["data"]] == [1000]
    assert report["total"]["cost_usd"] == "1000.000000"


@pytest.mark.parametrize(
    ("group_by", "fields"),
    [
        ("model", ["model"]),
        ("key,day", ["key", "key_id", "day"]),
        ("model,key,day", ["model", "key", "key_id", "day"]),
    ],
)
async def test_grouping_takes_any_subset_in_any_order(gateway, used, group_by, fields):
    report = (await gateway.ask(f"/v1/usage?{JANUARY}&group_by={group_by}", used.keys["app"])).json()
    for row in report["data"]:
        assert {"day", "model", "key", "key_id"} & set(row) == set(fields)
    assert sum(row["requests"] for row in report["data"]) == report["total"]["requests"] == 8
    order = [[row[name] or "" for name in fields if name != "key"] for row in report["data"]]
    assert order == sorted(order)


async def test_both_days_named_are_included(gateway, used):
    report = (await gateway.ask("/v1/usage?from=2025-01-02&to=2025-01-03&group_by=day", used.keys["app"])).json()
    assert [row["day"] for row in report["data"]] == ["2025-01-02", "2025-01-03"]


async def test_without_days_it_is_the_last_thirty(gateway, used):
    report = (await gateway.ask("/v1/usage", used.keys["app"])).json()
    assert report["data"] == []
    assert report["total"]["cost_usd"] == "0.000000"


async def test_pages_follow_each_other_and_every_page_has_the_whole_total(gateway, used):
    seen, cursor = [], ""
    for _ in range(3):
        page = (await gateway.ask(f"/v1/usage?{JANUARY}&limit=1{cursor}", used.keys["app"])).json()
        seen += [row["day"] for row in page["data"]]
        assert page["total"]["requests"] == 8
        cursor = f"&cursor={page['next_cursor']}"
    assert seen == ["2025-01-01", "2025-01-02", "2025-01-03"]
    assert page["next_cursor"] is None


@pytest.mark.parametrize(
    ("query", "headers"),
    [(f"{JANUARY}&format=csv", {}), (JANUARY, {"accept": "text/csv"}), (JANUARY, {"accept": "text/csv, */*;q=0.1"})],
)
async def test_csv_has_the_same_rows_as_json(gateway, used, query, headers):
    answer = await gateway.ask(f"/v1/usage?{query}", used.keys["app"], headers=headers)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-disposition"] == 'attachment; filename="usage-2025-01-01-2025-01-31.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    expected = (await gateway.ask(f"/v1/usage?{JANUARY}", used.keys["app"])).json()["data"]
    assert rows == [{name: "" if value is None else str(value) for name, value in row.items()} for row in expected]


async def test_csv_of_nothing_still_names_its_columns(gateway, used):
    answer = await gateway.ask("/v1/usage?from=2024-01-01&to=2024-01-02&format=csv&group_by=model", used.keys["app"])
    tokens = "input_tokens,output_tokens,cache_read_tokens,cache_write_tokens,reasoning_tokens"
    assert answer.text == f"model,requests,{tokens},unpriced_requests,cost_usd\r\n"


@pytest.fixture
def formula(cast):
    key = cast.add_key(cast.acme, '=HYPERLINK("http://evil.example","x")')
    add_usage(cast.acme, "2025-01-09", key_ref=key.id, cost_nano=105_000)
    return cast


async def test_a_key_named_like_a_formula_is_text_in_csv(formula, gateway):
    answer = await gateway.ask("/v1/usage?from=2025-01-09&to=2025-01-09&format=csv&group_by=key", formula.keys["app"])
    _, line = answer.text.splitlines()
    assert line.startswith('"\'=HYPERLINK(""http://evil.example"",""x"")",')
    assert line.endswith(",1,0,0,0,0,0,0,0.000105")


BAD_PARAMETERS = [
    ("from=yesterday", "from", "invalid_request"),
    ("from=1735689600", "from", "invalid_request"),
    ("to=2025-02-30", "to", "invalid_request"),
    ("to=2025-1-1", "to", "invalid_request"),
    ("from=%00", "from", "invalid_request"),
    ("group_by=tenant", "group_by", "invalid_request"),
    ("group_by=", "group_by", "invalid_request"),
    ("group_by=day%2C", "group_by", "invalid_request"),
    ("format=xml", "format", "invalid_request"),
    ("limit=0", "limit", "invalid_request"),
    ("cursor=-1", "cursor", "invalid_request"),
    ("form=2025-01-01", "form", "unknown_parameter"),
]


async def test_a_bad_parameter_is_named(gateway, cast):
    for query, parameter, code in BAD_PARAMETERS:
        answer = await gateway.ask(f"/v1/usage?{query}", cast.keys["app"])
        assert answer.status_code == 400, query
        error = answer.json()["error"]
        assert (error["param"], error["code"], error["type"]) == (parameter, code, "invalid_request_error"), query
        assert parameter in error["message"] or code == "unknown_parameter"


async def test_days_that_end_before_they_begin_hold_nothing(gateway, used):
    report = (await gateway.ask("/v1/usage?from=2025-01-31&to=2025-01-01", used.keys["app"])).json()
    assert report["data"] == []


async def test_the_first_day_there_is_can_be_asked_for(gateway, used):
    answer = await gateway.ask("/v1/usage?to=0001-01-01", used.keys["app"])
    assert answer.json()["from"] == "0001-01-01"
