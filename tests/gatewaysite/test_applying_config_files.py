"""Applying a file makes the database as it says: whole or not at all, and twice is once."""

from copy import deepcopy
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from audit.models import AuditEvent
from billing.models import Budget, Price, Quota
from gatewaysite.config_file import ConfigFileError
from proxy.models import ModelAlias, Provider
from proxy.snapshot_loader import load_key_by_digest, load_keys, load_snapshot
from tenants.config_version import current_config_version
from tenants.models import ApiKey, JwtIssuer, Tenant
from tenants.services import create_key, digest_of, revoke_key, rotate_key
from tests.gatewaysite.configuring import APP_SECRET, FULL, apply, minimal, tenant
from webhooks.models import Endpoint

pytestmark = pytest.mark.django_db

OLD, NEW = "the-old-secret-0123456789abc", "the-new-secret-0123456789abc"


def key_works(secret):
    key = load_key_by_digest(digest_of(secret))
    return key is not None and key.accepts(bytes.fromhex(digest_of(secret)), 1_900_000_000_000)


def test_every_field_arrives_in_its_column():
    apply(FULL)
    provider = Provider.objects.get(name="main")
    assert (provider.api_key, provider.headers, provider.timeout_total) == (
        "sk-provider-0123456789",
        {"X-Team": "platform"},
        4.5,
    )
    assert (provider.max_attempts, provider.breaker_close_after, provider.concurrency) == (5, 9, 12)
    alias = ModelAlias.objects.get(name="smart")
    assert (alias.strategy, alias.max_output_tokens, alias.cache_exact_ttl) == ("weighted", 64000, 60)
    assert list(alias.targets.values_list("provider__name", "model", "weight", "position")) == [
        ("main", "gpt-4o", 3, 0),
        ("spare", "echo", 1, 1),
    ]
    acme: Any = Tenant.objects.get(slug="acme")
    assert (acme.name, acme.tier.name, acme.priority, acme.unpriced) == ("Acme", "standard", "high", "allow")
    assert (acme.rpm, acme.algorithm, acme.allowed_models) == (600, "sliding_window", ["smart", "gpt-*"])
    assert acme.webhook_secret == "whsec_tenant"
    assert JwtIssuer.objects.get(tenant=acme).jwks_url == "https://id.example/jwks"
    endpoint = Endpoint.objects.get(tenant=acme)
    assert (endpoint.url, endpoint.events, endpoint.secret) == (
        "https://hooks.example/t?token=1",
        ["request.*"],
        "whsec_hook",
    )


def test_keys_quotas_and_budgets_arrive_with_their_owners():
    apply(FULL)
    key: Any = ApiKey.objects.get(name="app")
    assert (key.scopes, key.cidrs, key.rpm) == (["inference", "audit:read"], ["10.0.0.0/8", "::1/128"], 5)
    assert not key.may_speak_for_users
    assert key.expires_at.year == 2099
    assert set(Budget.objects.values_list("key__name", "scope", "per", "usd")) == {
        (None, "tenant", "month", Decimal(100)),
        (None, "user", "day", Decimal(1)),
        ("app", "key", "total", Decimal("0.000001")),
    }
    assert set(Quota.objects.values_list("tier__name", "tenant__slug", "key__name", "tokens")) == {
        ("standard", None, None, 5_000_000),
        (None, "acme", None, 1000),
        (None, None, "app", 10),
    }
    assert set(ApiKey.objects.values_list("name", flat=True)) == {
        "app",
        '=HYPERLINK("http://evil.test","x")',
        "ünïcode 東",
    }


def test_the_data_plane_takes_what_was_applied():
    apply(FULL)
    snapshot = load_snapshot()
    assert set(snapshot.providers) == {"main", "spare"}
    assert len(load_keys(None, 100)) == 3
    assert key_works(APP_SECRET)


def test_applying_twice_changes_nothing(django_assert_max_num_queries):
    apply(FULL)
    version, events = current_config_version(), AuditEvent.objects.count()
    with django_assert_max_num_queries(25):
        outcome = apply(FULL)
    assert (outcome.changes, outcome.version) == ([], None)
    assert current_config_version() == version
    assert AuditEvent.objects.count() == events


def test_one_application_is_one_version():
    assert apply(FULL).version == 1
    assert set(ApiKey.objects.values_list("changed_in", flat=True)) == {1}


def test_a_fault_anywhere_changes_nothing():
    apply(FULL)
    document = deepcopy(FULL)
    document["providers"][0]["region"] = "elsewhere"
    document["tenants"][1]["tier"] = "no-such-tier"
    with pytest.raises(ConfigFileError) as caught:
        apply(document)
    assert caught.value.faults == ("tenants[1].tier: there is no tier no-such-tier",)
    assert Provider.objects.get(name="main").region == "eu-1"
    assert current_config_version() == 1


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        (
            minimal(models=[{"name": "m", "targets": [{"provider": "nobody", "model": "x"}]}]),
            "models[0].targets[0].provider: there is no provider nobody",
        ),
        (
            minimal(prices=[{"provider": "nobody", "model": "x", "input": "1", "output": "1"}]),
            "prices[0].provider: there is no provider nobody",
        ),
        (tenant({"name": "new"}), "tenants[0].keys[0].secret: is required for a new key"),
        (tenant(jwt={"issuer": "i", "audience": "a"}), "tenants[0].jwt: needs a secret or a jwks_url"),
    ],
)
def test_references_and_secrets_must_be_there(document, fault):
    with pytest.raises(ConfigFileError) as caught:
        apply(document)
    assert caught.value.faults == (fault,)
    assert not Tenant.objects.exists()


def test_references_may_lie_in_the_database():
    apply(minimal(providers=[{"name": "p", "kind": "mock"}], tiers=[{"name": "standard"}]))
    apply(minimal(models=[{"name": "m", "targets": [{"provider": "p", "model": "x"}]}]))
    apply(tenant(tier="standard"))
    assert ModelAlias.objects.get(name="m").targets.get().provider.name == "p"


def test_a_dry_run_says_what_would_change_and_changes_nothing():
    outcome = apply(FULL, dry_run=True)
    assert "+ tenants/acme/keys/app" in [change.line() for change in outcome.changes]
    assert not Tenant.objects.exists()
    assert current_config_version() == 0
    assert not AuditEvent.objects.exists()


def test_what_an_entry_leaves_out_has_its_default_again_but_secrets_stay():
    apply(FULL)
    apply(
        minimal(providers=[{"name": "main", "kind": "openai"}], tenants=[{"slug": "acme", "keys": [{"name": "app"}]}])
    )
    provider, acme, key = (
        Provider.objects.get(name="main"),
        Tenant.objects.get(slug="acme"),
        ApiKey.objects.get(name="app"),
    )
    assert (provider.region, provider.max_attempts, provider.rpm) == ("", 3, None)
    assert provider.api_key == "sk-provider-0123456789"
    assert (acme.rpm, acme.tier, acme.unpriced, acme.webhook_secret) == (None, None, "refuse", "whsec_tenant")
    assert not Budget.objects.exists()
    assert list(Quota.objects.values_list("tier__name", flat=True)) == ["standard"]
    assert not JwtIssuer.objects.exists()
    assert (key.rpm, key.cidrs, key.expires_at) == (None, [], None)
    assert key_works(APP_SECRET)


def test_null_takes_a_providers_credential_away():
    apply(FULL)
    apply(minimal(providers=[{"name": "main", "kind": "openai", "api_key": None}]))
    assert Provider.objects.get(name="main").api_key == ""


def test_keys_and_receivers_that_the_file_does_not_name_stay():
    apply(FULL)
    apply(minimal(tenants=[{"slug": "acme", "keys": [{"name": "second", "secret": NEW}]}]))
    assert ApiKey.objects.filter(tenant__slug="acme", revoked_at=None).count() == 3
    assert Endpoint.objects.get().enabled


def test_targets_are_replaced_in_order():
    apply(FULL)
    document = deepcopy(FULL)
    document["models"][0]["targets"] = [
        {"provider": "spare", "model": "other"},
        {"provider": "main", "model": "gpt-4o"},
    ]
    apply(document)
    assert list(ModelAlias.objects.get().targets.values_list("model", "weight")) == [("other", 1), ("gpt-4o", 1)]


def test_a_price_with_another_date_is_another_price():
    apply(FULL)
    price = {"provider": "main", "model": "gpt-4o", "input": "2", "output": "8", "effective_from": "2026-06-01"}
    apply(minimal(prices=[price]))
    assert Price.objects.filter(provider="main").count() == 2


def test_a_changed_limit_of_a_key_makes_workers_load_it_again():
    apply(tenant({"name": "k", "secret": OLD, "budgets": [{"usd": "1"}]}))
    apply(tenant({"name": "k", "secret": OLD, "budgets": [{"usd": "2"}]}))
    (key,) = load_keys(1, 10)
    assert key.budgets[0].nano == 2_000_000_000


def test_a_new_secret_replaces_the_old_one_at_once():
    apply(tenant({"name": "k", "secret": OLD}))
    apply(tenant({"name": "k", "secret": NEW}))
    assert key_works(NEW)
    assert not key_works(OLD)
    assert AuditEvent.objects.filter(kind="key.rotated").count() == 1
    assert len(load_keys(1, 10)) == 1


def test_a_file_does_not_bring_back_a_secret_that_was_rotated_away():
    apply(tenant({"name": "k", "secret": OLD}))
    new = rotate_key(key=ApiKey.objects.get(), overlap=timedelta(0), actor="test")
    assert apply(tenant({"name": "k", "secret": OLD})).changes == []
    assert key_works(new.secret)
    assert not key_works(OLD)


def test_a_file_does_not_bring_back_a_revoked_key():
    apply(tenant({"name": "k", "secret": OLD}))
    revoke_key(key=ApiKey.objects.get(), actor="test")
    outcome = apply(tenant({"name": "k", "secret": OLD, "limits": {"rpm": 1}}))
    assert outcome.changes == []
    assert outcome.notes == ["tenants[0].keys[0]: tenants/acme/keys/k is revoked and stays revoked"]
    assert not key_works(OLD)


def test_a_secret_of_another_key_is_refused_and_not_shown():
    apply(tenant({"name": "k", "secret": OLD}))
    with pytest.raises(ConfigFileError) as caught:
        apply(minimal(tenants=[{"slug": "globex", "keys": [{"name": "k", "secret": OLD}]}]))
    assert caught.value.faults[0].startswith("tenants[0].keys[0].secret: is or was the secret of another key")
    assert OLD not in str(caught.value)


def test_no_issuer_speaks_for_two_tenants():
    jwt = {"issuer": "https://id.example", "audience": "a", "jwks_url": "https://id.example/jwks"}
    apply(tenant(jwt=jwt))
    with pytest.raises(ConfigFileError, match=r"tenants\[0\]\.jwt\.issuer"):
        apply(minimal(tenants=[{"slug": "globex", "jwt": jwt}]))


def test_the_record_has_each_tenants_changes_and_no_secret():
    apply(FULL)
    bodies = "".join(AuditEvent.objects.values_list("body", flat=True))
    for secret in ("sk-provider", APP_SECRET, "a-literal-secret", "whsec_", "token=1"):
        assert secret not in bodies
    assert set(AuditEvent.objects.filter(kind="config.applied").values_list("tenant", flat=True)) == {
        "",
        "acme",
        "globex",
    }
    assert AuditEvent.objects.filter(kind="key.created").count() == 3
    document = deepcopy(FULL)
    document["tenants"][0]["limits"]["rpm"] = 700
    apply(document)
    event = AuditEvent.objects.filter(kind="config.applied").latest("time")
    assert '"before":{"tenants/acme":{"rpm":600}}' in event.body
    assert '"after":{"tenants/acme":{"rpm":700}}' in event.body


def test_a_key_made_elsewhere_is_no_obstacle():
    apply(tenant())
    create_key(tenant=Tenant.objects.get(), name="by-hand", actor="test")
    apply(tenant({"name": "by-hand", "limits": {"rpm": 3}}))
    assert ApiKey.objects.get().rpm == 3
