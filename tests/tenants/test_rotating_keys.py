"""A rotation gives a key a new secret; for the overlap the old one works too."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from proxy.snapshot_loader import load_key_by_id
from tenants import keys
from tenants.models import ApiKeySecret
from tenants.services import KeyRefused, revoke_key, rotate_key


def works(issued, secret, later=timedelta(0)):
    """Whether the data plane takes `secret`, `later` from now."""
    at = int((timezone.now() + later).timestamp() * 1000)
    spec: Any = load_key_by_id(issued.key.id)
    return spec.accepts(keys.digest(settings.KEY_PEPPER.encode(), secret), at)


def test_in_the_overlap_both_secrets_work_and_after_it_the_new_one(app):
    new = rotate_key(key=app.key, overlap=timedelta(hours=24), actor="test")
    assert new.key.id == app.key.id
    assert works(app, app.secret)
    assert works(app, new.secret)
    assert not works(app, app.secret, later=timedelta(hours=24, seconds=1))
    assert works(app, new.secret, later=timedelta(hours=24, seconds=1))


def test_without_overlap_the_old_secret_ends_now(app):
    new = rotate_key(key=app.key, overlap=timedelta(0), actor="test")
    assert not works(app, app.secret)
    assert works(app, new.secret)


def test_at_most_three_secrets_live(app):
    issued = [app, *(rotate_key(key=app.key, overlap=timedelta(days=7), actor="test") for _ in range(4))]
    assert [works(app, each.secret) for each in issued] == [False, False, True, True, True]


def test_a_later_rotation_does_not_lengthen_an_earlier_overlap(app):
    first = rotate_key(key=app.key, overlap=timedelta(hours=1), actor="test")
    rotate_key(key=app.key, overlap=timedelta(days=7), actor="test")
    assert not works(app, app.secret, later=timedelta(hours=2))
    assert works(app, first.secret, later=timedelta(hours=2))


def test_ending_now_ends_earlier_overlaps_too(app):
    first = rotate_key(key=app.key, overlap=timedelta(days=1), actor="test")
    new = rotate_key(key=app.key, overlap=timedelta(0), actor="test")
    assert not works(app, app.secret)
    assert not works(app, first.secret)
    assert works(app, new.secret)


def test_a_revoked_key_is_not_rotated(app):
    revoke_key(key=app.key, actor="test")
    with pytest.raises(KeyRefused, match="revoked"):
        rotate_key(key=app.key, overlap=timedelta(hours=1), actor="test")
    assert ApiKeySecret.objects.count() == 1


def test_time_does_not_run_backwards(app):
    with pytest.raises(KeyRefused, match="negative"):
        rotate_key(key=app.key, overlap=timedelta(hours=-1), actor="test")
