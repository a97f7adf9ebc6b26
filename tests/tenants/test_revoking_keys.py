"""A revoked key is refused everywhere, whether or not Redis can be told."""

from typing import Any

import pytest
import redis

from audit.models import AuditEvent
from proxy.redis_keys import revoked_key
from proxy.snapshot_loader import load_key_by_id, load_keys
from tenants.config_version import current_config_version
from tenants.revocation import mark_revoked, revocation_marker
from tenants.services import create_key, revoke_key, revoke_keys


def test_a_revoked_key_is_among_what_workers_load_again(app):
    before = current_config_version()
    revoke_key(key=app.key, actor="test", reason="leaked")
    assert [key.revoked for key in load_keys(before, 10)] == [True]
    assert load_keys(None, 10) == []
    loaded: Any = load_key_by_id(app.key.id)
    assert loaded.revoked


def test_the_record_says_why(app):
    revoke_key(key=app.key, actor="admin:alice", reason="leaked")
    event = AuditEvent.objects.get(kind="key.revoked")
    assert '"reason":"leaked"' in event.body
    assert '"actor":"admin:alice"' in event.body


def test_revoking_twice_changes_nothing_more(app):
    revoke_key(key=app.key, actor="test")
    version = current_config_version()
    assert revoke_keys(keys=[app.key], actor="test") == []
    assert current_config_version() == version


def test_many_keys_are_one_change(acme, app):
    other = create_key(tenant=acme, name="other", actor="test")
    before = current_config_version()
    assert len(revoke_keys(keys=[app.key, other.key], actor="test")) == 2
    assert current_config_version() == before + 1


def test_the_marker_has_the_name_that_the_limiter_reads():
    assert revocation_marker(7, "abc") == revoked_key(7, "abc")


def test_the_limiter_is_told_after_the_commit(app, real_redis_url, django_capture_on_commit_callbacks):
    if not real_redis_url:
        pytest.skip("the embedded store is told by the configuration's version")
    marker = revocation_marker(app.key.tenant.shard, app.key.id)
    with redis.Redis.from_url(real_redis_url) as connection:
        with django_capture_on_commit_callbacks(execute=True):
            revoke_key(key=app.key, actor="test")
            assert connection.get(marker) is None
        assert connection.get(marker) == b"1"
        assert 86_000 < connection.ttl(marker) <= 86_400


def test_a_redis_that_is_away_does_not_fail_a_revocation(app, settings, django_capture_on_commit_callbacks):
    settings.REDIS_URL = "redis://127.0.0.1:9/0"
    with django_capture_on_commit_callbacks(execute=True):
        assert revoke_key(key=app.key, actor="test").revoked_at is not None
    assert mark_revoked([(0, "abc")]) is False
