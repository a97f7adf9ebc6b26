"""What every test may use. The settings come from tests/environment.py."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests import environment

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def project_root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def state_dir() -> Path:
    """A folder of this run, removed after it."""
    return environment.STATE


@pytest.fixture(scope="session")
def real_redis_url() -> str:
    """Address of the real Redis, or empty when the suite runs on the embedded store."""
    return os.environ["REDIS_URL"]


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """SQLite in a file, as in production: threads wait for each other's locks, which in memory fail at once."""
    from django.conf import settings  # noqa: PLC0415

    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        name = f"test{os.environ.get('PYTEST_XDIST_WORKER', '')}.sqlite3"
        database.setdefault("TEST", {})["NAME"] = str(environment.STATE / name)


@pytest.fixture(autouse=True, scope="session")
def _empty_redis(real_redis_url: str) -> Iterator[None]:
    """Begin and end with an empty Redis database; TEST_REDIS_URL names one that belongs to the tests."""
    if not real_redis_url or "PYTEST_XDIST_WORKER" in os.environ:
        yield
        return
    with redis.Redis.from_url(real_redis_url) as connection:
        connection.flushdb()
        yield
        connection.flushdb()


@pytest.fixture(autouse=True, scope="session")
def _append_only_tables_can_be_emptied() -> Iterator[None]:
    """Django empties all tables after a test with transactions: only for that the triggers give way."""
    from django.db.backends.base.operations import BaseDatabaseOperations  # noqa: PLC0415

    from audit.append_only import PROTECTED, create_statements, drop_statements  # noqa: PLC0415

    empty = BaseDatabaseOperations.execute_sql_flush

    def empty_protected_too(operations: BaseDatabaseOperations, statements: list[str]) -> None:
        vendor = operations.connection.vendor
        dropping = [sql for table in PROTECTED for sql in drop_statements(vendor, table)]
        creating = [sql for table in PROTECTED for sql in create_statements(vendor, table)]
        empty(operations, dropping)
        empty(operations, statements)
        empty(operations, creating)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseDatabaseOperations, "execute_sql_flush", empty_protected_too)
        yield


@pytest.fixture
def process_environment(tmp_path: Path) -> dict[str, str]:
    """Settings for a process of the product that a test starts: its own SQLite file, the suite's Redis."""
    inherited = {name: os.environ[name] for name in ("HOME", "LANG", "PATH", "TMPDIR", "TZ") if name in os.environ}
    own = {
        "DATABASE_URL": f"sqlite:///{tmp_path / 'tollbar.sqlite3'}",
        "STATE_DIR": str(tmp_path),
        "PYTHONUNBUFFERED": "1",
    }
    return inherited | environment.settings_for_tests() | own


@pytest.fixture
def manage(process_environment: dict[str, str]):
    """Run `manage.py` as a user does: manage("create_key", "acme", "--name", "app") -> the finished process."""

    def run(*arguments: str, timeout: float = 60, **changes: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=process_environment | changes,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    return run


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """A thread that still has its connection when the run ends must not keep the test database from being dropped."""
    yield
    from django.db import connection  # noqa: PLC0415

    if connection.vendor == "postgresql":
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
