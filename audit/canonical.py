"""The canonical form of an event and the hash that links it (docs/audit.md specifies both byte by byte). Pure."""

from __future__ import annotations

import hashlib
import json
from typing import Any

DOMAIN = b"tollbar-audit-1"
GENESIS = "0" * 64

_encoder = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical(event: dict[str, Any]) -> str:
    """JSON with sorted keys and no spaces; UTF-8 as it is. Raises ValueError for NaN and infinities."""
    return _encoder.encode(event)


def link_hash(chain: int, seq: int, prev_hash: str, body: str) -> str:
    """SHA-256(domain ‖ chain (1 byte) ‖ seq (8 bytes, big-endian) ‖ previous hash ‖ SHA-256(body)), hex."""
    link = DOMAIN + bytes((chain,)) + seq.to_bytes(8, "big") + bytes.fromhex(prev_hash)
    return hashlib.sha256(link + hashlib.sha256(body.encode()).digest()).hexdigest()
