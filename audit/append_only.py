"""The triggers that make a table append-only, for PostgreSQL and SQLite.

PostgreSQL: row triggers do not see TRUNCATE, so that has a statement trigger of its own; ENABLE ALWAYS keeps both on
under `session_replication_role = replica`. SQLite: `INSERT OR REPLACE` removes the old row without firing a DELETE
trigger (unless recursive_triggers is on), so an INSERT guard refuses values that exist, those of the hidden rowid too.

A later migration that makes SQLite build a protected table anew (AlterField, AddField...) drops its triggers with the
old table: end it with `protect`. tests/audit/test_append_only.py looks at the table after all migrations.
"""

from __future__ import annotations

from typing import Any

#: Every protected table with its unique keys, each one column or several with commas.
PROTECTED: dict[str, tuple[str, ...]] = {
    "audit_auditevent": ("id", "chain, seq"),
    "billing_ledgerentry": ("id", "event_id"),
}

MESSAGE = "append-only: rows are never changed or removed"


def protect(schema_editor: Any, table: str) -> None:
    """For RunPython, and again after a migration that built the table anew."""
    vendor = schema_editor.connection.vendor
    for statement in [*drop_statements(vendor, table), *create_statements(vendor, table)]:
        schema_editor.execute(statement, params=None)


def unprotect(schema_editor: Any, table: str) -> None:
    for statement in drop_statements(schema_editor.connection.vendor, table):
        schema_editor.execute(statement, params=None)


def create_statements(vendor: str, table: str) -> list[str]:
    """SQL that protects `table`."""
    if vendor == "postgresql":
        refuse = f"{table}_append_only()"
        body = f"BEGIN RAISE EXCEPTION '{MESSAGE}' USING ERRCODE = 'integrity_constraint_violation'; END"
        change, truncate = f"BEFORE UPDATE OR DELETE ON {table}", f"BEFORE TRUNCATE ON {table}"
        return [
            f"CREATE OR REPLACE FUNCTION {refuse} RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$",
            f"CREATE TRIGGER {table}_no_change {change} FOR EACH ROW EXECUTE FUNCTION {refuse}",
            f"CREATE TRIGGER {table}_no_truncate {truncate} FOR EACH STATEMENT EXECUTE FUNCTION {refuse}",
            f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_no_change",
            f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_no_truncate",
        ]
    refuse = f"BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END"
    exists = " OR ".join(_exists(table, key) for key in ("rowid", *PROTECTED[table]))
    return [
        f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} {refuse}",
        f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} {refuse}",
        f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN {exists} {refuse}",
    ]


def drop_statements(vendor: str, table: str) -> list[str]:
    """SQL that takes the protection away again: for migrations backwards, and for tests that empty their tables."""
    if vendor == "postgresql":
        return [
            f"DROP TRIGGER IF EXISTS {table}_no_change ON {table}",
            f"DROP TRIGGER IF EXISTS {table}_no_truncate ON {table}",
            f"DROP FUNCTION IF EXISTS {table}_append_only()",
        ]
    return [f"DROP TRIGGER IF EXISTS {table}_{name}" for name in ("no_update", "no_delete", "no_replace")]


def _exists(table: str, key: str) -> str:
    """SQLite: whether a row with the new row's `key` is there."""
    same = " AND ".join(f"{column} = NEW.{column}" for column in key.split(", "))
    return f"EXISTS (SELECT 1 FROM {table} WHERE {same})"  # noqa: S608  (names of our own tables)
