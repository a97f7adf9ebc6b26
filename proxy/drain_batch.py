"""What the drain took from the streams, and how it gets into the database: together, or else one by one, so that an
entry that cannot be written does not hold up the others."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
from django.db import DataError, IntegrityError, connection
from django.db import Error as DatabaseError

from proxy.drain_write import Entry, read_entry, write_batch

logger = logging.getLogger(__name__)

#: What the data of one entry can cause, in the database or in whoever listens to the recorder.
_UNWRITABLE = (
    DataError,
    IntegrityError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)


class Taken(msgspec.Struct):
    """An entry as read: its place in the stream and what it says (None: nothing to write).

    `fault`: why it is set aside in the dead-letter stream.
    """

    shard: int
    place: bytes
    raw: bytes
    entry: Entry | None = None
    fault: str = ""
    was_deleted: bool = False  # before it was acknowledged: it was written


def take(shard: int, reply: Any) -> list[Taken]:
    """The entries in a reply of XREADGROUP."""
    return [_taken(shard, place, fields) for _, entries in reply or [] for place, fields in entries]


def _taken(shard: int, place: bytes, fields: list[bytes] | None) -> Taken:
    if not fields:
        return Taken(shard, place, b"", was_deleted=True)
    raw = fields[1]
    try:
        return Taken(shard, place, raw, read_entry(raw))
    except ValueError as error:
        return Taken(shard, place, raw, fault=f"not understood: {error}"[:300])


def write_taken(taken: list[Taken]) -> None:
    """Write what was understood, in one transaction. Runs in the drain's database thread.

    Raises DatabaseError when the database is the reason; then nothing may be acknowledged.
    """
    try:
        _write(taken)
    except DatabaseError:
        connection.close()  # a fresh one for the next try: this one may be dead
        raise


def _write(taken: list[Taken]) -> None:
    try:
        write_batch([(item.shard, item.entry) for item in taken if item.entry is not None])
    except _UNWRITABLE as error:
        logger.warning("a batch is written one by one", extra={"why": repr(error)[:300]})
        for item in taken:
            if item.entry is not None:
                _write_alone(item, item.entry)


def _write_alone(item: Taken, entry: Entry) -> None:
    """All of an entry, or else (a listener fails) all but the telling, or else (its tenant is gone) its audit event.

    When not even that can be written, the entry is not the reason: its data was checked when it was read.
    """
    for tell, charge in ((True, True), (False, True)):
        try:
            write_batch([(item.shard, entry)], tell=tell, charge=charge)
        except _UNWRITABLE as error:
            item.fault = f"{'not in the ledger' if not tell else 'nobody was told'}: {error!r}"[:300]
        else:
            return
    write_batch([(item.shard, entry)], tell=False, charge=False)
