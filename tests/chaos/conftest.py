"""Several workers over real Redis: what can only go wrong between processes."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def shared_redis() -> str:
    """Several workers need a store they share; the embedded one lives in a single process."""
    url = os.environ["REDIS_URL"]
    if not url:
        pytest.skip("needs TEST_REDIS_URL: several workers share one store")
    return url


@pytest.fixture
def shared_database() -> str:
    """PostgreSQL where the suite has it, else a file."""
    url = os.environ["DATABASE_URL"]
    return url if url.startswith("postgres") else ""
