"""uvicorn's HTTP protocol with what it lacks for a public address: a head that may not grow or drip, refusals in our
error shape, and word to the data plane when the server begins to shut down.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

#: A request's head: its line and all headers (bytes). A model's client sends 1 to 2 KiB, a browser with cookies 8.
MAX_HEAD_BYTES = 32 * 1024
MAX_HEADERS = 200
#: How long a connection may take to send a whole head (seconds).
HEAD_SECONDS = 30.0


class GatewayProtocol(HttpToolsProtocol):
    """One connection."""

    _head_bytes = 0
    _headers_seen = 0
    _in_head = True
    _too_large = False
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._head_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # nothing here is spoken over an upgraded connection; the request is answered as it is
        except httptools.HttpParserError:
            self._refuse(431 if self._too_large else 400)
            return
        if self._in_head:
            self._count_unfinished_head(data)

    def shutdown(self) -> None:
        """The server ends: readiness turns to no at once, streams go on until the time to drain is over."""
        from proxy import runtime  # noqa: PLC0415  (a worker imports this module before Django is set up)

        try:
            runtime.current().plane.draining = True
        except RuntimeError:  # not started yet
            pass
        super().shutdown()

    # ---------------------------------------------------------------- parser callbacks

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_bytes, self._headers_seen = True, 0, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._headers_seen += 1
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > MAX_HEAD_BYTES or self._headers_seen > MAX_HEADERS:
            self._too_large = True
            raise ValueError("head too large")

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_head_timer()
        if len(self.url) > MAX_HEAD_BYTES:
            self._too_large = True
            raise ValueError("head too large")
        super().on_headers_complete()

    # ---------------------------------------------------------------- a head that does not end

    def _count_unfinished_head(self, data: bytes) -> None:
        """A head in pieces: the parser keeps an unfinished header to itself, so what came is counted here."""
        self._head_bytes += len(data)
        if self._head_bytes > 2 * MAX_HEAD_BYTES:
            self._refuse(431)
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._head_is_late)

    def _head_is_late(self) -> None:
        self._head_timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, status: int) -> None:
        """Answer what never became a request, and close: nothing after it on this connection is read."""
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            if self.cycle.response_started:
                self.transport.close()  # in the middle of another answer there is nothing to say
                return
            self.cycle.disconnected = True  # its body turned out to be none: nobody hears the application any more
            self.cycle.message_event.set()
        request_id = f"req_{uuid.uuid4().hex}"
        body = json.dumps(_error(status, request_id)).encode()
        head = [STATUS_LINE[status], f"x-request-id: {request_id}\r\nrequest-id: {request_id}\r\n".encode()]
        head += [b"content-type: application/json\r\ncontent-length: ", str(len(body)).encode()]
        self.transport.write(b"".join([*head, b"\r\nconnection: close\r\n\r\n", body]))
        self.transport.close()


def _error(status: int, request_id: str) -> dict[str, Any]:
    message = "The headers are too large." if status == 431 else "This is no valid HTTP request."
    return {
        "error": {
            "message": message,
            "type": "invalid_request_error",
            "param": None,
            "code": "invalid_request",
            "details": None,
        },
        "request_id": request_id,
    }
