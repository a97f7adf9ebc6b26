"""A watched file is applied at start and after each change; a broken one leaves the last good one in force."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gatewaysite.config_watch import apply_now, watch_config_file
from tenants.config_version import current_config_version
from tenants.models import Tenant
from tests.gatewaysite.configuring import minimal

pytestmark = pytest.mark.django_db(transaction=True)


def write(path: Path, document: object) -> None:
    """Replace the file in one step, as editors and deployments do."""
    fresh = path.with_suffix(".new")
    fresh.write_text(yaml.safe_dump(document) if isinstance(document, dict) else str(document))
    os.replace(fresh, path)


def watch(path: Path, *steps: Callable[[], None]) -> None:
    """Watch `path` here while the steps happen, a second apart, in another thread."""
    stop = threading.Event()

    def act() -> None:
        for step in steps:
            time.sleep(1.2)
            step()
        time.sleep(1.2)
        stop.set()

    actor = threading.Thread(target=act)
    actor.start()
    watch_config_file(path, stop)
    actor.join()


def outcome(path: Path, **options: bool) -> Any:
    return apply_now(path, **options)


def tenants(*slugs: str) -> dict[str, object]:
    return minimal(tenants=[{"slug": slug} for slug in slugs])


def slugs() -> list[str]:
    return list(Tenant.objects.values_list("slug", flat=True))


def test_a_file_is_applied_at_start_and_after_a_change(tmp_path):
    path = tmp_path / "tollbar.yaml"
    write(path, tenants("acme"))
    watch(path, lambda: write(path, tenants("acme", "globex")))
    assert slugs() == ["acme", "globex"]
    assert current_config_version() == 2


def test_a_broken_file_leaves_the_last_good_one_and_the_next_good_one_is_taken(tmp_path, caplog):
    path = tmp_path / "tollbar.yaml"
    write(path, tenants("acme"))
    watch(
        path,
        lambda: write(path, minimal(tenants=[{"slug": "acme", "foo": 1}])),
        path.unlink,
        lambda: write(path, tenants("globex")),
    )
    assert slugs() == ["acme", "globex"]
    assert [record.path for record in caplog.records if "not applied" in record.message] == [
        "tenants[0].foo: unknown field"
    ]


def test_a_file_that_another_worker_has_just_applied_is_left_to_it(tmp_path):
    path = tmp_path / "tollbar.yaml"
    write(path, tenants("acme"))
    assert outcome(path).version == 1
    Tenant.objects.update(name="changed since, in the admin")
    assert outcome(path, unless_applied=True).skipped
    assert Tenant.objects.get().name == "changed since, in the admin"
    assert outcome(path).version == 2
    assert Tenant.objects.get().name == "acme"
