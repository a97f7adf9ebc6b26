"""Many requests at once, from one event loop."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import aiohttp


@dataclass
class Answered:
    """One request as its client saw it. status 0: the connection was lost."""

    request_id: str
    status: int
    code: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    cost_usd: str | None = None


async def send(session: aiohttp.ClientSession, url: str, key: str, body: Any, request_id: str) -> Answered:
    headers = {"authorization": f"Bearer {key}", "x-request-id": request_id}
    try:
        async with session.post(url, json=body, headers=headers) as response:
            document = await response.json()
            lower = {name.lower(): value for name, value in response.headers.items()}
            code = document.get("error", {}).get("code") if response.status >= 400 else None
            return Answered(request_id, response.status, code, lower, document.get("cost_usd"))
    except (aiohttp.ClientError, OSError, TimeoutError):
        return Answered(request_id, 0)


async def together(url: str, key: str, body: Any, count: int, name: str) -> list[Answered]:
    """`count` requests released at the same moment, each on a connection of its own."""
    gate = asyncio.Event()
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=60)) as session:

        async def one(number: int) -> Answered:
            await gate.wait()
            return await send(session, url, key, body, f"{name}-{number}")

        tasks = [asyncio.create_task(one(number)) for number in range(count)]
        await asyncio.sleep(0)
        gate.set()
        return await asyncio.gather(*tasks)


async def steady(url: str, keys: list[str], body: Any, count: int, *, lanes: int, name: str) -> list[Answered]:
    """`count` requests by `lanes` clients that each send the next one when the last was answered."""
    numbers = iter(range(count))
    found: list[Answered] = []
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=60)) as session:

        async def lane() -> None:
            for number in numbers:
                answered = await send(session, url, keys[number % len(keys)], body, f"{name}-{number}")
                found.append(answered)
                if answered.status == 0:
                    await asyncio.sleep(0.05)

        await asyncio.gather(*(lane() for _ in range(lanes)))
    return found
