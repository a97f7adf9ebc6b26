"""The export is a file that changes nothing where it was made, and holds no secret."""

import pytest
import yaml

from gatewaysite.config_export import exported_config
from tests.gatewaysite.configuring import APP_SECRET, FULL, apply, minimal

pytestmark = pytest.mark.django_db


def exported():
    """As it comes back from a file."""
    return yaml.safe_load(yaml.safe_dump(exported_config(), allow_unicode=True))


def test_applied_again_it_changes_nothing_even_when_pruning():
    apply(FULL)
    assert apply(exported(), prune=True).changes == []


def test_it_says_all_that_the_file_said_but_the_secrets():
    apply(FULL)
    export = exported()
    original = {tenant["slug"]: tenant for tenant in FULL["tenants"]}
    for tenant in export["tenants"]:
        for name in ("tier", "priority", "models", "limits", "quotas", "jwt"):
            if name in original[tenant["slug"]]:
                assert tenant[name] == original[tenant["slug"]][name]
    provider = next(entry for entry in export["providers"] if entry["name"] == "main")
    assert provider == {name: value for name, value in FULL["providers"][0].items() if name != "api_key"}
    assert export["models"][0]["cache"] == FULL["models"][0]["cache"]


def test_no_secret_is_in_it():
    apply(FULL)
    text = yaml.safe_dump(exported_config())
    for secret in ("sk-provider", APP_SECRET, "a-literal-secret", "another-literal", "whsec_"):
        assert secret not in text


def test_a_tenant_that_may_call_nothing_stays_so():
    apply(minimal(tenants=[{"slug": "closed", "models": []}]))
    assert exported()["tenants"][0]["models"] == []
