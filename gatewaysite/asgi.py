"""The ASGI application: a front router that keeps the data plane out of Django's request cycle.

It runs under uvicorn, granian, daphne and hypercorn. Servers that send lifespan events start and stop the data plane
with them; under others it starts at the first request.
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from typing import Any, cast

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gatewaysite.settings")

from django.core.asgi import get_asgi_application

django_application = get_asgi_application()

from gatewaysite.data_plane import background_jobs, data_plane_config  # noqa: E402  (after django.setup)
from proxy import runtime  # noqa: E402
from proxy.consumers import ROUTES, uuid4_hex  # noqa: E402
from proxy.dialects.base import openai_error_body  # noqa: E402
from proxy.errors import UpgradeRequired  # noqa: E402

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

runtime.configure(data_plane_config(), *background_jobs())


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Data-plane paths to their consumers, everything else to Django."""
    kind = scope["type"]
    if kind == "http":
        consumer = ROUTES.get(scope["path"])
        if consumer is not None and scope["method"] != "OPTIONS":
            await consumer(scope, receive, send)
        else:
            await runtime.ensure_started()
            await django_application(scope, receive, cast(Any, send))
    elif kind == "lifespan":
        await lifespan(receive, send)
    elif kind == "websocket":
        await receive()
        await refuse_websocket(scope, send)


async def refuse_websocket(scope: Scope, send: Send) -> None:
    """426 where the server can answer an upgrade by HTTP (an extension of ASGI), else its own refusal."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1000})
        return
    error, request_id = UpgradeRequired(), f"req_{uuid4_hex()}"
    headers = {"content-type": "application/json", "x-request-id": request_id, "request-id": request_id}
    head = [(name.encode(), value.encode()) for name, value in (headers | error.headers).items()]
    body = json.dumps(openai_error_body(error, request_id)).encode()
    await send({"type": "websocket.http.response.start", "status": error.status, "headers": head})
    await send({"type": "websocket.http.response.body", "body": body})


async def lifespan(receive: Receive, send: Send) -> None:
    """Start and stop the data plane with the server."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await runtime.ensure_started()
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await runtime.shut_down()
            await send({"type": "lifespan.shutdown.complete"})
            return
