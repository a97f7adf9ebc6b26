"""Which shard a tenant belongs to: the unit of order and of scale-out.

Every Redis key of a tenant carries its shard's hash tag, so any script touches one slot; a shard has one event
stream, one audit chain, one drain owner.
"""

from __future__ import annotations

from audit.chains import CHAINS, chain_of

SHARDS = CHAINS
shard_of = chain_of
