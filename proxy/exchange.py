"""One request on its way, and the types its stages hand each other: stages never import one another."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec

from proxy.canonical import Usage
from proxy.context import Answer, AttemptRecord, Call, Relay
from proxy.dialects.base import Dialect
from proxy.providers.base import Adapter
from proxy.reservation import Admitted
from proxy.snapshot import KeySpec, ModelSpec, PriceSpec, TargetSpec, TenantSpec

#: Start an answer: status and raw header pairs.
SendHead = Callable[[int, list[tuple[bytes, bytes]]], Awaitable[None]]
#: Send body bytes; the flag says whether more follows.
SendBody = Callable[[bytes, bool], Awaitable[None]]
#: Read the request's body under the byte cap and the deadline.
ReadBody = Callable[[], Awaitable[bytes]]


class Principal(msgspec.Struct, kw_only=True):
    """Who a request runs as. `user` is set by tokens only; `models` and `scopes` bound what it may do."""

    tenant: TenantSpec
    key: KeySpec | None
    user: str | None = None
    scopes: frozenset[str] = frozenset()
    models: tuple[str, ...] = ("*",)


class Candidate(msgspec.Struct):
    """A target that may serve the call, with its adapter and the price in force. price None: unpriced, allowed."""

    target: TargetSpec
    adapter: Adapter
    price: PriceSpec | None


class Plan(msgspec.Struct):
    """Candidates in order, and why others were dropped (for the audit event's `decision`)."""

    model: ModelSpec
    candidates: list[Candidate]
    dropped: list[dict[str, Any]]


class UpstreamStream(Protocol):
    """An open answer of a provider. `status` and `headers` (lower-case names) are there from the start."""

    status: int
    headers: dict[str, str]

    async def chunk(self) -> bytes:
        """The next bytes, b"" at the end. Raises UpstreamFault."""
        ...

    async def rest(self, limit: int) -> bytes:
        """Everything that is left. Raises UpstreamFault `protocol` above `limit` bytes."""
        ...

    def close(self) -> None:
        """Give the connection up (kept for reuse only when the answer was read to its end)."""
        ...


class Delivery(msgspec.Struct):
    """What an attempt brought: a whole `answer`, or an open `stream` with its `relay` and the bytes so far."""

    candidate: Candidate
    answer: Answer | None = None
    stream: UpstreamStream | None = None
    relay: Relay | None = None
    buffered: bytes = b""


class Exchange:
    """Mutable state of one request. Times are `time.perf_counter` seconds unless a name says ms."""

    __slots__ = (
        "address",
        "admitted",
        "answered",
        "attempts",
        "body_bytes",
        "call",
        "candidate",
        "cost_nano",
        "decision",
        "dialect",
        "endpoint",
        "event_id",
        "expected_input",
        "first_byte_at",
        "headers",
        "limit_headers",
        "model_named",
        "plan",
        "principal",
        "read_body",
        "request_id",
        "send_body",
        "send_head",
        "started",
        "stream_wanted",
        "unshielded",
        "upstream_seconds",
        "usage",
        "usage_source",
        "user",
    )

    def __init__(
        self,
        *,
        request_id: str,
        endpoint: str,
        dialect: Dialect,
        headers: dict[bytes, bytes],
        address: str,
        io: tuple[ReadBody, SendHead, SendBody],
    ) -> None:
        self.started = time.perf_counter()
        self.request_id = request_id
        self.endpoint = endpoint
        self.dialect = dialect
        self.headers = headers
        self.address = address
        self.read_body, self.send_head, self.send_body = io
        self.event_id = ""
        self.body_bytes = 0
        self.expected_input = 0  # tokens, for estimates
        self.limit_headers: list[tuple[bytes, bytes]] = []
        self.principal: Principal | None = None
        self.model_named: object = None  # as the body has them, also when it is refused
        self.stream_wanted: object = None
        self.call: Call | None = None
        self.user: str | None = None
        self.plan: Plan | None = None
        self.candidate: Candidate | None = None  # the one that answered, or the last that was tried
        self.admitted: Admitted | None = None
        self.attempts: list[AttemptRecord] = []
        self.decision: list[dict[str, Any]] = []
        self.usage: Usage | None = None
        self.usage_source: str | None = None
        self.cost_nano: int | None = None
        self.first_byte_at: float | None = None
        self.upstream_seconds = 0.0
        self.answered = False  # the head of an answer was sent
        #: Clear while admission or settlement runs: a client that leaves must not interrupt them.
        self.unshielded = asyncio.Event()
        self.unshielded.set()

    @property
    def latency_ms(self) -> int:
        return int((time.perf_counter() - self.started) * 1000)

    @property
    def overhead_ms(self) -> float:
        """Milliseconds spent here and not waiting for a provider; of a stream, until its first content."""
        until = self.first_byte_at or time.perf_counter()
        return round(max(until - self.started - self.upstream_seconds, 0.0) * 1000, 3)

    @property
    def fallback_used(self) -> bool:
        """Whether another target than the first one planned answered."""
        if self.candidate is None or self.plan is None or not self.attempts:
            return False
        first = self.plan.candidates[0].target
        return self.candidate.target is not first
