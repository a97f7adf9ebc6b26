"""UUIDv7 (RFC 9562) for events and reservations: ordered by time, unique without coordination."""

from __future__ import annotations

import os


def new_event_id(now_ms: int) -> str:
    """36 characters; the first 48 bits are `now_ms` (epoch milliseconds)."""
    tail = os.urandom(10)
    digits = (
        now_ms.to_bytes(6, "big") + bytes((0x70 | tail[0] & 0x0F, tail[1], 0x80 | tail[2] & 0x3F)) + tail[3:]
    ).hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
