"""A provider on a loopback port that says what a test tells it to, and keeps what it was sent."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """One scripted answer. `pieces` are written as HTTP chunks, `gap` seconds apart; `cut` leaves the last one out."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    pieces: list[bytes] | None = None
    gap: float = 0.0
    delay: float = 0.0
    cut: bool = False


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    json: Any
    closed_early: bool = False


Script = Reply | Callable[[Request], Reply]


class FakeProvider:
    """Answers each POST with the next scripted reply, or with `always` when the script is empty."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.script: deque[Script] = deque()
        self.always: Script = Reply(body=b"{}")
        self._lock = threading.Lock()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("content-length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.path, headers, json.loads(raw) if raw else None)
                with fake._lock:
                    fake.requests.append(request)
                    script = fake.script.popleft() if fake.script else fake.always
                fake._answer(self, script(request) if callable(script) else script, request)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """A gateway that hangs up is what some tests are about."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def queue(self, *replies: Script) -> FakeProvider:
        self.script.extend(replies)
        return self

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    @staticmethod
    def _answer(handler: BaseHTTPRequestHandler, reply: Reply, request: Request) -> None:
        time.sleep(reply.delay)
        handler.send_response(reply.status)
        for name, value in ({"content-type": "application/json"} | reply.headers).items():
            handler.send_header(name, value)
        if reply.pieces is None:
            handler.send_header("content-length", str(len(reply.body)))
            handler.end_headers()
            handler.wfile.write(reply.body)
            return
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        try:
            for piece in reply.pieces:
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                handler.wfile.flush()
                time.sleep(reply.gap)
            if not reply.cut:
                handler.wfile.write(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            request.closed_early = True
        if reply.cut:
            handler.close_connection = True


# ---------------------------------------------------------------- what providers say


def openai_answer(text: str = "ok", *, input_tokens: int = 10, output_tokens: int = 5, **message: Any) -> Reply:
    document = {
        "id": "chatcmpl-fake",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "fake",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, **message},
                "finish_reason": "tool_calls" if message.get("tool_calls") else "stop",
            }
        ],
        "usage": _openai_usage(input_tokens, output_tokens),
    }
    return Reply(body=json.dumps(document).encode())


def _openai_usage(input_tokens: int, output_tokens: int) -> dict[str, int]:
    return {
        "prompt_tokens": input_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
    }


def openai_stream(
    deltas: list[dict[str, Any]], *, finish: str = "stop", usage: tuple[int, int] | None = (10, 5), **reply: Any
) -> Reply:
    head = {"id": "chatcmpl-fake", "object": "chat.completion.chunk", "created": 1700000000, "model": "fake"}
    chunks: list[dict[str, Any]] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage:
        chunks.append({**head, "choices": [], "usage": _openai_usage(*usage)})
    pieces = [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks] + [b"data: [DONE]\n\n"]
    if reply.get("cut"):
        pieces = pieces[: len(deltas)]
    return Reply(pieces=pieces, headers={"content-type": "text/event-stream"}, **reply)


def anthropic_answer(*blocks: dict[str, Any], stop: str = "end_turn", usage: dict[str, int] | None = None) -> Reply:
    document = {
        "id": "msg_fake",
        "type": "message",
        "role": "assistant",
        "model": "fake",
        "content": list(blocks) or [{"type": "text", "text": "ok"}],
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage or {"input_tokens": 10, "output_tokens": 5},
    }
    return Reply(body=json.dumps(document).encode())


def anthropic_stream(texts: list[str], *, usage: tuple[int, int] = (10, 5), **reply: Any) -> Reply:
    def frames() -> Iterator[dict[str, Any]]:
        message: dict[str, Any] = {
            "id": "msg_fake",
            "type": "message",
            "role": "assistant",
            "model": "fake",
            "content": [],
        }
        message |= {"stop_reason": None, "stop_sequence": None}
        message["usage"] = {"input_tokens": usage[0], "output_tokens": 1}
        yield {"type": "message_start", "message": message}
        yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        for text in texts:
            yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
        yield {"type": "content_block_stop", "index": 0}
        delta = {"stop_reason": "end_turn", "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage[1]}}
        yield {"type": "message_stop"}

    pieces = [f"event: {frame['type']}\ndata: {json.dumps(frame)}\n\n".encode() for frame in frames()]
    if reply.get("cut"):
        pieces = pieces[:4]
    return Reply(pieces=pieces, headers={"content-type": "text/event-stream"}, **reply)
