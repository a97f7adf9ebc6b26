"""GET /healthz (the process answers, no I/O) and GET /readyz (it can do its work)."""

from __future__ import annotations

import asyncio
import logging

from django.db import Error as DatabaseError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from proxy.errors import GatewayError, StoreUnavailable
from proxy.plane import DataPlane
from proxy.runtime import ensure_started
from proxy.v1_database import read

logger = logging.getLogger(__name__)

#: A check that takes longer has failed (seconds).
CHECK_SECONDS = 2.0

OK, FAILED, UNKNOWN = "ok", "failed", "unknown"


class Migrations:
    """Whether all migrations are applied. They do not come undone while a process runs: a yes is kept."""

    applied = False

    @classmethod
    def check(cls) -> bool:
        if not cls.applied:
            executor = MigrationExecutor(connection)
            cls.applied = not executor.migration_plan(executor.loader.graph.leaf_nodes())
        return cls.applied


@csrf_exempt  # so that another verb is told 405, not something about cookies
@require_safe
async def healthz(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"status": "ok"})


@csrf_exempt
@require_safe
async def readyz(request: HttpRequest) -> HttpResponse:
    """503 names the checks that failed, and nothing about the installation."""
    plane = await ensure_started()
    store, (database, migrations) = await asyncio.gather(_store(plane), _database())
    checks = {
        "database": database,
        "migrations": migrations,
        "store": store,
        "accepting": FAILED if plane.draining else OK,
    }
    ready = all(result == OK for result in checks.values())
    return JsonResponse({"status": "ready" if ready else "not ready", "checks": checks}, status=200 if ready else 503)


async def _store(plane: DataPlane) -> str:
    try:
        await plane.store.command("PING")
    except StoreUnavailable:
        return FAILED
    return OK


async def _database() -> tuple[str, str]:
    """The database's own check, and whether its tables are those of this code."""
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            await read(_select_one)
            return OK, OK if await read(Migrations.check) else FAILED
    except (DatabaseError, GatewayError, TimeoutError) as error:
        logger.warning("the database does not answer", extra={"why": type(error).__name__})
        return FAILED, UNKNOWN


def _select_one() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
