"""Database reads of async views: in threads of their own, so that a slow report delays no key look-up and no reload."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, close_old_connections, connections

from proxy.v1_errors import records_unavailable

P = ParamSpec("P")
T = TypeVar("T")

#: A read that takes longer is given up (seconds).
READ_SECONDS = 20.0

_threads = ThreadPoolExecutor(4, thread_name_prefix="tollbar-reads")


async def read(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of `function`, run in a database thread. Raises Unavailable when the database does not answer."""

    def run() -> T:
        close_old_connections()
        try:
            return function(*args, **kwargs)
        finally:
            close_old_connections()

    try:
        async with asyncio.timeout(READ_SECONDS):
            return await asyncio.get_running_loop().run_in_executor(_threads, run)
    except (OperationalError, InterfaceError, TimeoutError):
        raise records_unavailable() from None


async def stream(rows: Callable[[], Iterator[T]]) -> AsyncIterator[T]:
    """The items of `rows()`, one query read piece by piece in one thread (a connection belongs to its thread)."""
    loop = asyncio.get_running_loop()
    thread = ThreadPoolExecutor(1, thread_name_prefix="tollbar-export")
    try:
        iterator = await loop.run_in_executor(thread, rows)
        while (item := await loop.run_in_executor(thread, next, iterator, None)) is not None:
            yield item
    finally:
        thread.submit(connections.close_all)
        thread.shutdown(wait=False)
