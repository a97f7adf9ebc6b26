"""Keys are made with one shown secret, of which only a digest is kept."""

import pytest
from django.core.exceptions import ValidationError

from audit.models import AuditEvent
from tenants.config_version import current_config_version
from tenants.keys import generate, new_id, parse
from tenants.models import ApiKey, ApiKeySecret
from tenants.services import create_key, digest_of, update_key


def test_only_the_digest_of_a_secret_is_stored(app):
    row = ApiKeySecret.objects.get(key=app.key)
    assert row.digest == digest_of(app.secret)
    assert row.last4 == app.secret[-4:]
    assert app.secret not in repr(app)
    assert not AuditEvent.objects.filter(body__contains=app.secret).exists()


def test_a_key_carries_its_id_in_its_secret(app):
    assert parse(app.secret) == ("live", app.key.id)


def test_a_new_key_raises_the_version_and_belongs_to_it(app):
    assert app.key.changed_in == current_config_version() > 0


def test_the_record_says_who_made_a_key(app):
    event = AuditEvent.objects.get(kind="key.created")
    assert event.tenant == "acme"
    assert event.key_id == app.key.id
    assert '"actor":"test"' in event.body


def test_an_imported_key_of_ours_keeps_its_id(acme):
    secret = generate("0123456789ab", "live")
    assert create_key(tenant=acme, name="moved", secret=secret, actor="test").key.id == "0123456789ab"


def test_a_secret_belongs_to_one_key(acme):
    create_key(tenant=acme, name="first", secret="an-imported-secret-of-24", actor="test")
    with pytest.raises(ValidationError, match="in use"):
        create_key(tenant=acme, name="second", secret="an-imported-secret-of-24", actor="test")
    assert list(ApiKey.objects.values_list("name", flat=True)) == ["first"]


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "app"},
        {"name": "a\u202eb"},
        {"name": "x" * 101},
        {"name": "k", "scopes": ["root"]},
        {"name": "k", "scopes": []},
        {"name": "k", "scopes": "inference"},
        {"name": "k", "cidrs": ["10.0.0.1/8"]},
        {"name": "k", "cidrs": [7]},
        {"name": "k", "allowed_models": "*"},
        {"name": "k", "secret": "short"},
        {"name": "k", "rpm": 0},
    ],
)
def test_a_key_that_cannot_be_is_refused_and_nothing_is_kept(acme, app, fields):
    before = current_config_version()
    with pytest.raises(ValidationError):
        create_key(tenant=acme, actor="test", **fields)
    assert ApiKey.objects.count() == 1
    assert current_config_version() == before


def test_setting_what_is_set_already_changes_nothing(app):
    before = current_config_version()
    update_key(key=app.key, changes={"name": "app", "scopes": ["inference"]}, actor="test")
    assert current_config_version() == before
    update_key(key=app.key, changes={"rpm": 5}, actor="test")
    assert current_config_version() == before + 1
    assert new_id() != app.key.id
