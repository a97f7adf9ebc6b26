"""What of an event is kept in columns of its own, for searching.

The columns follow from the body alone, so a check of the chain also finds one that was changed (audit/chain.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from audit.events import REQUEST

COLUMNS = ("kind", "tenant", "key_id", "request_id", "status", "http_status", "error_code")


def column_values(body: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values of COLUMNS, in this order, for an event with this body."""
    return (
        _text(body.get("kind", REQUEST), 40),
        _text(body.get("tenant"), 63),
        _text(body.get("key_id"), 32),
        _text(body.get("request_id"), 64),
        _text(body.get("status"), 16),
        body.get("http_status"),
        _text(body.get("error_code"), 40),
    )


def _text(value: str | None, width: int) -> str:
    return storable(value, width) if value else ""


def storable(text: str, width: int) -> str:
    """`text` as a column of `width` characters holds it: PostgreSQL has no NUL in texts."""
    return text.replace("\0", "\ufffd")[:width]
