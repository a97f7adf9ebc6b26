"""The store on a real Redis: one connection, batched by event-loop tick, and a loop that brings it back when lost."""

from __future__ import annotations

import asyncio
import importlib
import logging
import time
from collections.abc import Sequence
from ssl import SSLContext
from typing import Any, cast

from redis.asyncio.connection import SSLConnection, parse_url

from proxy.config import Config
from proxy.errors import StoreUnavailable
from proxy.redis_protocol import RedisProtocol, pack
from proxy.redis_scripts import SCRIPTS, Script
from proxy.store import Argument, OutcomeUnknown, Store, StoreError

__all__ = ["OutcomeUnknown", "RedisStore", "Store", "StoreError", "open_store"]

logger = logging.getLogger(__name__)

CLIENT_NAME = "tollbar"
#: A call may take this long while a connection is being set up (ms); after that Config.store_timeout_ms holds.
COLD_TIMEOUT_MS = 2000
#: How long `start` waits for the first connection (seconds).
START_SECONDS = 2.0
#: Pause between two attempts to connect (seconds): from the first to the second, each half as long again.
RETRY_SECONDS = (0.1, 1.0)
CONNECT_SECONDS = 1.0
#: How often the store's clock is asked for (seconds).
CLOCK_SECONDS = 10.0

_LATER_SCHEMES = ("redis+cluster", "redis+sentinel")


class RedisStore(Store):
    """See `proxy.store.Store`. `url` is redis://, rediss:// or unix://."""

    def __init__(self, url: str, *, timeout_ms: int = 50) -> None:
        super().__init__()
        scheme = url.partition("://")[0]
        if scheme in _LATER_SCHEMES:
            raise ValueError(f"REDIS_URL: {scheme}:// is not supported yet; use redis:// or rediss://")
        self._address = cast(dict[str, Any], parse_url(url))
        self._timeout_ms = timeout_ms
        self._protocol: RedisProtocol | None = None
        self._lost = asyncio.Event()
        self._first = asyncio.Event()
        self._closing = False

    # ---------------------------------------------------------------- calls

    async def command(self, *args: Argument) -> Any:
        return await self._connection().send_packed(pack(*args))

    async def run(self, script: Script, keys: Sequence[str], args: Sequence[Argument]) -> Any:
        packed = pack("EVALSHA", script.sha, len(keys), *keys, *args)
        connection = self._connection()
        try:
            return await connection.send_packed(packed)
        except StoreError as error:
            if error.code != "NOSCRIPT":
                raise
        connection.send("SCRIPT", "LOAD", script.text)
        return await connection.send_packed(packed)

    def _connection(self) -> RedisProtocol:
        if self._protocol is None or not self.up:
            raise StoreUnavailable("the store is away")
        return self._protocol

    # ---------------------------------------------------------------- life

    async def start(self) -> None:
        self.spawn(self._stay_connected())
        self.spawn(self._follow_clock())
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._first.wait()
        except TimeoutError:
            logger.warning("the store is away; the failure policies apply until it is back")

    async def close(self) -> None:
        self._closing = True
        await self._end_tasks()
        if self._protocol is not None:
            self._protocol.drop("closed")

    async def _stay_connected(self) -> None:
        pause, longest = RETRY_SECONDS
        told = ""
        while True:
            self._lost.clear()
            try:
                self._protocol = await self._connect()
            except (OSError, StoreUnavailable, StoreError) as error:
                why = (str(error) or type(error).__name__)[:200]
                logger.log(logging.INFO if why == told else logging.WARNING, "no connection to the store: %s", why)
                told = why
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, longest)
                continue
            pause, told = RETRY_SECONDS[0], ""
            self.up = True
            self._first.set()
            logger.info("connected to the store")
            self.spawn(self.came_up())
            await self._lost.wait()

    def _on_lost(self, protocol: RedisProtocol) -> None:
        if protocol is self._protocol:
            self._protocol = None
            self.up = False
            self._lost.set()
            if not self._closing:
                logger.warning("lost the store")

    async def _connect(self) -> RedisProtocol:
        """A connection that is logged in, has the scripts and told the time."""
        loop, address = asyncio.get_running_loop(), self._address

        def protocol() -> RedisProtocol:
            return RedisProtocol(COLD_TIMEOUT_MS, self._on_lost)

        async with asyncio.timeout(CONNECT_SECONDS):
            if "path" in address:
                _, connection = await loop.create_unix_connection(protocol, address["path"])
            else:
                host, port = address.get("host", "localhost"), address.get("port", 6379)
                _, connection = await loop.create_connection(protocol, host, port, ssl=_tls(address))
        try:
            await self._set_up(connection)
        except (StoreUnavailable, StoreError, asyncio.CancelledError):
            connection.drop("the connection was not set up")
            raise
        return connection

    async def _set_up(self, connection: RedisProtocol) -> None:
        address, calls = self._address, []
        if address.get("password") is not None:
            user = (address["username"],) if address.get("username") else ()
            calls.append(connection.send("AUTH", *user, address["password"]))
        if address.get("db"):
            calls.append(connection.send("SELECT", int(address["db"])))
        calls.append(connection.send("CLIENT", "SETNAME", CLIENT_NAME))
        calls += [connection.send("SCRIPT", "LOAD", script.text) for script in SCRIPTS]
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
        await self._ask_clock(connection)
        connection.set_timeout(self._timeout_ms)

    # ---------------------------------------------------------------- the clock

    async def _ask_clock(self, connection: RedisProtocol) -> None:
        sent = time.monotonic()
        seconds, micros = await connection.send("TIME")
        middle_ms = (sent + time.monotonic()) * 500
        self._offset_ms = int(seconds) * 1000 + int(micros) / 1000 - middle_ms

    async def _follow_clock(self) -> None:
        while True:
            await asyncio.sleep(CLOCK_SECONDS)
            if self._protocol is not None and self.up:
                try:
                    await self._ask_clock(self._protocol)
                except StoreUnavailable:
                    continue


def _tls(address: dict[str, Any]) -> SSLContext | None:
    """The TLS settings of a rediss:// address (ssl_ca_certs, ssl_certfile, ssl_cert_reqs... in its query)."""
    if address.get("connection_class") is not SSLConnection:
        return None
    settings = {name: value for name, value in address.items() if name.startswith("ssl_")}
    context: SSLContext = SSLConnection(**settings).ssl_context.get()
    return context


def open_store(config: Config) -> Store:
    """The store that `config.redis_url` names; empty: the embedded one, in this process."""
    if config.redis_url:
        return RedisStore(config.redis_url, timeout_ms=config.store_timeout_ms)
    # Found by name so that a process on a real Redis does not load the embedded one with its Lua.
    embedded: Store = importlib.import_module("proxy.embedded_store").EmbeddedStore()
    return embedded
