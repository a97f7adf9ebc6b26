"""Many new rows into one table, by the shortest way each database has. Called in the caller's transaction.

The ORM builds a statement with a parameter for every value, which costs several times what the database then does.
Values go in as they are: no defaults, no validation. Names of tables and columns come from models, never from input.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection


def insert_rows(table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Insert `rows`, each with a value for every one of `columns`. Datetimes are given through `moment`."""
    names = ", ".join(f'"{column}"' for column in columns)  # "user" is a word of SQL
    if connection.vendor == "postgresql":
        with (
            connection.cursor() as cursor,
            connection.wrap_database_errors,  # execute() does that by itself, copy() does not
            cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy,
        ):
            for row in rows:
                copy.write_row(row)
        return
    marks = ", ".join(["%s"] * len(columns))
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(rows))  # noqa: S608


def moment(value: Any) -> Any:
    """A datetime as this database takes it."""
    return connection.ops.adapt_datetimefield_value(value)
