"""Writing the record: events into gap-free hash chains, inside the transaction of their cause.

A chain is one lock: its head row is taken for update, so sequence numbers have no gaps and no forks. Recording is
idempotent by event id: whoever delivers an event twice (a drain that crashed after its commit) changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NotRequired, TypedDict, Unpack

from django.db import transaction

from audit.bulk_insert import insert_rows, moment
from audit.canonical import GENESIS, canonical, link_hash
from audit.chains import chain_of
from audit.columns import COLUMNS, column_values
from audit.event_id import new_event_id
from audit.events import KINDS, REQUEST
from audit.models import AuditEvent, ChainHead
from audit.redaction import without_secrets


@dataclass(frozen=True, kw_only=True, slots=True)
class NewEvent:
    """An event to record. `body` is what gets hashed; its `id` and `time` are the event's."""

    id: str
    chain: int
    time: datetime
    body: dict[str, Any]
    extra: dict[str, Any] = field(default_factory=dict)  # for listeners; not recorded

    @property
    def kind(self) -> str:
        kind: str = self.body.get("kind", REQUEST)
        return kind

    @property
    def tenant(self) -> str:
        """Slug; empty for what belongs to no tenant."""
        return self.body.get("tenant") or ""


Listener = Callable[[list[NewEvent]], None]

#: Called in the transaction with what was newly recorded. Apps register here when they are ready.
listeners: list[Listener] = []

_ROW = ("id", "chain", "seq", "prev_hash", "hash", "time", "body", *COLUMNS)


def record(events: Iterable[NewEvent], *, tell: bool = True) -> list[NewEvent]:
    """Append `events` to their chains in order; those already recorded are left out. Gives the new ones.

    Call it inside a transaction: the chains' heads stay locked until it ends. One that records several events gives
    them in one call, because chains are locked in one order then and two writers never wait for each other in a circle.
    Without `tell` no listener hears of them.
    """
    given = list(events)
    if not given:
        return []
    with transaction.atomic():
        heads = _locked_heads({event.chain for event in given})
        known = set(AuditEvent.objects.filter(id__in=[event.id for event in given]).values_list("id", flat=True))
        fresh, rows = [], []
        for event in given:
            if event.id not in known:
                known.add(event.id)
                rows.append(_linked(event, heads[event.chain]))
                fresh.append(event)
        if fresh:
            insert_rows(AuditEvent._meta.db_table, _ROW, rows)
            _save({heads[event.chain] for event in fresh})
            for listener in listeners if tell else ():
                listener(fresh)
    return fresh


def hold_chain(chain: int) -> None:
    """Let nobody record in a chain until the caller's transaction ends; waits for those who do."""
    _locked_heads({chain})


def _locked_heads(chains: set[int]) -> dict[int, ChainHead]:
    wanted = ChainHead.objects.select_for_update().filter(chain__in=chains).order_by("chain")
    heads = {head.chain: head for head in wanted}
    if len(heads) < len(chains):
        ChainHead.objects.bulk_create(map(_head_from_events, chains - heads.keys()), ignore_conflicts=True)
        heads = {head.chain: head for head in wanted.all()}
    return heads


def _head_from_events(chain: int) -> ChainHead:
    """A head that does not exist yet, or was lost: events say where their chain ends."""
    last = AuditEvent.objects.filter(chain=chain).order_by("-seq").values_list("seq", "hash").first()
    seq, last_hash = last or (0, GENESIS)
    return ChainHead(chain=chain, seq=seq, hash=last_hash)


def _linked(event: NewEvent, head: ChainHead) -> tuple[Any, ...]:
    """The row of `event` as the next link after `head`, which moves on to it."""
    body = canonical(event.body)
    previous = head.hash
    head.seq += 1
    head.hash = link_hash(head.chain, head.seq, previous, body)
    row = (event.id, head.chain, head.seq, previous, head.hash, moment(event.time), body)
    return (*row, *column_values(event.body))


def _save(heads: set[ChainHead]) -> None:
    if len(heads) == 1:
        heads.pop().save(update_fields=["seq", "hash"])
    else:
        ChainHead.objects.bulk_update(heads, ["seq", "hash"])


# ---------------------------------------------------------------- changes of the control plane


class ChangeFacts(TypedDict):
    """Who (`actor`) changed what (`subject`), from where (`address`) and why. `tenant` is a slug."""

    actor: str
    subject: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    tenant: NotRequired[str]
    key_id: NotRequired[str]
    reason: NotRequired[str]
    address: NotRequired[str]


def record_change(kind: str, **facts: Unpack[ChangeFacts]) -> None:
    """Record a change made by a person or a command, in the caller's transaction, without any secret."""
    record([change(kind, **facts)])


def change(kind: str, **facts: Unpack[ChangeFacts]) -> NewEvent:
    """The event of a change, for one that records several in one call. `kind` is one of audit/events.py."""
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is not in the event catalogue")
    now, tenant = datetime.now(UTC), facts.get("tenant", "")
    event_id = new_event_id(int(now.timestamp() * 1000))
    body = {
        "id": event_id,
        "time": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "kind": kind,
        "actor": facts["actor"],
        "subject": facts["subject"],
        "before": without_secrets(facts["before"]),
        "after": without_secrets(facts["after"]),
        "tenant": tenant,
        "key_id": facts.get("key_id") or None,
        "reason": facts.get("reason", ""),
        "address": facts.get("address", ""),
    }
    return NewEvent(id=event_id, chain=chain_of(tenant), time=now, body=body)
