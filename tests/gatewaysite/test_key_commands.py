"""Keys on the command line: data on stdout, words on stderr, a secret shown once."""

import io
import json

import pytest
from django.core.management import CommandError, call_command

from tenants.keys import parse
from tenants.models import ApiKey, ApiKeySecret
from tenants.services import create_tenant

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme():
    return create_tenant(slug="acme", name="Acme", actor="test")


def run(*arguments):
    """What the command writes to stdout, and what to stderr."""
    out, err = io.StringIO(), io.StringIO()
    call_command(*arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def id_in(secret: str) -> str:
    parsed = parse(secret)
    assert parsed is not None
    return parsed.id


def run_json(*arguments):
    return json.loads(run(*arguments, "--json")[0])


def test_create_key_prints_the_secret_and_nothing_else(acme):
    out, err = run("create_key", "acme", "--name", "app")
    assert parse(out.strip()) == ("live", ApiKey.objects.get().id)
    assert out.strip() not in err


def test_create_key_prints_json(acme):
    made = run_json("create_key", "acme", "--name", "app", "--expires", "90d", "--scopes", "inference,audit:read")
    assert set(made) == {"id", "secret", "tenant", "name", "expires_at"}
    assert (made["tenant"], made["name"]) == ("acme", "app")
    key = ApiKey.objects.get(id=made["id"])
    assert key.scopes == ["inference", "audit:read"]
    assert made["expires_at"].endswith("Z")


def test_a_dry_run_makes_nothing_and_still_refuses(acme):
    made = run_json("create_key", "acme", "--name", "app", "--dry-run")
    assert (made["id"], made["secret"]) == (None, None)
    assert not ApiKey.objects.exists()
    with pytest.raises(CommandError, match="Name at least"):
        run("create_key", "acme", "--name", "app", "--scopes", "root", "--dry-run")


@pytest.mark.parametrize("arguments", [("nobody", "--name", "x"), ("acme", "--name", "a\u202eb")])
def test_what_cannot_be_made_ends_with_one(acme, arguments):
    with pytest.raises(CommandError) as caught:
        run("create_key", *arguments)
    assert caught.value.returncode == 1


def test_list_keys_shows_everything_but_secrets(acme):
    made = run_json("create_key", "acme", "--name", "app")
    gone = run_json("create_key", "acme", "--name", "gone")
    run("revoke_keys", "--key", gone["id"])
    rows = {row["id"]: row for row in run_json("list_keys")}
    assert rows[made["id"]]["state"] == "active"
    assert rows[gone["id"]]["state"] == "revoked"
    assert rows[made["id"]]["last4"] == made["secret"][-4:]
    table, _ = run("list_keys", "--tenant", "acme")
    assert made["id"] in table
    assert made["secret"] not in table + json.dumps(list(rows.values()))


def test_rotate_keys_keeps_the_id_and_prints_the_new_secret(acme):
    made = run_json("create_key", "acme", "--name", "app")
    (rotated,) = run_json("rotate_keys", "--key", made["id"], "--overlap", "0h")
    assert set(rotated) == {"id", "secret", "overlap_ends_at"}
    assert rotated["id"] == made["id"] == id_in(rotated["secret"])
    assert rotated["secret"] != made["secret"]


def test_rotate_keys_by_tenant_and_by_age(acme):
    run_json("create_key", "acme", "--name", "one")
    run_json("create_key", "acme", "--name", "two")
    assert len(run_json("rotate_keys", "--tenant", "acme", "--dry-run")) == 2
    assert ApiKeySecret.objects.count() == 2
    assert run_json("rotate_keys", "--older-than", "90d") == []
    assert len(run_json("rotate_keys", "--older-than", "0s")) == 2


def test_revoke_keys_names_those_it_revoked(acme):
    made = run_json("create_key", "acme", "--name", "app")
    assert run("revoke_keys", "--key", made["id"], "--dry-run")[0].split() == [made["id"]]
    assert ApiKey.objects.get().revoked_at is None
    assert run("revoke_keys", "--tenant", "acme")[0].split() == [made["id"]]
    assert run("revoke_keys", "--tenant", "acme")[0].split() == []
    with pytest.raises(CommandError, match="no key"):
        run("revoke_keys", "--key", "nobody")
