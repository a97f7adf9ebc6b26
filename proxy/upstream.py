"""The providers' side of the wire: one small interface over aiohttp, and the mock provider played in process.

Errors come out as UpstreamFault with their own decision: `connection` (not reached, reset), `timeout`, `protocol`.
Redirects are never followed, proxies of the environment never used, bodies are capped. Closing a stream closes its
connection, so a provider stops generating when the client has gone.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache

import aiohttp
import msgspec
from yarl import URL

from proxy.aws_signing import AwsSigner
from proxy.context import ProviderReply, ProviderRequest
from proxy.errors import UpstreamFault
from proxy.exchange import UpstreamStream
from proxy.providers.mock import MOCK_SCHEME, MockReply, mock_reply

#: The most of a whole answer that is read (bytes, after decompression).
MAX_ANSWER_BYTES = 32 << 20
#: The most of an error answer that is read: enough for every message a provider writes.
MAX_ERROR_BYTES = 64 << 10


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds: to connect, to the first byte, between pieces, and for the whole exchange."""

    connect: float
    first_byte: float
    idle: float
    total: float


class Upstream:
    """Opens requests at providers."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._signer = AwsSigner()
        self._mock_calls = 0

    async def start(self) -> None:
        connector = aiohttp.TCPConnector(limit=0, limit_per_host=0, keepalive_timeout=25, ttl_dns_cache=30)
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=True,
            trust_env=False,
            skip_auto_headers=("User-Agent", "Accept-Encoding", "Accept"),
            headers={"user-agent": "tollbar", "accept-encoding": "identity"},
            read_bufsize=1 << 18,
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def open(self, request: ProviderRequest, timeouts: Timeouts) -> UpstreamStream:
        """Send `request` and wait for the answer's headers, as long as the caller's own timer allows."""
        if request.url.startswith(MOCK_SCHEME):
            return self._open_mock(request)
        assert self._session is not None, "Upstream.start() was not awaited"
        url: str | URL = request.url
        if request.aws_region is not None:
            request = await self._signer.sign(request)
            url = URL(request.url, encoded=True)  # the path as it was signed
        try:
            response = await self._session.post(
                url,
                data=request.body,
                headers=request.headers,
                allow_redirects=False,
                timeout=_client_timeout(timeouts.connect),
            )
        except aiohttp.ServerTimeoutError:
            raise UpstreamFault("timeout", "no connection in time") from None
        except aiohttp.ClientResponseError:
            raise UpstreamFault("protocol", "the answer is not HTTP") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise UpstreamFault("connection", type(error).__name__) from None
        return _HttpStream(response, timeouts)

    def _open_mock(self, request: ProviderRequest) -> UpstreamStream:
        self._mock_calls += 1
        body = msgspec.json.decode(request.body)
        return _MockStream(mock_reply(body, str(body.get("model", "")), self._mock_calls))


@lru_cache(maxsize=256)
def _client_timeout(connect: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, sock_connect=connect)


async def read_reply(stream: UpstreamStream, limit: int) -> ProviderReply:
    """The whole answer of `stream`, closed afterwards."""
    try:
        return ProviderReply(stream.status, stream.headers, await stream.rest(limit))
    finally:
        stream.close()


class _HttpStream:
    def __init__(self, response: aiohttp.ClientResponse, timeouts: Timeouts) -> None:
        self._response = response
        self._idle = timeouts.idle
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.headers.items()}

    async def chunk(self) -> bytes:
        content = self._response.content
        try:
            waiting = content.read_nowait()
            if waiting or content.at_eof():
                return waiting
            async with asyncio.timeout(self._idle):
                return await content.readany()
        except TimeoutError:
            raise UpstreamFault("timeout", "the answer stopped") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise UpstreamFault("connection", type(error).__name__) from None

    async def rest(self, limit: int) -> bytes:
        piece = await self.chunk()
        if self._response.content.at_eof() and len(piece) <= limit:
            return piece
        pieces: list[bytes] = []
        size = 0
        while piece:
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise UpstreamFault("protocol", "the answer is too large")
            piece = await self.chunk()
        return b"".join(pieces)

    def close(self) -> None:
        if self._response.content.is_eof():
            self._response.release()
        else:
            self._response.close()


class _MockStream:
    def __init__(self, reply: MockReply) -> None:
        self.status = reply.status
        self.headers = reply.headers
        self._dies = reply.dies
        self._pieces = list(reply.pieces)

    async def chunk(self) -> bytes:
        if not self._pieces:
            if self._dies:
                raise UpstreamFault("connection", "reset")
            return b""
        delay_ms, piece = self._pieces.pop(0)
        if delay_ms:
            await asyncio.sleep(delay_ms / 1000)
        return piece or await self.chunk()

    async def rest(self, limit: int) -> bytes:
        pieces = []
        while piece := await self.chunk():
            pieces.append(piece)
        return b"".join(pieces)

    def close(self) -> None:
        self._pieces.clear()
