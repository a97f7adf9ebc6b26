"""The server refuses what is no HTTP request, or too much of one, before anything else sees it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import uvicorn

from gatewaysite import http_protocol
from gatewaysite.http_protocol import MAX_HEAD_BYTES, MAX_HEADERS, GatewayProtocol
from gatewaysite.server import AnnouncedServer

Talk = Callable[..., Awaitable[bytes]]


class EchoingApplication:
    """Answers with the path; counts the requests that reached it."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def __call__(self, scope, receive, send) -> None:
        self.paths.append(scope["path"])
        while (await receive()).get("more_body"):
            pass
        body = scope["path"].encode()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@pytest.fixture
def application() -> EchoingApplication:
    return EchoingApplication()


@pytest.fixture
async def talk(application) -> AsyncIterator[Talk]:
    """Send bytes (a pause between pieces) and give what comes back until the server closes or says nothing more."""
    config = uvicorn.Config(
        application, port=0, http=GatewayProtocol, ws="none", lifespan="off", log_config=None, access_log=False
    )
    listening = asyncio.Event()
    server = AnnouncedServer(config, lambda _port: listening.set())
    task = asyncio.create_task(server._serve())
    await asyncio.wait_for(listening.wait(), 5)
    port = server.servers[0].sockets[0].getsockname()[1]

    async def converse(*pieces: bytes, pause: float = 0.01, wait: float = 0.3) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        heard = b""
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(pause)
            while chunk := await asyncio.wait_for(reader.read(65536), wait):
                heard += chunk
            return heard + b"<closed>"
        except ConnectionError:
            return heard + b"<closed>"
        except TimeoutError:
            return heard
        finally:
            writer.close()

    yield converse
    server.should_exit = True
    await task


def request(*headers: bytes, path: bytes = b"/x") -> bytes:
    return b"\r\n".join([b"GET " + path + b" HTTP/1.1", b"Host: a", *headers, b"", b""])


def refused(answer: bytes, status: int) -> bool:
    """Whether the answer is our error and then the end of the connection."""
    head, _, body = answer.removesuffix(b"<closed>").partition(b"\r\n\r\n")
    error = json.loads(body)
    return (
        head.startswith(f"HTTP/1.1 {status} ".encode())
        and answer.endswith(b"<closed>")
        and error["error"]["code"] == "invalid_request"
        and f"x-request-id: {error['request_id']}".encode() in head
    )


async def test_a_request_is_answered_and_the_connection_kept(talk, application):
    answer = await talk(request() + request(path=b"/y"))
    assert answer.count(b"HTTP/1.1 200") == 2
    assert not answer.endswith(b"<closed>")
    assert application.paths == ["/x", "/y"]


@pytest.mark.parametrize(
    "raw",
    [
        b"nonsense\r\n\r\n",
        b"GET /x HTTP/9.9\r\n\r\n",
        b"GET /x HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET /x HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello",
        b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    ],
)
async def test_what_is_no_request_is_refused_in_our_shape_and_nothing_after_it_is_read(talk, application, raw):
    assert refused(await talk(raw + request(path=b"/smuggled")), 400)
    assert "/smuggled" not in application.paths


@pytest.mark.parametrize(
    "raw",
    [
        request(b"A: " + b"x" * MAX_HEAD_BYTES),
        request(*[b"A: x"] * (MAX_HEADERS + 1)),
        request(*[b"Accept: " + b"x" * 1000] * 40),
        request(path=b"/" + b"x" * (MAX_HEAD_BYTES + 1)),
    ],
    ids=["one long header", "many headers", "many long headers", "long path"],
)
async def test_a_head_that_is_too_large_is_refused(talk, application, raw):
    assert refused(await talk(raw), 431)
    assert application.paths == []


async def test_a_header_that_never_ends_is_refused_while_it_comes(talk, application):
    answer = await talk(b"GET /x HTTP/1.1\r\nA: ", *[b"x" * 16384] * 8)
    assert answer.startswith(b"HTTP/1.1 431 ") or answer == b"<closed>"
    assert application.paths == []


async def test_a_head_in_small_pieces_is_a_request(talk):
    answer = await talk(*[bytes([byte]) for byte in request()], pause=0.001)
    assert answer.startswith(b"HTTP/1.1 200 ")


async def test_a_head_that_drips_is_given_up(talk, application, monkeypatch):
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.2)
    answer = await talk(b"GET /x HTTP/1.1\r\n", b"A: b\r\n", b"C: d\r\n", b"E: f\r\n", pause=0.1, wait=1)
    assert answer == b"<closed>"
    answer = await talk(request(), b"GET /y HTTP/1.1\r\n", wait=1)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"<closed>")
    assert application.paths == ["/x"]


async def test_a_connection_that_says_nothing_is_given_up(talk, monkeypatch):
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.1)
    assert await talk(wait=1) == b"<closed>"


async def test_an_upgrade_is_not_followed(talk):
    upgrade = (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABkAAQ")
    assert (await talk(request(*upgrade))).startswith(b"HTTP/1.1 200 ")
    websocket = (b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Protocol: \xff\xfe")
    assert not (await talk(request(*websocket))).startswith(b"HTTP/1.1 101 ")
