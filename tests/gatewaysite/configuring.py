"""A configuration file that uses every field, and how tests change and apply it."""

from pathlib import Path
from typing import Any

import yaml

from gatewaysite.config_apply import Outcome, apply_config
from gatewaysite.config_file import read_config
from gatewaysite.config_values import SecretSource

APP_SECRET = "the-secret-of-the-key-app-0123456789"
VARIABLES = {"PROVIDER_KEY": "sk-provider-0123456789", "APP_SECRET": APP_SECRET}

FULL: dict[str, Any] = {
    "version": 1,
    "providers": [
        {
            "name": "main",
            "kind": "openai",
            "base_url": "https://api.example/v1",
            "api_key": "env:PROVIDER_KEY",
            "region": "eu-1",
            "api_version": "2024-10-21",
            "headers": {"X-Team": "platform"},
            "timeout": {"connect": 1, "first_byte": 2, "idle": 3, "total": 4.5},
            "retries": {"max_attempts": 5, "backoff": 0.1, "max_backoff": 2},
            "breaker": {"failures": 6, "window": 7, "open_for": 8, "close_after": 9},
            "limits": {"rpm": 10, "tpm": 11, "concurrency": 12},
        },
        {"name": "spare", "kind": "mock"},
    ],
    "models": [
        {
            "name": "smart",
            "strategy": "weighted",
            "targets": [
                {"provider": "main", "model": "gpt-4o", "weight": 3},
                {"provider": "spare", "model": "echo"},
            ],
            "max_output_tokens": 64000,
            "cache": {"exact_ttl": 60, "semantic_ttl": 30, "semantic_threshold": 0.9},
        }
    ],
    "prices": [
        {
            "provider": "main",
            "model": "gpt-4o",
            "input": "2.50",
            "output": "10.00",
            "cache_read": "1.25",
            "cache_write": "3.00",
            "cache_write_1h": "5.00",
            "per": 1000000,
            "effective_from": "2025-01-01",
        },
        {"provider": "spare", "model": "echo", "input": "0.5", "output": "1.5"},
    ],
    "tiers": [
        {"name": "standard", "limits": {"rpm": 200, "user_rpm": 20}, "quotas": [{"tokens": 5000000, "per": "day"}]}
    ],
    "tenants": [
        {
            "slug": "acme",
            "name": "Acme",
            "tier": "standard",
            "priority": "high",
            "models": ["smart", "gpt-*"],
            "unpriced": "allow",
            "webhook_secret": "whsec_tenant",
            "limits": {"rpm": 600, "tpm": 200000, "concurrency": 50, "user_rpm": 60, "algorithm": "sliding_window"},
            "quotas": [{"tokens": 1000, "per": "hour", "timezone": "Europe/Berlin"}],
            "budgets": [
                {"usd": "100.00", "per": "month", "warn_at": [80, 95], "timezone": "UTC", "scope": "tenant"},
                {"usd": "1", "per": "day", "scope": "user"},
            ],
            "jwt": {"issuer": "https://id.example", "audience": "tollbar", "jwks_url": "https://id.example/jwks"},
            "keys": [
                {
                    "name": "app",
                    "secret": "env:APP_SECRET",
                    "scopes": ["inference", "audit:read"],
                    "models": ["smart"],
                    "cidrs": ["10.0.0.0/8", "::1/128"],
                    "may_speak_for_users": False,
                    "expires_at": "2099-12-31T00:00:00Z",
                    "limits": {"rpm": 5},
                    "quotas": [{"tokens": 10, "per": "minute"}],
                    "budgets": [{"usd": "0.000001", "per": "total"}],
                },
                {"name": '=HYPERLINK("http://evil.test","x")', "secret": "a-literal-secret-0123456789"},
            ],
            "webhooks": [{"url": "https://hooks.example/t?token=1", "events": ["request.*"], "secret": "whsec_hook"}],
        },
        {"slug": "globex", "keys": [{"name": "ünïcode 東", "secret": "another-literal-0123456789"}]},
    ],
}


def read(document: Any, folder: Path = Path()) -> Any:
    raw = document if isinstance(document, bytes) else yaml.safe_dump(document, allow_unicode=True).encode()
    return read_config(raw, SecretSource(folder, VARIABLES))


def apply(document: Any, **options: Any) -> Outcome:
    return apply_config(read(document), actor="test", **options)


def minimal(**sections: Any) -> dict[str, Any]:
    return {"version": 1, **sections}


def tenant(*keys: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return minimal(tenants=[{"slug": "acme", "keys": list(keys), **fields}])
