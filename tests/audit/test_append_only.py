"""The database itself refuses to change or remove what was recorded, whoever asks and however."""

# ruff: noqa: S608  (no statement in this file holds any input)

import pytest
from django.db import DatabaseError, connection, transaction

from audit.append_only import PROTECTED
from audit.models import AuditEvent
from audit.recorder import record
from billing.ledger import post
from billing.models import LedgerEntry
from tenants.models import Tenant
from tests.recording import posting, request_event

pytestmark = pytest.mark.django_db

EVENT, LEDGER = "audit_auditevent", "billing_ledgerentry"
SQLITE = connection.vendor == "sqlite"


@pytest.fixture
def rows():
    """One row in each protected table."""
    tenant = Tenant.objects.create(slug="acme", name="Acme")
    record([request_event(3)])
    post([posting(tenant.pk)])
    connection.check_constraints()  # foreign keys are checked now, not at the end: TRUNCATE does not wait for that
    assert AuditEvent.objects.count() == LedgerEntry.objects.count() == 1


def refused(statement: str) -> bool:
    """Whether everything is as it was after the database said no, in our words."""
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
    forged = any(model.objects.filter(status="forged").exists() for model in (AuditEvent, LedgerEntry))
    return AuditEvent.objects.count() == LedgerEntry.objects.count() == 1 and not forged


def again(verb: str, table: str, **changes: str) -> str:
    """SQL that inserts the one row of `table` a second time, some columns replaced."""
    model = AuditEvent if table == EVENT else LedgerEntry
    columns = [
        *(str(field.column) for field in model._meta.concrete_fields),
        *(["rowid"] if "rowid" in changes else []),
    ]
    names = ", ".join(f'"{column}"' for column in columns)
    values = ", ".join(changes.get(column, f'"{column}"') for column in columns)
    return f"{verb} {table} ({names}) SELECT {values} FROM {table} WHERE true"


@pytest.mark.parametrize("table", PROTECTED)
def test_update_is_refused(rows, table):
    assert refused(f"UPDATE {table} SET status = 'forged'")


@pytest.mark.parametrize("table", PROTECTED)
def test_an_update_that_changes_nothing_is_refused(rows, table):
    assert refused(f"UPDATE {table} SET status = status")


@pytest.mark.parametrize("table", PROTECTED)
def test_delete_is_refused(rows, table):
    assert refused(f"DELETE FROM {table}")


@pytest.mark.parametrize("table", PROTECTED)
def test_an_insert_that_turns_into_an_update_is_refused(rows, table):
    assert refused(again("INSERT INTO", table) + " ON CONFLICT (id) DO UPDATE SET status = 'forged'")


@pytest.mark.parametrize("table", PROTECTED)
@pytest.mark.parametrize("way", ["REPLACE INTO", "INSERT OR REPLACE INTO"])
@pytest.mark.skipif(not SQLITE, reason="SQLite's statement")
def test_replacing_a_row_is_refused(rows, table, way):
    assert refused(again(way, table, status="'forged'"))


@pytest.mark.parametrize(
    ("table", "changes"),
    [
        (EVENT, {"id": "'another'"}),  # the same chain and seq
        (EVENT, {"seq": "seq + 1"}),  # the same id
        (LEDGER, {"id": "id + 1"}),  # the same event
        (LEDGER, {"event_id": "'another'"}),  # the same id
    ],
)
@pytest.mark.skipif(not SQLITE, reason="SQLite's statement")
def test_replacing_by_any_one_unique_key_is_refused(rows, table, changes):
    assert refused(again("INSERT OR REPLACE INTO", table, status="'forged'", **changes))


@pytest.mark.skipif(not SQLITE, reason="SQLite's hidden row number")
def test_replacing_by_the_hidden_row_number_is_refused(rows):
    changes = {"id": "'another'", "seq": "seq + 1", "status": "'forged'", "rowid": "rowid"}
    assert refused(again("INSERT OR REPLACE INTO", EVENT, **changes))


@pytest.mark.parametrize("table", PROTECTED)
@pytest.mark.parametrize("suffix", ["", " CASCADE", " RESTART IDENTITY"])
@pytest.mark.skipif(SQLITE, reason="PostgreSQL's statement")
def test_truncate_is_refused(rows, table, suffix):
    assert refused(f"TRUNCATE {table}{suffix}")


@pytest.mark.skipif(SQLITE, reason="PostgreSQL's statement")
def test_truncating_what_the_ledger_refers_to_is_refused(rows):
    assert refused("TRUNCATE tenants_tenant CASCADE")


@pytest.mark.parametrize("table", PROTECTED)
@pytest.mark.skipif(SQLITE, reason="PostgreSQL's statement")
def test_merge_is_refused(rows, table):
    assert refused(
        f"MERGE INTO {table} t USING {table} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET status = 'forged'"
    )


@pytest.mark.parametrize("table", PROTECTED)
@pytest.mark.parametrize("change", ["UPDATE {} SET status = 'forged'", "DELETE FROM {}", "TRUNCATE {}"])
@pytest.mark.skipif(SQLITE, reason="PostgreSQL's setting")
def test_switching_ordinary_triggers_off_does_not_help(rows, table, change):
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
    try:
        assert refused(change.format(table))
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = origin")


@pytest.mark.parametrize("model", [AuditEvent, LedgerEntry])
def test_the_orm_cannot_either(rows, model):
    row = model.objects.get()
    for change in (row.delete, row.save, lambda: model.objects.all().update(status="forged")):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            change()


def test_new_rows_are_taken_as_ever(rows):
    record([request_event(3)])
    assert AuditEvent.objects.count() == 2
