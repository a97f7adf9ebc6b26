"""The triggers that make a table append-only, for PostgreSQL and SQLite.

PostgreSQL: row triggers do not see TRUNCATE, so that has a statement trigger of its own; ENABLE ALWAYS keeps them on
under `session_replication_role = replica`. SQLite: `INSERT OR REPLACE` removes the old row without firing a DELETE
trigger (unless recursive_triggers is on), so an INSERT guard refuses ids that exist.
"""

from __future__ import annotations

from typing import Any

MESSAGE = "append-only: rows are never changed or removed"


def create_statements(vendor: str, table: str, keys: tuple[str, ...]) -> list[str]:
    """SQL that protects `table`; `keys` are its unique columns (or comma-separated groups of them)."""
    if vendor == "postgresql":
        return [
            f"CREATE OR REPLACE FUNCTION {table}_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{MESSAGE}' USING ERRCODE = 'integrity_constraint_violation'; END $$",
            f"CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE ON {table} "
            f"FOR EACH ROW EXECUTE FUNCTION {table}_append_only()",
            f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {table}_append_only()",
            f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_no_change",
            f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_no_truncate",
        ]
    exists = " OR ".join(
        f"EXISTS (SELECT 1 FROM {table} WHERE {' AND '.join(f'{name.strip()} = NEW.{name.strip()}' for name in key.split(','))})"
        for key in keys
    )
    refuse = f"BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END"
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


def protect(schema_editor: Any, table: str, keys: tuple[str, ...]) -> None:
    """For RunPython. PostgreSQL takes percent signs literally here: the statements have no parameters."""
    for statement in create_statements(schema_editor.connection.vendor, table, keys):
        schema_editor.execute(statement, params=None)


def unprotect(schema_editor: Any, table: str) -> None:
    for statement in drop_statements(schema_editor.connection.vendor, table):
        schema_editor.execute(statement, params=None)


#: Every protected table with its unique columns.
PROTECTED: dict[str, tuple[str, ...]] = {
    "audit_auditevent": ("id", "chain, seq"),
    "billing_ledgerentry": ("id", "event_id"),
}
