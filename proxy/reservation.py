"""What an admission leaves behind until it is settled: the holds, what they amount to, and the states of the limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from proxy.config import Config
from proxy.redis_keys import open_key, record_key
from proxy.snapshot import KeySpec, TenantSpec
from proxy.store import Store

if TYPE_CHECKING:
    from proxy.admission_rules import BoundRules

#: Counts and amounts stay below this: Lua's numbers hold integers exactly up to it.
LARGEST = 2**53 - 1

#: Kinds of rules as scripts know them.
BUCKET, ROLLING, LEASE, COUNTER = b"b", b"w", b"l", b"c"


class LimiterSide(Protocol):
    """What limiting needs of its process (`proxy.plane.DataPlane` has it)."""

    @property
    def store(self) -> Store: ...

    @property
    def config(self) -> Config: ...

    @property
    def on_cold(self) -> Callable[[int], None]: ...


class AdmissionRequest(msgspec.Struct, kw_only=True):
    """What a request asks to be admitted for.

    expected_tokens  for rates: given back or charged at settlement     worst_tokens  for quotas: cannot be exceeded
    worst_nano       nano-USD that cannot be exceeded; None: no price   deadline_ms   store's ms; later it is swept
    skeleton         stream entry (JSON) as it stands, which the sweeper completes when nobody settles
    """

    event_id: str
    tenant: TenantSpec
    key: KeySpec | None
    user: str | None
    expected_tokens: int
    worst_tokens: int
    worst_nano: int | None
    deadline_ms: int
    skeleton: bytes


class LimitState(msgspec.Struct, kw_only=True):
    """How one limit stands. Amounts: requests, tokens, or nano-USD for a budget. Times: epoch ms.

    kind requests | tokens | concurrency | quota | budget; scope user | key | tenant; window minute, now (concurrency)
    or the period. `resets_at_ms`: when nothing of it will be used any more (None: never, or when requests end), and
    `resets_in_ms` the same from the moment it was read. `amount` is what the request at hand took: before it,
    `used + reserved - amount` was taken.
    """

    kind: str
    scope: str
    window: str
    limit: int
    used: int
    reserved: int
    remaining: int
    resets_at_ms: int | None
    resets_in_ms: int | None = None
    amount: int = 0


class Admitted(msgspec.Struct, kw_only=True):
    """An admitted request. `tokens`, `worst_tokens` and `nano` are the amounts held (nano None: it has no price).

    `held` False: the store was away, nothing is reserved (`degraded`). `local_leases` are then the places taken in this
    process. `settled` belongs to `proxy.settle`.
    """

    event_id: str
    shard: int
    now_ms: int
    deadline_ms: int
    holds: BoundRules
    tokens: int
    worst_tokens: int
    nano: int | None
    skeleton: bytes
    states: list[LimitState]
    epoch: bytes = b""
    held: bool = True
    degraded: bool = False
    local_leases: tuple[str, ...] = ()
    settled: bool = False


class HeldRule(msgspec.Struct, array_like=True):
    """One hold of a recorded reservation: what of it, and key, limit and extra as settle.lua takes them."""

    kind: str  # tokens | concurrency | quota | budget
    counting: str  # b | w | l | c
    key: str
    limit: int
    extra: str


class Reservation(msgspec.Struct, kw_only=True):
    """The record of an open reservation, as the store keeps it. `rules`: the holds, see `HeldRule`."""

    deadline_ms: int
    tokens: int
    worst_tokens: int
    nano: int | None
    rules: list[HeldRule]
    entry: msgspec.Raw


def exact(amount: int) -> int:
    """`amount` within what the scripts count exactly; never negative."""
    return min(max(amount, 0), LARGEST)


_decoder = msgspec.json.Decoder(Reservation)
_RECORD = b'{"deadline_ms":%d,"tokens":%d,"worst_tokens":%d,"nano":%b,"rules":%b,"entry":%b}'


def encode_record(
    rules: bytes, deadline_ms: int, tokens: int, worst_tokens: int, nano: int | None, skeleton: bytes
) -> bytes:
    """The record's text. `rules` is the JSON of `Reservation.rules`."""
    money = b"null" if nano is None else b"%d" % nano
    return _RECORD % (deadline_ms, tokens, worst_tokens, money, rules, skeleton)


def decode_record(record: bytes) -> Reservation:
    """Raises msgspec.DecodeError for what is no record (the marks `settled` and `cancelled` are none)."""
    return _decoder.decode(record)


async def open_reservations(store: Store, shard: int) -> list[tuple[str, Reservation]]:
    """Every open reservation of a shard with its event id, the earliest deadline first."""
    events = [event.decode() for event in await store.command("ZRANGE", open_key(shard), "0", "-1")]
    found = []
    for start in range(0, len(events), 500):
        some = events[start : start + 500]
        records: list[Any] = await store.command("MGET", *(record_key(shard, event) for event in some))
        for event, record in zip(some, records, strict=True):
            if record is not None and record.startswith(b"{"):
                found.append((event, decode_record(record)))
    return found
