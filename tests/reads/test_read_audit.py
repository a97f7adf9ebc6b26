"""GET /v1/audit."""

import json

import pytest
from asgiref.sync import sync_to_async

from audit.models import AuditEvent
from tests.reads.conftest import add_event, event_id


@pytest.fixture
def recorded(cast):
    """Five events of acme (one refused), one of globex."""
    for number in range(1, 6):
        status = "refused" if number == 4 else "success"
        body = {"id": event_id(number), "tenant": "acme", "request_id": f"req-{number}", "status": status, "ms": 1.25}
        add_event("acme", number, json.dumps(body), request_id=f"req-{number}", status=status)
    add_event("globex", 6, json.dumps({"id": event_id(6), "tenant": "globex"}), request_id="req-1", status="success")
    return cast


def ids(page):
    return [event["id"] for event in page["data"]]


async def test_events_come_newest_first_with_their_place_in_the_chain(gateway, recorded):
    answer = await gateway.ask("/v1/audit", recorded.keys["app"])
    assert answer.status_code == 200
    page = answer.json()
    assert page["next_cursor"] is None
    assert page["data"][0] == {
        "id": event_id(5),
        "tenant": "acme",
        "request_id": "req-5",
        "status": "success",
        "ms": 1.25,
        "chain": 3,
        "seq": 5,
        "prev_hash": "0" * 64,
        "hash": f"{5:064x}",
    }
    assert ids(page) == [event_id(number) for number in (5, 4, 3, 2, 1)]


async def test_what_operators_changed_is_not_among_them(recorded, gateway):
    events = (await gateway.ask("/v1/audit?limit=100", recorded.keys["app"])).json()["data"]
    assert len(events) == 5
    assert await sync_to_async(AuditEvent.objects.filter(tenant="acme", kind="key.created").exists)()


async def test_a_tenant_never_sees_another_tenants_events(gateway, recorded):
    page = (await gateway.ask("/v1/audit?request_id=req-1", recorded.keys["other"])).json()
    assert ids(page) == [event_id(6)]
    page = (await gateway.ask("/v1/audit?request_id=req-2", recorded.keys["other"])).json()
    assert ids(page) == []


async def test_pages_follow_each_other_without_gap_or_repeat(gateway, recorded):
    seen, cursor = [], ""
    while True:
        page = (await gateway.ask(f"/v1/audit?limit=2{cursor}", recorded.keys["app"])).json()
        seen += ids(page)
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert seen == [event_id(number) for number in (5, 4, 3, 2, 1)]


async def test_filters_narrow_the_list(gateway, recorded):
    by_id = (await gateway.ask("/v1/audit?request_id=req-2", recorded.keys["app"])).json()
    assert ids(by_id) == [event_id(2)]
    by_status = (await gateway.ask("/v1/audit?status=refused", recorded.keys["app"])).json()
    assert ids(by_status) == [event_id(4)]
    both = (await gateway.ask("/v1/audit?status=refused&request_id=req-2", recorded.keys["app"])).json()
    assert ids(both) == []


async def test_the_scope_is_needed(gateway, recorded):
    answer = await gateway.ask("/v1/audit", recorded.keys["plain"])
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "insufficient_scope"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"])
async def test_no_other_verb_is_answered(gateway, recorded, method):
    answer = await gateway.ask("/v1/audit", recorded.keys["app"], method=method)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET"
    assert method == "HEAD" or answer.json()["error"]["code"] == "method_not_allowed"


BAD_PARAMETERS = [
    ("limit=0", "limit"),
    ("limit=101", "limit"),
    ("limit=-1", "limit"),
    ("limit=1e9", "limit"),
    ("limit=abc", "limit"),
    ("limit=%00", "limit"),
    ("cursor=%27%20OR%201%3D1--", "cursor"),
    ("cursor=%00", "cursor"),
    ("cursor=01900000", "cursor"),
    ("status=%00", "status"),
    ("status=SUCCESS", "status"),
    ("request_id=%25%25%25", "request_id"),
    ("request_id=a%00", "request_id"),
    ("request_id=%F0%9F%92%A9", "request_id"),
    ("order_by=password", "order_by"),
    ("user__password__startswith=a", "user__password__startswith"),
    ("a%00b=1", "a\x00b"),
]


async def test_a_bad_parameter_is_named(gateway, cast):
    for query, parameter in BAD_PARAMETERS:
        answer = await gateway.ask(f"/v1/audit?{query}", cast.keys["app"])
        assert answer.status_code == 400, query
        assert answer.json()["error"]["param"] == parameter, query
