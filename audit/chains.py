"""How many chains there are, and which one a tenant's events go to. Fixed at install."""

from __future__ import annotations

import zlib

CHAINS = 16


def chain_of(slug: str) -> int:
    """0 to CHAINS-1, stable for the life of a tenant; events of no tenant go to that of the empty name."""
    return zlib.crc32(slug.encode()) % CHAINS
