"""The snapshot is what the database says, in the data plane's terms."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from billing.models import Budget, Price, Quota
from proxy.canonical import Usage
from proxy.models import ModelAlias, Provider, Target
from proxy.snapshot import matches
from proxy.snapshot_loader import (
    ATTO_PER_USD,
    _atto_per_token,
    load_key_by_digest,
    load_key_by_id,
    load_keys,
    load_snapshot,
)
from tenants.models import ApiKey, JwtIssuer, Tenant, Tier
from tenants.services import create_key, create_tenant, digest_of, revoke_key, suspend_tenant

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme() -> Tenant:
    return create_tenant(slug="acme", name="Acme", actor="test")


def key_of(key_id: str) -> Any:
    return load_key_by_id(key_id)


def route(**provider: Any) -> Provider:
    """One alias to one provider's model."""
    row = Provider.objects.create(**{"name": "p", "kind": "openai", "api_key": "sk-1", **provider})
    alias = ModelAlias.objects.create(name="smart", max_output_tokens=100)
    Target.objects.create(alias=alias, provider=row, model="gpt-4o")
    return row


def price(**fields: Any) -> Price:
    row: dict[str, Any] = {
        "provider": "p",
        "model": "gpt-4o",
        "input": "2.50",
        "output": "10",
        "effective_from": date(2025, 1, 1),
    }
    return Price.objects.create(**{**row, **fields})


def test_a_target_carries_what_an_adapter_needs():
    route(base_url="https://api.example/v1/", headers={"X-A": "b"}, timeout_total=9, rpm=3, region="eu")
    target = load_snapshot().models["smart"].targets[0]
    assert target.adapter_target.base_url == "https://api.example/v1"
    assert (target.adapter_target.secret, target.adapter_target.headers) == ("sk-1", {"X-A": "b"})
    assert (target.provider.total, target.provider.limits.rpm, target.provider.region) == (9, 3, "eu")


def test_a_provider_without_an_address_has_its_kinds():
    route()
    Provider.objects.create(name="m", kind="mock")
    providers = load_snapshot().providers
    assert providers["p"].base_url == "https://api.openai.com/v1"
    assert providers["m"].base_url == "mock://"


def test_what_cannot_be_called_is_left_out_of_its_alias():
    row = route()
    alias = ModelAlias.objects.get()
    unusable: list[dict[str, Any]] = [
        {"kind": "openai_compatible"},
        {"kind": "no-such-kind"},
        {"kind": "openai", "enabled": False},
    ]
    for number, fields in enumerate(unusable, start=1):
        other = Provider.objects.create(name=f"other-{number}", **fields)
        Target.objects.create(alias=alias, provider=other, model="x", position=number)
    snapshot = load_snapshot()
    assert list(snapshot.providers) == [row.name]
    assert [target.provider.name for target in snapshot.models["smart"].targets] == ["p"]


def test_targets_keep_their_order():
    row = route()
    alias = ModelAlias.objects.get()
    Target.objects.create(alias=alias, provider=row, model="last", position=7)
    Target.objects.filter(model="gpt-4o").update(position=9)
    assert [target.model for target in load_snapshot().models["smart"].targets] == ["last", "gpt-4o"]


def test_the_newest_price_that_holds_already_is_taken():
    route()
    price(input="1")
    price(input="2", effective_from=date(2026, 1, 1))
    price(input="3", effective_from=date(2099, 1, 1))
    target = load_snapshot().models["smart"].targets[0]

    def at(moment: str) -> Any:
        return target.price_at(int(datetime.fromisoformat(moment).timestamp() * 1000))

    assert at("2024-12-31T23:59:59Z") is None
    assert at("2025-01-01T00:00:00Z").input == ATTO_PER_USD // 10**6
    assert at("2026-01-01T00:00:00Z").input == 2 * ATTO_PER_USD // 10**6
    assert at("2026-01-01T00:00:00Z").label == "p/gpt-4o@2026-01-01"


def test_cache_rates_default_to_the_rate_before_them():
    route()
    price(input="3", cache_read="0.3", cache_write="3.75")
    (full,) = load_snapshot().models["smart"].targets[0].prices
    assert full.cache_write_1h == full.cache_write == 3_750_000_000_000
    Price.objects.update(cache_read=None, cache_write=None)
    (bare,) = load_snapshot().models["smart"].targets[0].prices
    assert bare.cache_read == bare.cache_write == bare.cache_write_1h == bare.input
    usage = Usage(input_tokens=1000, output_tokens=0, cache_read_tokens=400, cache_write_tokens=100)
    assert bare.cost_nano(usage) == 3_000_000


@given(
    st.decimals(min_value=0, max_value=100_000, places=9, allow_nan=False),
    st.integers(min_value=1, max_value=10**9),
)
def test_a_rate_is_exact_or_the_next_atto_up(usd, per):
    rate = _atto_per_token(usd, per)
    assert 0 <= rate * per - int(usd * ATTO_PER_USD) < per


def test_a_tenants_own_limits_win_one_by_one():
    tier = Tier.objects.create(name="standard", rpm=200, tpm=1000, user_rpm=20, algorithm="sliding_window")
    create_tenant(slug="acme", name="Acme", actor="test", tier=tier, rpm=600)
    create_tenant(slug="globex", name="Globex", actor="test", tier=tier)
    Quota.objects.create(tier=tier, tokens=100, per="day")
    Quota.objects.create(tier=tier, tokens=900, per="month")
    Quota.objects.create(tenant=Tenant.objects.get(slug="acme"), tokens=5, per="day")
    acme, globex = (tenant for _, tenant in sorted(load_snapshot().tenants.items()))
    assert (acme.limits.rpm, acme.limits.tpm, acme.limits.user_rpm) == (600, 1000, 20)
    assert acme.limits.algorithm == "token_bucket"
    assert (globex.limits.rpm, globex.limits.algorithm) == (200, "sliding_window")
    assert {(quota.per, quota.tokens) for quota in acme.quotas} == {("day", 5), ("month", 900)}
    assert {(quota.per, quota.tokens) for quota in globex.quotas} == {("day", 100), ("month", 900)}


def test_budgets_are_nano_dollars_with_their_owner(acme):
    key = create_key(tenant=acme, name="k", actor="test").key
    Budget.objects.create(tenant=acme, usd=Decimal("0.000001"), per="day", warn_at=[95, 80])
    Budget.objects.create(tenant=acme, key=key, usd=Decimal("2.5"), per="total", scope="key")
    (of_tenant,) = load_snapshot().tenants[acme.pk].budgets
    assert (of_tenant.nano, of_tenant.per, of_tenant.warn_at) == (1000, "day", (80, 95))
    (of_key,) = key_of(key.id).budgets
    assert (of_key.nano, of_key.scope) == (2_500_000_000, "key")


def test_tenants_are_found_by_their_issuer_and_know_whether_they_are_active(acme):
    JwtIssuer.objects.create(tenant=acme, issuer="https://id.example", audience="a", secret="s" * 32)
    suspend_tenant(tenant=acme, actor="test")
    snapshot: Any = load_snapshot()
    assert snapshot.tenants_by_issuer == {"https://id.example": acme.pk}
    assert not snapshot.tenants[acme.pk].active
    assert snapshot.tenants[acme.pk].jwt.algorithms == ("HS256",)


def test_a_key_is_found_by_its_secret_and_by_its_id(acme):
    issued = create_key(
        tenant=acme,
        name="k",
        actor="test",
        allowed_models=["gpt-*"],
        cidrs=["10.0.0.0/8"],
        scopes=["audit:read"],
        rpm=7,
    )
    key: Any = load_key_by_digest(digest_of(issued.secret))
    assert key == load_key_by_id(issued.key.id)
    assert (key.id, key.tenant_id, key.limits.rpm, key.scopes) == (issued.key.id, acme.pk, 7, frozenset({"audit:read"}))
    assert matches(key.models, "gpt-4o")
    assert str(key.cidrs[0]) == "10.0.0.0/8"
    assert load_key_by_digest(digest_of("nobody's")) is None
    assert load_key_by_id("nobody") is None


def test_a_network_that_cannot_be_read_lets_nobody_in(acme):
    issued = create_key(tenant=acme, name="k", actor="test")
    ApiKey.objects.update(cidrs=["nonsense"])
    (network,) = key_of(issued.key.id).cidrs
    assert str(network) == "::/128"


def test_the_first_load_has_live_keys_and_later_ones_what_changed(acme):
    first, second, third = (create_key(tenant=acme, name=name, actor="test").key for name in "abc")
    ApiKey.objects.filter(pk=third.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    before = load_snapshot().version
    assert {key.id for key in load_keys(None, 10)} == {first.pk, second.pk}
    assert len(load_keys(None, 1)) == 1
    assert load_keys(before, 10) == []
    revoke_key(key=first, actor="test")
    assert [(key.id, key.revoked) for key in load_keys(before, 10)] == [(first.pk, True)]


def test_loading_takes_a_few_queries_however_much_there_is(acme, django_assert_max_num_queries):
    route()
    for number in range(20):
        create_key(tenant=acme, name=f"k{number}", actor="test")
        price(effective_from=date(2025, 2, 1) + timedelta(days=number))
        Provider.objects.create(name=f"x{number}", kind="mock")
    with django_assert_max_num_queries(10):
        load_snapshot()
    with django_assert_max_num_queries(5):
        assert len(load_keys(None, 100)) == 20
