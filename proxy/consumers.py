"""HTTP to pipeline: one base consumer and one class an endpoint.

The base keeps the interface of Channels' AsyncHttpConsumer (`as_asgi`, `send_headers`, `send_body`, `handle`) and
replaces its loop: the body is read under a byte cap and a deadline, and while `handle` runs a watch notices a client
that leaves (Channels awaits `handle` inside dispatch, so it never sees the disconnect of a streaming client).
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from channels.generic.http import AsyncHttpConsumer

from proxy import pipeline
from proxy.answering import send_error
from proxy.dialects.anthropic import AnthropicDialect
from proxy.dialects.base import Dialect
from proxy.dialects.chat import TollbarDialect
from proxy.dialects.completions import CompletionsDialect
from proxy.dialects.count_tokens import CountTokensDialect
from proxy.dialects.embeddings import EmbeddingsDialect
from proxy.dialects.openai import OpenAIDialect
from proxy.dialects.responses import ResponsesDialect
from proxy.errors import (
    BadRequest,
    GatewayError,
    MethodNotAllowed,
    TooLarge,
    Unavailable,
    UnsupportedMediaType,
    UpgradeRequired,
)
from proxy.exchange import Exchange
from proxy.plane import DataPlane
from proxy.runtime import ensure_started

logger = logging.getLogger(__name__)

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

#: A client has this long to send its body (seconds).
BODY_SECONDS = 30.0
#: Requests shorter than this are not watched for a leaving client: starting the watch costs more than they do.
WATCH_AFTER_SECONDS = 0.05

_UTF_8 = re.compile(rb"""charset=["']?(utf-?8|us-ascii)\b""")

REQUEST_ID = re.compile(rb"[A-Za-z0-9_-]{1,64}")


class GatewayConsumer(AsyncHttpConsumer):
    """Base of every data-plane endpoint. Subclasses name the dialect and the endpoint as audit events spell it."""

    dialect: ClassVar[Dialect]
    endpoint: ClassVar[str]
    watch_task: asyncio.Task[None] | None = None

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        self.scope, self.receive, self.base_send = scope, receive, send
        self.body_read = asyncio.Event()
        self.client_left = asyncio.Event()
        headers = unambiguous(scope["headers"])
        exchange = self.exchange = Exchange(
            request_id=request_id_of(headers),
            endpoint=self.endpoint,
            dialect=self.dialect,
            headers=headers,
            address=scope["client"][0] if scope.get("client") else "",
            io=(self.read_body, self.start_response, self.write_response),
        )
        plane = await ensure_started()
        plane.meters.inflight(1)
        task = asyncio.current_task()
        assert task is not None
        watch = asyncio.get_running_loop().call_later(WATCH_AFTER_SECONDS, self.start_watch, task)
        try:
            await self.handle_exchange(plane, exchange)
        except asyncio.CancelledError:
            if not self.client_left.is_set():
                raise
        except Exception:
            logger.exception("request failed unexpectedly", extra={"request_id": exchange.request_id})
            await send_error(plane, exchange, GatewayError("The gateway failed to answer the request."))
            raise
        finally:
            watch.cancel()
            if self.watch_task is not None:
                self.watch_task.cancel()
            plane.meters.inflight(-1)
            del self.exchange  # each holds the other: apart, they are freed at once and not by the collector

    async def handle_exchange(self, plane: DataPlane, exchange: Exchange) -> None:
        """Refuse what is no request for this endpoint, else hand it to the pipeline."""
        try:
            self.check_request(plane)
        except GatewayError as error:
            await send_error(plane, exchange, error)
            return
        await pipeline.handle(plane, exchange)

    def check_request(self, plane: DataPlane) -> None:
        if self.scope["method"] != "POST":
            raise MethodNotAllowed("Use POST here.", allow="POST")
        if not host_allowed(self.exchange.headers.get(b"host", b""), plane.config.allowed_hosts):
            raise BadRequest("The Host header names no host of this gateway.")
        if plane.draining:
            raise Unavailable("The gateway is shutting down.", code="server_shutdown", retry_after_ms=1000)

    # ---------------------------------------------------------------- reading

    async def read_body(self) -> bytes:
        """The request's body. Raises UnsupportedMediaType or TooLarge, the latter without reading on."""
        headers = self.exchange.headers
        media_type, _, parameters = headers.get(b"content-type", b"application/json").lower().partition(b";")
        if media_type.strip() != b"application/json" or (b"charset" in parameters and not _UTF_8.search(parameters)):
            raise UnsupportedMediaType("Send the body as application/json in UTF-8.")
        if headers.get(b"content-encoding", b"identity").strip().lower() not in (b"identity", b""):
            raise UnsupportedMediaType("Send the body without a content encoding.")
        limit = (await ensure_started()).config.max_request_bytes
        length = headers.get(b"content-length")
        if length is not None and int(length) > limit:
            raise self.too_large(limit)
        message = await self.receive()
        if not message.get("more_body"):
            body = message.get("body", b"")
            self.body_read.set()
            if len(body) > limit:
                raise self.too_large(limit)
            return bytes(body)
        return await self.read_pieces(message.get("body", b""), limit)

    async def read_pieces(self, first: bytes, limit: int) -> bytes:
        """A body that comes in pieces, within BODY_SECONDS."""
        try:
            async with asyncio.timeout(BODY_SECONDS):
                return await self.read_on(first, limit)
        except TimeoutError:
            raise BadRequest("The body did not arrive in time.", code="invalid_json") from None

    async def read_on(self, first: bytes, limit: int) -> bytes:
        pieces, size, more = [first], len(first), True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise BadRequest("The body ended early.", code="invalid_json")
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size > limit:
                raise self.too_large(limit)
            more = message.get("more_body", False)
        self.body_read.set()
        return b"".join(pieces)

    @staticmethod
    def too_large(limit: int) -> TooLarge:
        error = TooLarge(f"The body is larger than {limit} bytes.")
        error.headers["connection"] = "close"
        return error

    # ---------------------------------------------------------------- writing

    async def start_response(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        await self.base_send({"type": "http.response.start", "status": status, "headers": headers})

    async def write_response(self, body: bytes, more: bool) -> None:
        await self.base_send({"type": "http.response.body", "body": body, "more_body": more})

    # ---------------------------------------------------------------- watching

    def start_watch(self, task: asyncio.Task[Any]) -> None:
        self.watch_task = asyncio.get_running_loop().create_task(self.watch(task))

    async def watch(self, task: asyncio.Task[Any]) -> None:
        """Cancel `task` when the client leaves, but not while an admission or a settlement runs."""
        await self.body_read.wait()
        while (await self.receive())["type"] != "http.disconnect":
            pass
        await self.exchange.unshielded.wait()
        self.client_left.set()
        task.cancel()


class ChatConsumer(GatewayConsumer):
    """POST /v1/chat and /v1/generate: Tollbar's own format."""

    dialect = TollbarDialect()
    endpoint = "/v1/chat"


class ChatCompletionsConsumer(GatewayConsumer):
    """POST /v1/chat/completions: OpenAI's."""

    dialect = OpenAIDialect()
    endpoint = "/v1/chat/completions"


class CompletionsConsumer(GatewayConsumer):
    """POST /v1/completions: OpenAI's, from before chat."""

    dialect = CompletionsDialect()
    endpoint = "/v1/completions"


class EmbeddingsConsumer(GatewayConsumer):
    """POST /v1/embeddings: OpenAI's."""

    dialect = EmbeddingsDialect()
    endpoint = "/v1/embeddings"


class ResponsesConsumer(GatewayConsumer):
    """POST /v1/responses: OpenAI's."""

    dialect = ResponsesDialect()
    endpoint = "/v1/responses"

    def check_request(self, plane: DataPlane) -> None:
        """Some clients try a WebSocket first (GET with Upgrade): told so, they go on with POST."""
        if self.exchange.headers.get(b"upgrade", b"").strip().lower() == b"websocket" and self.scope["method"] == "GET":
            raise UpgradeRequired
        super().check_request(plane)


class MessagesConsumer(GatewayConsumer):
    """POST /v1/messages: Anthropic's."""

    dialect = AnthropicDialect()
    endpoint = "/v1/messages"


class CountTokensConsumer(GatewayConsumer):
    """POST /v1/messages/count_tokens: Anthropic's."""

    dialect = CountTokensDialect()
    endpoint = "/v1/messages/count_tokens"


_CREDENTIAL_HEADERS = (b"authorization", b"x-api-key", b"api-key")


def unambiguous(pairs: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Headers by name. A credential sent twice is none; of other repeated headers the last counts."""
    headers = dict(pairs)
    if len(headers) != len(pairs):
        names = [name for name, _ in pairs]
        for name in _CREDENTIAL_HEADERS:
            if names.count(name) > 1:
                headers[name] = b"\x00"
    return headers


def request_id_of(headers: dict[bytes, bytes]) -> str:
    """The caller's own id when it has the allowed form, else a new one."""
    given = headers.get(b"x-request-id")
    if given and REQUEST_ID.fullmatch(given):
        return given.decode()
    return f"req_{uuid4_hex()}"


def uuid4_hex() -> str:
    """As uuid.uuid4().hex (RFC 9562), at a third of its cost: every request makes one."""
    raw = bytearray(os.urandom(16))
    raw[6], raw[8] = raw[6] & 0x0F | 0x40, raw[8] & 0x3F | 0x80
    return raw.hex()


def host_allowed(host: bytes, allowed: tuple[str, ...]) -> bool:
    """Django's ALLOWED_HOSTS rule for the data plane: exact names, `.domain` with its subdomains, `*`."""
    if "*" in allowed:
        return True
    name, found = _host_name(host)
    return found and any(
        name == entry or (entry[:1] == "." and (name.endswith(entry) or name == entry[1:])) for entry in allowed
    )


_HOST = re.compile(rb"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?")


def _host_name(host: bytes) -> tuple[str, bool]:
    match = _HOST.fullmatch(host)
    return (match[1].decode().lower().rstrip("."), True) if match else ("", False)


#: What the front router sends here; everything else is Django's.
ROUTES: dict[str, Any] = {
    "/v1/chat": ChatConsumer.as_asgi(),
    "/v1/generate": ChatConsumer.as_asgi(),
    "/v1/chat/completions": ChatCompletionsConsumer.as_asgi(),
    "/v1/completions": CompletionsConsumer.as_asgi(),
    "/v1/embeddings": EmbeddingsConsumer.as_asgi(),
    "/v1/responses": ResponsesConsumer.as_asgi(),
    "/v1/messages": MessagesConsumer.as_asgi(),
    "/v1/messages/count_tokens": CountTokensConsumer.as_asgi(),
}
