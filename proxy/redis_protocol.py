"""One connection to Redis on which all calls of an event-loop tick leave as one write.

A call is packed at once and kept until the tick ends; replies come in the order of the calls. No call has a timer of
its own: while calls wait, a watchdog ticks, and when Redis was silent for too long the connection is given up. What
counts is the time in which this process was able to read: a tick that came late (the loop was busy) counts as one
tick, and whatever Redis sends sets the count back.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, cast

import hiredis

from proxy.errors import StoreUnavailable
from proxy.store import OutcomeUnknown, StoreError

#: How often in a timeout the watchdog looks.
TICKS = 5
#: Errors that mean "not now" and not "wrong call": the caller applies its failure policy.
NOT_NOW = frozenset(
    ("BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "NOREPLICAS", "OOM", "READONLY", "TRYAGAIN")
)

_INCOMPLETE = object()


def pack(*args: str | bytes | int) -> bytes:
    """A command as Redis reads it."""
    packed: bytes = hiredis.pack_command(cast(Any, args))
    return packed


class RedisProtocol(asyncio.Protocol):
    """Waits `timeout_ms` for a silent Redis. `on_lost` is called once, after all waiting calls have failed."""

    def __init__(self, timeout_ms: int, on_lost: Callable[[RedisProtocol], None]) -> None:
        self._timeout_ms = timeout_ms
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(notEnoughData=_INCOMPLETE)
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._out: list[bytes] = []
        self._transport: asyncio.Transport | None = None
        self._silent_ms = 0.0
        self._watchdog: asyncio.TimerHandle | None = None
        self._looked_at = 0.0
        self.closed = False

    # ---------------------------------------------------------------- calls

    def send(self, *args: str | bytes | int) -> asyncio.Future[Any]:
        """The reply to come. Fails with OutcomeUnknown when the connection is lost first."""
        return self.send_packed(pack(*args))

    def send_packed(self, packed: bytes) -> asyncio.Future[Any]:
        future = self._loop.create_future()
        if self.closed:
            future.set_exception(StoreUnavailable("the connection to the store is closed"))
            return future
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(packed)
        self._waiting.append(future)
        return future

    def _flush(self) -> None:
        if self.closed or self._transport is None:
            return
        self._transport.write(b"".join(self._out))
        self._out.clear()
        if self._watchdog is None:
            self._silent_ms = 0.0
            self._watch()

    # ---------------------------------------------------------------- the watchdog

    def set_timeout(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        if self._watchdog is not None:
            self._watchdog.cancel()
            self._watch()

    def _watch(self) -> None:
        self._looked_at = self._loop.time()
        self._watchdog = self._loop.call_later(self._timeout_ms / TICKS / 1000, self._look)

    def _look(self) -> None:
        self._watchdog = None
        if not self._waiting or self.closed:
            return
        elapsed_ms = (self._loop.time() - self._looked_at) * 1000
        self._silent_ms += min(elapsed_ms, self._timeout_ms / TICKS)
        if self._silent_ms > self._timeout_ms:  # one tick more than TICKS: the first may have begun before the call
            self.drop("the store did not answer in time")
        else:
            self._watch()

    # ---------------------------------------------------------------- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self.closed:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._silent_ms = 0.0
        reader, waiting = self._reader, self._waiting
        try:
            reader.feed(data)
            while (reply := reader.gets()) is not _INCOMPLETE:
                if isinstance(reply, hiredis.ReplyError):
                    self._refused(waiting.popleft(), str(reply))
                elif not (future := waiting.popleft()).done():  # done: its caller has gone
                    future.set_result(reply)
        except (hiredis.ProtocolError, IndexError):
            self.drop("the store's answer was not understood")

    def _refused(self, future: asyncio.Future[Any], text: str) -> None:
        code = text.partition(" ")[0]
        if not future.done():
            future.set_exception(StoreUnavailable(text) if code in NOT_NOW else StoreError(text))
        if code == "READONLY":
            self.drop("the store is a replica now")  # the address may lead to the new primary

    def connection_lost(self, exc: Exception | None) -> None:
        self.drop("the connection to the store was lost")

    def drop(self, why: str) -> None:
        """Close now; every waiting call fails."""
        if self.closed:
            return
        self.closed = True
        if self._watchdog is not None:
            self._watchdog.cancel()
        if self._transport is not None:
            self._transport.abort()
        waiting = list(self._waiting)
        self._waiting.clear()
        self._out.clear()
        for future in waiting:
            if not future.done():
                future.set_exception(OutcomeUnknown(why))
        self._on_lost(self)
