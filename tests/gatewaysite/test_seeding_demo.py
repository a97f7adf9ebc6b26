"""The demo is made once, and then left as people changed it."""

import io
import json
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command

from gatewaysite.banner import banner
from proxy.models import Provider
from proxy.snapshot_loader import load_key_by_digest, load_snapshot
from tenants.models import ApiKey, Tenant
from tenants.services import digest_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def demo(settings, tmp_path):
    settings.DEMO, settings.STATE_DIR = True, tmp_path
    return tmp_path / "demo-secrets.json"


def seed(*options):
    out = io.StringIO()
    call_command("seed_demo", *options, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def test_it_makes_a_key_that_works_and_an_admin_who_can_log_in(demo):
    seed()
    secrets = json.loads(demo.read_text())
    assert secrets["DEMO_KEY"].startswith("tb_test_")
    key: Any = load_key_by_digest(digest_of(secrets["DEMO_KEY"]))
    assert key.id == secrets["DEMO_KEY"].split("_")[2]
    admin = get_user_model().objects.get(username="admin")
    assert admin.is_superuser
    assert admin.check_password(secrets["ADMIN_PASSWORD"])
    targets = load_snapshot().models["demo-chat"].targets
    assert [target.model for target in targets] == ["fail-500", "echo"]
    assert all(target.prices for target in targets)


def test_the_second_time_changes_nothing(demo):
    seed()
    before = demo.read_text()
    Tenant.objects.filter(slug="demo").update(name="Renamed")
    Provider.objects.filter(name="mock-primary").update(max_attempts=7)
    assert seed() == ""
    assert demo.read_text() == before
    assert ApiKey.objects.count() == 2
    assert Tenant.objects.get(slug="demo").name == "Renamed"


def test_a_new_database_gets_the_same_key_and_password(demo):
    seed()
    before = demo.read_text()
    get_user_model().objects.all().delete()
    ApiKey.objects.all().delete()
    seed()
    assert demo.read_text() == before
    assert load_key_by_digest(digest_of(json.loads(before)["DEMO_KEY"])) is not None


def test_a_dry_run_makes_nothing(demo):
    assert "+ tenants/demo" in seed("--dry-run")
    assert not Tenant.objects.exists()
    assert not demo.exists()


def test_it_is_for_the_demo_only(settings):
    settings.DEMO = False
    with pytest.raises(CommandError, match="DEMO"):
        seed()


def test_the_banner_shows_login_key_and_call(demo):
    seed()
    secrets = json.loads(demo.read_text())
    text = banner("0.0.0.0", 8123)
    assert "http://127.0.0.1:8123/admin/" in text
    assert secrets["ADMIN_PASSWORD"] in text
    assert f"Authorization: Bearer {secrets['DEMO_KEY']}" in text


def test_the_banner_of_any_other_installation_shows_no_secret(settings, demo):
    seed()
    settings.DEMO = False
    text = banner("::1", 8000)
    assert "http://[::1]:8000/admin/" in text
    assert "tb_" not in text
    assert "password" not in text
