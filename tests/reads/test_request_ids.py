"""The request id on everything Django answers, and what every /v1 answer carries."""

import re

from hypothesis import given
from hypothesis import strategies as st

from proxy.consumers import request_id_of

OURS = re.compile(r"req_[0-9a-f]{32}")


async def test_a_good_id_of_the_caller_is_kept(gateway, cast):
    for given_id in ("abc-DEF_123", "a" * 64):
        answer = await gateway.ask("/v1/models", cast.keys["app"], headers={"x-request-id": given_id})
        assert answer.headers["x-request-id"] == answer.headers["request-id"] == given_id


async def test_any_other_id_is_replaced(gateway, cast):
    for given_id in ("", "a" * 65, "10.0.0.1:80", "a b", "a,b", "é"):
        headers = [("x-request-id", given_id.encode()), ("authorization", f"Bearer {cast.keys['app']}")]
        answer = await gateway.request("GET", "/v1/models", headers=headers)
        assert answer.status_code == 200
        assert OURS.fullmatch(answer.headers["x-request-id"]), given_id
        assert answer.headers["request-id"] == answer.headers["x-request-id"]


async def test_no_answer_to_a_program_is_stored(gateway):
    for path in ("/v1/models", "/v1/no-such", "/v1/openapi.json", "/v1/docs", "/v1/audit?limit=0", "/api/no-such"):
        answer = await gateway.ask(path)
        assert answer.headers["cache-control"] == "no-store", path
        assert OURS.fullmatch(answer.headers["x-request-id"]), path


async def test_an_error_tells_the_id_of_its_headers(gateway):
    answer = await gateway.ask("/v1/models", headers={"x-request-id": "mine"})
    assert answer.status_code == 401
    assert answer.json()["request_id"] == answer.headers["x-request-id"] == "mine"


@given(st.binary(max_size=80))
def test_an_id_is_kept_exactly_when_it_has_the_allowed_form(value):
    kept = request_id_of({b"x-request-id": value}) == value.decode("latin-1")
    allowed = re.fullmatch(rb"[A-Za-z0-9_-]{1,64}", value) is not None
    assert kept == allowed
