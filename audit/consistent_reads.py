"""Several reads that see one state of the database, beside whoever writes meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction


@contextmanager
def consistent_reads() -> Iterator[None]:
    """Everything read inside is of one moment; nobody's writing waits. Inside a transaction: as that one reads."""
    if connection.in_atomic_block:
        yield
    elif connection.vendor == "postgresql":
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
    else:
        connection.ensure_connection()
        sqlite: Any = connection
        mode = sqlite.transaction_mode  # IMMEDIATE would take the write lock
        sqlite.transaction_mode = None
        try:
            with transaction.atomic():
                yield
        finally:
            sqlite.transaction_mode = mode
