"""Servers that understand WebSockets hand the attempt to the application, which takes none."""

import json
from typing import Any

import pytest


async def refused(extensions: dict[str, Any]) -> list[dict[str, Any]]:
    from gatewaysite.asgi import application  # noqa: PLC0415  (needs Django set up)

    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await application({"type": "websocket", "path": "/v1/responses", "extensions": extensions}, receive, send)
    return sent


async def test_where_the_server_can_say_so_the_answer_is_426_in_the_error_shape():
    head, body = await refused({"websocket.http.response": {}})
    headers = dict(head["headers"])
    assert (head["status"], headers[b"upgrade"], headers[b"content-type"]) == (426, b"HTTP/1.1", b"application/json")
    document = json.loads(body["body"])
    assert document["request_id"].encode() == headers[b"x-request-id"]
    assert document["error"]["code"] == "method_not_allowed"


@pytest.mark.parametrize("extensions", [{}, {"tls": {}}])
async def test_elsewhere_the_attempt_is_closed_before_it_is_accepted(extensions):
    assert await refused(extensions) == [{"type": "websocket.close", "code": 1000}]
