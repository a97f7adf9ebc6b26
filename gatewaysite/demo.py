"""The demo installation: mock providers, models that fail over, two tenants, an admin. Made once, then left alone."""

from __future__ import annotations

import secrets
from typing import Any

import msgspec
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction

from billing.models import Price
from gatewaysite.banner import ADMIN_LOGIN, DEMO_MODEL
from gatewaysite.config_apply import Outcome, apply_config
from gatewaysite.config_file import ReadFile
from gatewaysite.config_schema import ConfigFile
from gatewaysite.config_values import SecretSource, converter
from gatewaysite.demo_secrets import demo_secrets, remember_demo_secret
from proxy.models import ModelAlias, Provider
from tenants.keys import TEST, generate, new_id
from tenants.models import ApiKey, Tenant, Tier
from tenants.services import create_key

ACTOR = "seed-demo"
PRICES = {"echo": ("0.50", "1.50"), "slow": ("0.50", "1.50"), "flaky": ("0.25", "0.75"), "fail-500": ("2.50", "10.00")}
#: Tenant -> (key's name, under which name its secret is remembered).
KEYS = {"demo": ("demo", "DEMO_KEY"), "research": ("notebooks", "RESEARCH_KEY")}


def demo_config() -> dict[str, Any]:
    """The demo as a configuration file, without keys."""
    quick = {"max_attempts": 1, "backoff": 0.1, "max_backoff": 1}
    return {
        "version": 1,
        "providers": [
            {"name": "mock-primary", "kind": "mock", "retries": quick},
            {"name": "mock-backup", "kind": "mock"},
        ],
        "models": [
            _alias("echo", ("mock-backup", "echo")),
            _alias("slow", ("mock-backup", "slow")),
            _alias("flaky", ("mock-backup", "flaky")),
            _alias(DEMO_MODEL, ("mock-primary", "fail-500"), ("mock-backup", "echo")),
        ],
        "prices": [
            {"provider": provider, "model": model, "input": price[0], "output": price[1]}
            for provider in ("mock-primary", "mock-backup")
            for model, price in PRICES.items()
        ],
        "tiers": [{"name": "standard", "limits": {"rpm": 600, "user_rpm": 60}}],
        "tenants": [
            {
                "slug": "demo",
                "name": "Demo",
                "tier": "standard",
                "limits": {"concurrency": 50},
                "budgets": [{"usd": "10.00", "per": "month"}],
            },
            {
                "slug": "research",
                "name": "Research",
                "tier": "standard",
                "priority": "low",
                "models": ["echo", "slow"],
                "quotas": [{"tokens": 100_000, "per": "day"}],
                "budgets": [{"usd": "0.50", "per": "day"}],
            },
        ],
    }


def seed_demo(*, dry_run: bool = False) -> Outcome:
    """Make what is missing. What is there stays as it is, changed in the admin or not."""
    config = msgspec.convert(_missing(demo_config()), ConfigFile, dec_hook=converter(SecretSource(settings.STATE_DIR)))
    with transaction.atomic():
        outcome = apply_config(ReadFile(config=config, digest=""), actor=ACTOR, dry_run=dry_run)
        if not dry_run:
            _keys()
            _admin()
    return outcome


def _alias(name: str, *targets: tuple[str, str]) -> dict[str, Any]:
    return {"name": name, "targets": [{"provider": provider, "model": model} for provider, model in targets]}


def _missing(config: dict[str, Any]) -> dict[str, Any]:
    """The entries that the database does not have under their names."""
    tables = {"providers": Provider, "models": ModelAlias, "tiers": Tier}
    left = dict(config)
    for section, model in tables.items():
        known = set(model.objects.values_list("name", flat=True))  # type: ignore[attr-defined]
        left[section] = [entry for entry in config[section] if entry["name"] not in known]
    slugs = set(Tenant.objects.values_list("slug", flat=True))
    left["tenants"] = [entry for entry in config["tenants"] if entry["slug"] not in slugs]
    priced = set(Price.objects.values_list("provider", "model"))
    left["prices"] = [entry for entry in config["prices"] if (entry["provider"], entry["model"]) not in priced]
    return left


def _keys() -> None:
    for slug, (name, remembered) in KEYS.items():
        tenant = Tenant.objects.get(slug=slug)
        secret = remember_demo_secret(settings.STATE_DIR, remembered, generate(new_id(), TEST))
        if not ApiKey.objects.filter(tenant=tenant, name=name).exists():
            create_key(tenant=tenant, name=name, secret=secret, scopes=["inference", "audit:read"], actor=ACTOR)


def _admin() -> None:
    users = get_user_model().objects
    if not users.filter(username=ADMIN_LOGIN).exists():
        password = demo_secrets(settings.STATE_DIR).get("ADMIN_PASSWORD") or secrets.token_urlsafe(12)
        remember_demo_secret(settings.STATE_DIR, "ADMIN_PASSWORD", password)
        users.create_superuser(ADMIN_LOGIN, "", password)
