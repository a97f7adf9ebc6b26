"""Checking the chains of this installation: every event against its hash, its place and the chain's head."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from audit.canonical import GENESIS, link_hash
from audit.models import AuditEvent, ChainHead

#: Rows fetched at a time.
CHUNK = 5_000


@dataclass(frozen=True, kw_only=True)
class Broken:
    """The first event of a chain that does not hold."""

    chain: int
    seq: int
    id: str
    why: str


def verify_chains(
    chains: list[int] | None = None, progress: Callable[[int], None] = lambda _: None
) -> tuple[int, list[Broken]]:
    """Check `chains` (all when None). Gives how many events were read, and the first bad one of each broken chain."""
    heads = {head.chain: head for head in ChainHead.objects.all()}
    named = chains if chains is not None else sorted({*heads, *_chains_with_events()})
    count, broken = 0, []
    for chain in named:
        read, bad = _verify(chain, heads.get(chain), count, progress)
        count += read
        if bad is not None:
            broken.append(bad)
    return count, broken


def _chains_with_events() -> set[int]:
    return set(AuditEvent.objects.order_by().values_list("chain", flat=True).distinct())


def _verify(
    chain: int, head: ChainHead | None, before: int, progress: Callable[[int], None]
) -> tuple[int, Broken | None]:
    last_seq, last_hash, last_id, read = 0, GENESIS, "", 0
    for event_id, seq, prev_hash, own_hash, body in _events(chain):
        read += 1
        why = None
        if seq != last_seq + 1:
            why = f"seq {last_seq + 1} is missing"
        elif prev_hash != last_hash:
            why = "it does not name the hash of the event before it"
        elif own_hash != link_hash(chain, seq, prev_hash, body):
            why = "its content does not match its hash"
        if why:
            return read, Broken(chain=chain, seq=seq, id=event_id, why=why)
        last_seq, last_hash, last_id = seq, own_hash, event_id
        if read % 10_000 == 0:
            progress(before + read)
    known = (head.seq, head.hash) if head is not None else (0, GENESIS)
    if known != (last_seq, last_hash):
        why = f"the chain's head says seq {known[0]}: events at the end are missing or not the ones recorded"
        return read, Broken(chain=chain, seq=last_seq, id=last_id, why=why)
    return read, None


def _events(chain: int) -> Iterator[tuple[str, int, str, str, str]]:
    rows = AuditEvent.objects.filter(chain=chain).order_by("seq")
    yield from rows.values_list("id", "seq", "prev_hash", "hash", "body").iterator(chunk_size=CHUNK)
