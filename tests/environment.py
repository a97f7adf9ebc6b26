"""The settings the tests run with, set before Django reads any.

Loaded as a pytest plugin (see pyproject.toml) because pytest-django reads the settings before it reads conftest files.
Nothing of the caller's own Tollbar settings reaches the tests, but for TEST_DATABASE_URL and TEST_REDIS_URL: with them
the suite runs on real services instead of the embedded default. Both are taken as ours: what they hold is deleted.
"""

import os
import shutil
import tempfile
from pathlib import Path

# What a caller's environment may hold and a test must not see.
PRODUCT_SETTINGS = (
    "ALLOWED_HOSTS",
    "BUDGET_REDIS_FAILURE_POLICY",
    "CELERY_BROKER_URL",
    "CHAOS_ENABLED",
    "CSRF_TRUSTED_ORIGINS",
    "DEBUG",
    "DEMO",
    "DRAIN_SECONDS",
    "FIELD_ENCRYPTION_KEYS_FILE",
    "GATEWAY_CONFIG",
    "HTTPS",
    "KEY_PEPPER_FILE",
    "LOG_LEVEL",
    "MAX_REQUEST_SIZE_BYTES",
    "METRICS_TOKEN",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_GENAI",
    "PROMETHEUS_MULTIPROC_DIR",
    "PROVIDER_ALLOW_PRIVATE_NETWORKS",
    "RATE_LIMIT_REDIS_FAILURE_POLICY",
    "SECRET_KEY_FILE",
    "TRUSTED_PROXIES",
    "WEB_CONCURRENCY",
    "WEBHOOK_ALLOW_PRIVATE_NETWORKS",
)

_owner_of_state = "TOLLBAR_TEST_STATE" not in os.environ
# Files of this run: its database, and whatever a test's own process writes. Workers of pytest-xdist share it.
if _owner_of_state:
    os.environ["TOLLBAR_TEST_STATE"] = tempfile.mkdtemp(prefix="tollbar-tests-")
STATE = Path(os.environ["TOLLBAR_TEST_STATE"])


def settings_for_tests() -> dict[str, str]:
    """Also what a test hands to a process it starts."""
    return {
        "SECRET_KEY": "tests-only-secret-key-0123456789-abcdefghijklmnopqrstuvwxyz",
        "KEY_PEPPER": "tests-only-pepper-0123456789-abcdefghijklmnopqrstuvwxyz",
        "FIELD_ENCRYPTION_KEYS": "dGVzdC1zdWl0ZS1lbmNyeXB0aW9uLWtleS0zMi1ieXQ=",
        "DATABASE_URL": os.environ.get("TEST_DATABASE_URL") or f"sqlite:///{STATE / 'tollbar.sqlite3'}",
        "REDIS_URL": os.environ.get("TEST_REDIS_URL", ""),
        "STATE_DIR": str(STATE),
    }


for _name in PRODUCT_SETTINGS:
    os.environ.pop(_name, None)
os.environ.update(settings_for_tests())


def pytest_unconfigure() -> None:
    if _owner_of_state:
        shutil.rmtree(STATE, ignore_errors=True)
