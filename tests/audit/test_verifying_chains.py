"""verify_audit: whatever somebody with all rights on the database does to the record, it is found and named."""

# ruff: noqa: S608  (no statement in this file holds any input)

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from audit.canonical import canonical, link_hash
from audit.chain import verify_chains
from audit.models import AuditEvent, ChainHead
from audit.recorder import record, record_change
from tests.recording import request_event, tamper

pytestmark = pytest.mark.django_db

TABLE = "audit_auditevent"


@pytest.fixture
def recorded() -> list[AuditEvent]:
    """Ten events in chain 3 and four in chain 5; gives those of chain 3."""
    record([request_event(3, number=number) for number in range(10)])
    record([request_event(5) for _ in range(4)])
    return list(AuditEvent.objects.filter(chain=3).order_by("seq"))


def only_fault() -> tuple[int, int, str, str]:
    report = verify_chains()
    assert len(report.broken) == 1
    broken = report.broken[0]
    return broken.chain, broken.seq, broken.id, broken.why


def test_an_untouched_record_holds(recorded):
    report = verify_chains()
    assert report.ok
    assert report.events == 14
    assert [(head.chain, head.seq) for head in report.heads] == [(3, 10), (5, 4)]
    assert report.heads[0].hash == recorded[-1].hash


def test_an_empty_record_holds():
    assert verify_chains().ok


def test_changes_of_the_control_plane_hold_too(recorded):
    record_change("key.created", actor="a", subject="key:k", before=None, after={"n": 1}, tenant="acme", key_id="k")
    assert verify_chains().ok


def test_a_changed_text_is_found(recorded):
    tamper(TABLE, f"UPDATE {TABLE} SET body = replace(body, '0.000250', '0.000001') WHERE chain = 3 AND seq = 4")
    chain, seq, event, why = only_fault()
    assert (chain, seq, event) == (3, 4, recorded[3].id)
    assert "does not match its hash" in why


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("tenant", "'globex'"),
        ("status", "'failed'"),
        ("request_id", "'another'"),
        ("kind", "'key.created'"),
        ("key_id", "'k2'"),
        ("http_status", "500"),
        ("error_code", "'x'"),
        ("time", "'2020-01-01 00:00:00'"),
        ("id", "'01900000-0000-7000-8000-000000000000'"),
    ],
)
def test_a_changed_column_is_found(recorded, column, value):
    tamper(TABLE, f"UPDATE {TABLE} SET {column} = {value} WHERE chain = 3 AND seq = 6")
    chain, seq, event, why = only_fault()
    assert (chain, seq, event) == (3, 6, recorded[5].id)
    assert column in why


def test_a_changed_text_with_a_new_hash_is_found_at_the_next_event(recorded):
    event = recorded[3]
    forged = canonical(json.loads(event.body) | {"cost_usd": "0.000001"})
    new_hash = link_hash(3, 4, event.prev_hash, forged)
    tamper(TABLE, f"UPDATE {TABLE} SET body = '{forged}', hash = '{new_hash}' WHERE chain = 3 AND seq = 4")
    chain, seq, event_id, why = only_fault()
    assert (chain, seq, event_id) == (3, 5, recorded[4].id)
    assert "hash of the event before it" in why


def test_a_deleted_event_is_found(recorded):
    tamper(TABLE, f"DELETE FROM {TABLE} WHERE chain = 3 AND seq = 4")
    chain, seq, event, why = only_fault()
    assert (chain, seq, event) == (3, 5, recorded[4].id)
    assert "seq 4 is missing" in why


def test_a_deleted_first_event_is_found(recorded):
    tamper(TABLE, f"DELETE FROM {TABLE} WHERE chain = 3 AND seq = 1")
    assert only_fault()[:2] == (3, 2)


def test_deleted_last_events_are_found(recorded):
    tamper(TABLE, f"DELETE FROM {TABLE} WHERE chain = 3 AND seq > 7")
    chain, seq, event, why = only_fault()
    assert (chain, seq, event) == (3, 7, "")
    assert "events at the end are missing" in why


def test_a_deleted_chain_is_found(recorded):
    tamper(TABLE, f"DELETE FROM {TABLE} WHERE chain = 3")
    assert only_fault()[:2] == (3, 0)


def test_two_events_that_changed_places_are_found(recorded):
    tamper(
        TABLE,
        f"UPDATE {TABLE} SET seq = 99 WHERE chain = 3 AND seq = 4",
        f"UPDATE {TABLE} SET seq = 4 WHERE chain = 3 AND seq = 5",
        f"UPDATE {TABLE} SET seq = 5 WHERE chain = 3 AND seq = 99",
    )
    assert only_fault()[:3] == (3, 4, recorded[4].id)


def test_an_event_moved_to_another_chain_is_found_in_both(recorded):
    tamper(TABLE, f"UPDATE {TABLE} SET chain = 5, seq = 5 WHERE chain = 3 AND seq = 10")
    report = verify_chains()
    assert [(broken.chain, broken.seq) for broken in report.broken] == [(3, 9), (5, 5)]


def test_an_inserted_event_is_found(recorded):
    columns = [str(field.column) for field in AuditEvent._meta.concrete_fields]
    changes = {"id": "'01900000-0000-7000-8000-00000000abcd'", "seq": "11"}
    select = ", ".join(changes.get(column, f'"{column}"') for column in columns)
    names = ", ".join(f'"{column}"' for column in columns)
    tamper(TABLE, f"INSERT INTO {TABLE} ({names}) SELECT {select} FROM {TABLE} WHERE chain = 3 AND seq = 10")
    assert only_fault()[:2] == (3, 11)


def test_a_head_that_was_set_back_is_found(recorded):
    ChainHead.objects.filter(chain=3).update(seq=7, hash=recorded[6].hash)
    assert only_fault()[:2] == (3, 10)


def test_a_head_that_was_removed_is_found(recorded):
    ChainHead.objects.filter(chain=3).delete()
    chain, _seq, _event, why = only_fault()
    assert chain == 3
    assert "no head" in why


# ---------------------------------------------------------------- against what was seen earlier


@pytest.fixture
def checkpoint(recorded, tmp_path):
    path = tmp_path / "heads.json"
    path.write_text(told("--json"))
    return path


def told(*arguments: str) -> str:
    out = StringIO()
    call_command("verify_audit", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def failing(*arguments: str) -> str:
    """The output of a check that must end with exit status 2."""
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("verify_audit", *arguments, stdout=out, stderr=StringIO())
    assert ended.value.code == 2
    return out.getvalue()


def rewritten(upto: int) -> None:
    """Chain 3 written anew up to `upto`, with another first event, every hash right and the head as it should be."""
    rows = list(AuditEvent.objects.filter(chain=3, seq__lte=upto).order_by("seq"))
    statements = [f"DELETE FROM {TABLE} WHERE chain = 3 AND seq > {upto}"]
    previous = "0" * 64
    for row in rows:
        body = row.body.replace("0.000250", "0.000001") if row.seq == 1 else row.body
        own = link_hash(3, row.seq, previous, body)
        values = f"body = '{body}', prev_hash = '{previous}', hash = '{own}'"
        statements.append(f"UPDATE {TABLE} SET {values} WHERE chain = 3 AND seq = {row.seq}")
        previous = own
    tamper(TABLE, *statements)
    ChainHead.objects.filter(chain=3).update(seq=upto, hash=previous)


def test_a_record_that_grew_since_the_checkpoint_holds(checkpoint):
    record([request_event(3), request_event(9)])
    assert "every chain holds" in told("--checkpoint", str(checkpoint))


def test_a_record_written_anew_with_right_hashes_is_found_by_the_checkpoint_only(checkpoint):
    rewritten(upto=10)
    assert "every chain holds" in told()
    assert "Chain 3 is broken at seq 10" in failing("--checkpoint", str(checkpoint))


def test_a_record_cut_off_with_its_head_is_found_by_the_checkpoint_only(checkpoint):
    rewritten(upto=6)
    assert "every chain holds" in told()
    assert "reached seq 10" in failing("--checkpoint", str(checkpoint))


# ---------------------------------------------------------------- the command


def test_the_command_says_how_much_holds(recorded):
    assert told() == "14 events in 2 chains: every chain holds.\n"


def test_the_command_names_the_first_bad_event_and_ends_with_status_2(recorded):
    tamper(TABLE, f"DELETE FROM {TABLE} WHERE chain = 3 AND seq IN (4, 6)")
    assert failing() == f"Chain 3 is broken at seq 5 (event {recorded[4].id}): seq 4 is missing.\n"
    document = json.loads(failing("--json"))
    assert document["ok"] is False
    assert document["broken"] == [{"chain": 3, "seq": 5, "id": recorded[4].id, "why": "seq 4 is missing"}]


def test_the_chain_of_one_tenant_can_be_checked_alone(recorded):
    record_change("tenant.updated", actor="a", subject="s", before=None, after=None, tenant="acme")
    chain = AuditEvent.objects.get(kind="tenant.updated").chain
    tamper(TABLE, f"DELETE FROM {TABLE} WHERE chain = 3 AND seq = 4")
    assert chain != 3
    assert json.loads(told("--tenant", "acme", "--json"))["heads"][0]["chain"] == chain


def test_a_tenant_without_events_is_a_usage_error_and_not_a_chain_that_holds(recorded):
    with pytest.raises(CommandError, match="nobody: the log holds no event") as error:
        call_command("verify_audit", "--tenant", "nobody")
    assert error.value.returncode == 2


@pytest.mark.parametrize("content", ["{}", "no json", '{"heads": [{"chain": 1}]}', None])
def test_a_checkpoint_that_is_none_is_a_usage_error(tmp_path, content):
    path = tmp_path / "heads.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(CommandError) as error:
        call_command("verify_audit", "--checkpoint", str(path))
    assert error.value.returncode == 2
