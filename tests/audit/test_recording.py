"""Writing the record: gap-free chains, once each, in the transaction of their cause."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from audit import events, recorder
from audit.canonical import GENESIS, link_hash
from audit.models import AuditEvent, ChainHead
from audit.recorder import NewEvent, record, record_change
from tests.recording import request_event

pytestmark = pytest.mark.django_db


def chain_of_events(chain: int) -> list[AuditEvent]:
    return list(AuditEvent.objects.filter(chain=chain).order_by("seq"))


def test_each_event_follows_the_one_before_it_in_its_chain():
    record([request_event(3), request_event(7), request_event(3)])
    record([request_event(3)])
    first, second, third = chain_of_events(3)
    assert [event.seq for event in (first, second, third)] == [1, 2, 3]
    assert first.prev_hash == GENESIS
    assert second.prev_hash == first.hash
    assert third.prev_hash == second.hash
    assert third.hash == link_hash(3, 3, second.hash, third.body)
    assert [event.seq for event in chain_of_events(7)] == [1]


def test_the_head_says_where_the_chain_ends():
    record([request_event(3), request_event(3)])
    head = ChainHead.objects.get(chain=3)
    last = chain_of_events(3)[-1]
    assert (head.seq, head.hash) == (2, last.hash)


def test_an_event_that_is_there_already_changes_nothing():
    event = request_event(3)
    assert record([event]) == [event]
    assert record([event, event]) == []
    assert len(chain_of_events(3)) == 1
    assert ChainHead.objects.get(chain=3).seq == 1


def test_an_event_given_twice_at_once_is_recorded_once():
    event = request_event(3)
    assert record([event, event]) == [event]


def test_nothing_to_record_is_no_error():
    assert record([]) == []


def test_what_is_recorded_is_the_event_as_it_is_with_columns_to_search_by():
    event = request_event(3, "acme", key_id="k1", status="refused", http_status=429, error_code="rate_limit_exceeded")
    record([event])
    row = AuditEvent.objects.get(id=event.id)
    assert json.loads(row.body) == event.body
    assert (row.tenant, row.key_id, row.status) == ("acme", "k1", "refused")
    assert (row.http_status, row.error_code, row.kind) == (429, "rate_limit_exceeded", "request")
    assert row.time == event.time


def test_texts_that_a_column_cannot_hold_are_recorded_whole_in_the_event():
    event = request_event(3, request_id="a\0b" + "c" * 100, error_code="x" * 50)
    record([event])
    row = AuditEvent.objects.get(id=event.id)
    assert json.loads(row.body)["request_id"] == "a\0b" + "c" * 100
    assert row.request_id == "a\ufffdb" + "c" * 61
    assert row.error_code == "x" * 40


def test_listeners_hear_in_the_same_transaction_what_is_new(monkeypatch):
    heard: list[list[NewEvent]] = []
    monkeypatch.setattr(recorder, "listeners", [heard.append])
    old, new = request_event(3), request_event(4)
    record([old])
    record([old, new])
    record([new])
    assert heard == [[old], [new]]


def test_when_a_listener_fails_nothing_is_recorded(monkeypatch):
    def fails(_events):
        raise RuntimeError("no outbox")

    monkeypatch.setattr(recorder, "listeners", [fails])
    with pytest.raises(RuntimeError, match="no outbox"):
        record([request_event(3)])
    assert not AuditEvent.objects.exists()
    assert ChainHead.objects.filter(chain=3).values_list("seq", flat=True).first() in (None, 0)


def test_when_the_cause_is_rolled_back_so_is_its_event():
    with transaction.atomic():
        record([request_event(3)])
        transaction.set_rollback(True)
    assert not AuditEvent.objects.exists()
    record([request_event(3)])
    assert [event.seq for event in chain_of_events(3)] == [1]


def test_a_lost_head_is_worked_out_from_the_events():
    record([request_event(3), request_event(3)])
    ChainHead.objects.filter(chain=3).delete()
    record([request_event(3)])
    events_now = chain_of_events(3)
    assert [event.seq for event in events_now] == [1, 2, 3]
    assert events_now[2].prev_hash == events_now[1].hash


def test_a_change_is_recorded_in_its_tenants_chain_without_secrets():
    record_change(
        events.KEY_ROTATED,
        actor="admin:ada",
        subject="key:k1",
        before={"name": "app", "secret": "s3cret", "nested": [{"Api-Key": "abc"}], "limits": {"tokens": 5}},
        after={"name": "app", "webhook_secret": "", "digest": b"x"},
        tenant="acme",
        key_id="k1",
        reason="leaked",
        address="192.0.2.1",
    )
    row = AuditEvent.objects.get()
    assert row.kind == "key.rotated"
    body = json.loads(row.body)
    assert body["before"] == {
        "name": "app",
        "secret": "[secret]",
        "nested": [{"Api-Key": "[secret]"}],
        "limits": {"tokens": 5},
    }
    assert body["after"] == {"name": "app", "webhook_secret": "", "digest": "[secret]"}
    assert (body["actor"], body["reason"], body["address"]) == ("admin:ada", "leaked", "192.0.2.1")
    assert "s3cret" not in row.body


def test_what_is_not_in_the_catalogue_is_not_recorded():
    with pytest.raises(ValueError, match="catalogue"):
        record_change("key.borrowed", actor="a", subject="s", before=None, after=None)


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time: its own lock")
def test_writers_at_the_same_time_make_no_gap_and_no_fork():
    start = threading.Barrier(4)

    def write(number: int) -> None:
        start.wait()
        for _ in range(25):
            chains = (1, 2) if number % 2 else (2, 1)
            record([request_event(chain) for chain in chains])
        connection.close()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    for chain in (1, 2):
        rows = chain_of_events(chain)
        assert [row.seq for row in rows] == list(range(1, 101))
        assert [row.prev_hash for row in rows[1:]] == [row.hash for row in rows[:-1]]


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time: its own lock")
def test_two_who_record_the_same_event_at_the_same_time_record_it_once():
    shared = [request_event(5) for _ in range(40)]
    start = threading.Barrier(3)

    def write(_number: int) -> int:
        start.wait()
        new = sum(len(record([event])) for event in shared)
        connection.close()
        return new

    with ThreadPoolExecutor(3) as threads:
        assert sum(threads.map(write, range(3))) == 40
    assert len(chain_of_events(5)) == 40
