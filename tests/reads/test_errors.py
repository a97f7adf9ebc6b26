"""Errors of everything Django answers for programs."""

import logging

import pytest
from django.db import connection

from proxy import runtime, v1_database

SHAPE = {"message", "type", "param", "code", "details"}


def error_of(answer, status, code):
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert set(body) == {"error", "request_id"}
    assert set(body["error"]) == SHAPE
    assert body["request_id"] == answer.headers["x-request-id"]
    assert body["error"]["code"] == code
    return body["error"]


@pytest.mark.parametrize("debug", [False, True])
async def test_an_unknown_path_is_404_in_the_error_shape(gateway, settings, debug):
    settings.DEBUG = debug
    for path in (
        "/v1/no-such",
        "/v1/",
        "/v1//models",
        "/v1/models/",
        "/v1/models%00",
        "/api/no-such/",
        "http://127.0.0.1//v1/chat",
    ):
        answer = await gateway.ask(path)
        error_of(answer, 404, "not_found")
        assert "urlconf" not in answer.text.lower()
    assert (await gateway.ask("/V1/models")).status_code == 404


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/v1/models", "GET"), ("/v1/usage", "GET"), ("/healthz", "GET, HEAD"), ("/metrics", "GET, HEAD")],
)
async def test_a_wrong_verb_is_405_and_tells_the_right_one(gateway, cast, path, allowed):
    answer = await gateway.ask(path, cast.keys["app"], method="DELETE")
    error_of(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == allowed


@pytest.mark.parametrize("method", ["GET", "OPTIONS", "DELETE"])
async def test_a_data_plane_path_answers_post_only(gateway, method):
    for path in ("/v1/chat", "/v1/generate", "/v1/chat/completions"):
        answer = await gateway.ask(path, method=method)
        error_of(answer, 405, "method_not_allowed")
        assert answer.headers["allow"] == "POST"
    answer = await gateway.ask("/v1/messages", method=method)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json()["type"] == "error"
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert answer.json()["request_id"] == answer.headers["request-id"]


@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/json; charset=utf-16", "application/json;charset=latin-1"]
)
async def test_a_body_that_is_no_json_in_utf_8_is_415(gateway, cast, media_type):
    options = {"method": "POST", "content": b"{}", "headers": {"content-type": media_type}}
    error_of(await gateway.ask("/v1/chat", cast.keys["app"], **options), 415, "unsupported_media_type")


@pytest.mark.parametrize("media_type", ["application/json; charset=UTF-8", 'Application/JSON; charset="utf-8"'])
async def test_utf_8_may_be_said(gateway, cast, media_type):
    options = {"method": "POST", "content": b"{}", "headers": {"content-type": media_type}}
    error_of(await gateway.ask("/v1/chat", cast.keys["app"], **options), 400, "invalid_request")


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("path", ["/v1/models", "/admin/", "/healthz", "/no-such-page"])
async def test_a_host_that_is_not_ours_is_400_without_djangos_words(gateway, settings, path, debug):
    settings.DEBUG = debug
    for host in ("evil.example", "127.0.0.1@evil.example", "x/health?", "a#"):
        answer = await gateway.ask(path, headers={"host": host})
        error_of(answer, 400, "invalid_request")
        assert "ALLOWED_HOSTS" not in answer.text


async def test_two_host_headers_are_400(gateway):
    answer = await gateway.request("GET", "/v1/models", headers=[("host", "127.0.0.1"), ("host", "127.0.0.1")])
    error_of(answer, 400, "invalid_request")


# ------------------------------------------------------------------------------------------------------- credentials

READS = ["/v1/models", "/v1/models/fast", "/v1/usage", "/v1/audit", "/v1/limits", "/v1/health"]


async def test_without_a_key_every_read_is_401(gateway):
    for path in READS:
        error = error_of(await gateway.ask(path), 401, "invalid_api_key")
        assert error["type"] == "authentication_error"


async def test_a_key_may_come_in_each_of_the_four_headers(gateway, cast):
    value = cast.keys["app"]
    for header in ("authorization", "x-api-key", "X-API-Key", "api-key"):
        sent = f"Bearer {value}" if header == "authorization" else value
        assert (await gateway.ask("/v1/usage", headers={header: sent})).status_code == 200, header


async def test_every_bad_key_gets_the_same_body(gateway, cast):
    app = cast.keys["app"]
    bad = [
        {},
        {"authorization": "Bearer"},
        {"authorization": f"Basic {app}"},
        {"authorization": f"Bearer {app} extra"},
        {"authorization": f"Bearer {app[:-1]}"},
        {"authorization": f"Bearer {app.upper()}"},
        {"authorization": "Bearer ' OR 1=1--"},
        {"x-api-key": "%"},
        {"x_api_key": app},
        {"authorization": f"Bearer {app}", "x-api-key": cast.keys["plain"]},
    ]
    bodies = {(await gateway.ask("/v1/models", headers={"x-request-id": "same", **headers})).content for headers in bad}
    twice = [("x-request-id", "same"), ("x-api-key", app), ("x-api-key", app)]
    bodies.add((await gateway.request("GET", "/v1/models", headers=twice)).content)
    assert len(bodies) == 1
    assert b"invalid_api_key" in bodies.pop()


async def test_a_key_in_the_address_is_no_key(gateway, cast):
    for name in ("api_key", "key", "access_token", "x-api-key"):
        answer = await gateway.ask(f"/v1/models?{name}={cast.keys['app']}")
        error_of(answer, 401, "invalid_api_key")


@pytest.fixture
def far_away(cast):
    cast.add_key(cast.acme, "far-away", cidrs=["203.0.113.0/24"])
    cast.add_key(cast.acme, "at-home", cidrs=["127.0.0.0/8"])
    return cast


async def test_a_key_bound_to_a_network_reads_from_there_only(far_away, gateway):
    headers = {"x-forwarded-for": "203.0.113.7"}
    answer = await gateway.ask("/v1/usage", far_away.keys["far-away"], headers=headers)
    error_of(answer, 403, "ip_not_allowed")
    assert (await gateway.ask("/v1/usage", far_away.keys["at-home"])).status_code == 200


@pytest.fixture
def suspended(cast):
    cast.acme.state = "suspended"
    cast.acme.save()
    return cast


async def test_a_suspended_tenant_reads_nothing(suspended, gateway):
    error_of(await gateway.ask("/v1/usage", suspended.keys["app"]), 403, "tenant_suspended")


# ----------------------------------------------------------------------------------------------------------- faults


@pytest.fixture
def no_rollups(cast):
    """The table of the rollups is away."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE billing_usagerollup RENAME TO away")
    yield cast
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE away RENAME TO billing_usagerollup")


async def test_a_database_that_cannot_answer_is_an_error_without_sql(no_rollups, gateway):
    answer = await gateway.ask("/v1/usage", no_rollups.keys["app"])
    assert answer.status_code in (500, 503)  # PostgreSQL calls a missing table a defect, SQLite a failure
    assert set(answer.json()["error"]) == SHAPE
    assert "usagerollup" not in answer.text
    assert "SELECT" not in answer.text


async def test_a_slow_database_is_503_and_not_a_hanging_request(gateway, cast, monkeypatch):
    monkeypatch.setattr(v1_database, "READ_SECONDS", 0.0)
    answer = await gateway.ask("/v1/usage", cast.keys["app"])
    error_of(answer, 503, "rate_limit_unavailable")
    assert answer.headers["retry-after"] == "1"


async def test_a_defect_is_500_with_a_line_in_the_log_and_nothing_in_the_answer(gateway, cast, caplog, monkeypatch):
    await gateway.ask("/v1/models", cast.keys["app"])
    monkeypatch.setattr(runtime.current().plane, "snapshot", None)
    with caplog.at_level(logging.ERROR):
        answer = await gateway.ask("/v1/models", headers={"authorization": f"Bearer {cast.keys['app']}"})
    error = error_of(answer, 500, "upstream_error")
    assert "NoneType" not in answer.text
    assert error["type"] == "api_error"
    assert "request failed unexpectedly" in caplog.text
