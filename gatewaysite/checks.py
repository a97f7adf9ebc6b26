"""System checks: settings that work but should not be run with. Ids are stable, hints say what to do."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core import checks


@checks.register(checks.Tags.security, deploy=True)
def check_deployment(**_kwargs: Any) -> list[checks.Warning]:
    """What `check --deploy` says about Tollbar's own settings."""
    found = [
        (settings.DEMO, "DEMO is on: everybody who can read var/ has the secrets.", "Unset DEMO.", "tollbar.W001"),
        (not settings.METRICS_TOKEN, "/metrics is open to everybody.", "Set METRICS_TOKEN.", "tollbar.W002"),
        (settings.CHAOS_ENABLED, "Faults can be injected.", "Unset CHAOS_ENABLED.", "tollbar.W003"),
        (
            settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS,
            "Webhooks may be sent into private networks and over plain http.",
            "Unset WEBHOOK_ALLOW_PRIVATE_NETWORKS.",
            "tollbar.W004",
        ),
        ("*" in settings.ALLOWED_HOSTS, "Any Host header is accepted.", "Name hosts in ALLOWED_HOSTS.", "tollbar.W005"),
        (
            settings.DATABASES["default"]["ENGINE"].endswith("sqlite3") and bool(settings.REDIS_URL),
            "Several processes share one SQLite file.",
            "Set DATABASE_URL to PostgreSQL.",
            "tollbar.W006",
        ),
    ]
    return [checks.Warning(text, hint=hint, id=check_id) for wrong, text, hint, check_id in found if wrong]
