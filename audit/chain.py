"""Checking the chains of this installation: every event against its hash, its place, its columns and the chain's head.

What is checked is worked out by audit/verifier.py, the same code that checks an export offline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from audit.columns import COLUMNS, column_values
from audit.consistent_reads import consistent_reads
from audit.events import REQUEST
from audit.models import AuditEvent, ChainHead
from audit.verifier import Anchors, Broken, Link, Walk

#: Rows fetched at a time, and after how many the caller hears of progress.
CHUNK, PROGRESS = 5_000, 100_000

_LINK = ("chain", "seq", "prev_hash", "hash", "body")
_COLUMNS = ("id", "time", *COLUMNS)


@dataclass(frozen=True)
class Head:
    chain: int
    seq: int
    hash: str


@dataclass
class Report:
    """What a check found: `heads` where each chain ends, `broken` the first bad event of each that does not hold."""

    events: int = 0
    heads: list[Head] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.broken


def verify_chains(
    chains: list[int] | None = None,
    anchors: Anchors | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Report:
    """Check `chains` (None: all), as they are at one moment. `anchors` are places that an earlier check saw."""
    with consistent_reads():
        heads = {head.chain: Head(head.chain, head.seq, head.hash) for head in ChainHead.objects.all()}
        named = sorted({*heads, *_chains_with_events()}) if chains is None else chains
        walk = Walk({place: known for place, known in (anchors or {}).items() if chains is None or place[0] in chains})
        for chain in named:
            _walk(chain, walk, progress)
            _check_head(heads.get(chain), chain, walk)
    ended = [heads[chain] for chain in named if chain in heads]
    return Report(events=walk.count, heads=ended, broken=walk.finish())


def _chains_with_events() -> set[int]:
    return set(AuditEvent.objects.order_by().values_list("chain", flat=True).distinct())


def _walk(chain: int, walk: Walk, progress: Callable[[int], None]) -> None:
    for chain_of_row, seq, prev_hash, own_hash, text, *columns in _rows(chain):
        link = Link(chain_of_row, seq, prev_hash, own_hash, text.encode())
        walk.follow(link)
        fault = _fault_of_columns(link.body, tuple(columns))
        if fault:
            walk.blame(chain, seq, fault, link.body)
        if walk.count % PROGRESS == 0:
            progress(walk.count)


def _rows(chain: int) -> Iterator[tuple[Any, ...]]:
    rows = AuditEvent.objects.filter(chain=chain).order_by("seq")
    yield from rows.values_list(*_LINK, *_COLUMNS).iterator(chunk_size=CHUNK)


class _Told(msgspec.Struct):
    """What of an event's text is in columns too."""

    id: str
    time: datetime
    kind: str = REQUEST
    tenant: str | None = None
    key_id: str | None = None
    request_id: str | None = None
    status: str | None = None
    http_status: int | None = None
    error_code: str | None = None


_told = msgspec.json.Decoder(_Told)


def _fault_of_columns(body: bytes, actual: tuple[Any, ...]) -> str | None:
    """What is wrong when an event's columns do not say what its text says."""
    try:
        event = _told.decode(body)
    except msgspec.DecodeError:
        return "its text is no event"
    expected = (event.id, event.time, *column_values(msgspec.structs.asdict(event)))
    event_id, time, *others = actual
    told = (event_id, time.replace(microsecond=time.microsecond // 1000 * 1000), *others)
    if told == expected:
        return None
    wrong = [name for name, has, should in zip(_COLUMNS, told, expected, strict=True) if has != should]
    return f"its columns say something else than its text: {', '.join(wrong)}"


def _check_head(head: Head | None, chain: int, walk: Walk) -> None:
    ended = walk.last.get(chain)
    if head is None:
        walk.blame(chain, ended[0] if ended else 0, "the chain has no head")
    elif ended != (head.seq, head.hash) and (ended or head.seq):
        why = f"the head says seq {head.seq}: events at the end are missing or others than recorded"
        walk.blame(chain, ended[0] if ended else 0, why)
