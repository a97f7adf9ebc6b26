"""GET /healthz and GET /readyz."""

import pytest
from django.db import connection

from gatewaysite.health import Migrations
from proxy import runtime

READY = {"database": "ok", "migrations": "ok", "store": "ok", "accepting": "ok"}


@pytest.fixture(autouse=True)
def _unknown_migrations():
    Migrations.applied = False


async def test_healthz_needs_nothing(gateway):
    answer = await gateway.ask("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_readyz_says_ready_when_all_is_there(gateway):
    answer = await gateway.ask("/readyz")
    assert answer.status_code == 200
    assert answer.json() == {"status": "ready", "checks": READY}


async def test_readyz_answers_head(gateway):
    answer = await gateway.ask("/readyz", method="HEAD")
    assert (answer.status_code, answer.content) == (200, b"")


async def test_a_process_that_shuts_down_is_not_ready_but_alive(gateway):
    await gateway.ask("/readyz")
    runtime.current().plane.draining = True
    answer = await gateway.ask("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"status": "not ready", "checks": READY | {"accepting": "failed"}}
    assert (await gateway.ask("/healthz")).status_code == 200


async def test_without_the_store_it_is_not_ready(gateway_without_store):
    answer = await gateway_without_store.ask("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"] == READY | {"store": "failed"}
    assert (await gateway_without_store.ask("/healthz")).status_code == 200


@pytest.fixture
def one_migration_missing(cast):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'webhooks'")
    yield
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('webhooks', '0001_initial', CURRENT_TIMESTAMP)"
        )


async def test_a_migration_that_is_not_applied_is_told(one_migration_missing, gateway):
    answer = await gateway.ask("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"] == READY | {"migrations": "failed"}
