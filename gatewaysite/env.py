"""Every setting of the environment (docs/settings.md), read once when Django starts.

A wrong value refuses to start with one line that names the variable. `NAME_FILE` reads the value of NAME from a file,
for secrets kept outside the environment. With DEMO the secrets are made once and kept in the state folder.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from environ import Env
from environ.fileaware_mapping import FileAwareMapping

from gatewaysite.demo_secrets import demo_secrets

BASE_DIR = Path(__file__).resolve().parent.parent
DEFAULT_DATABASE_URL = "sqlite:///var/tollbar.sqlite3"
REDIS_SCHEMES = ("redis", "rediss", "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel")
DATABASE_SCHEMES = ("sqlite", "postgres", "postgresql")
SQLITE = "django.db.backends.sqlite3"
POLICIES = ("fail_open", "fail_closed")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
TRUE_TEXTS, FALSE_TEXTS = ("true", "1", "yes", "on"), ("false", "0", "no", "off", "")
#: Fewer characters than this are no secret (bits of a password, not of a key).
MIN_SECRET_LENGTH = 16
#: What examples and other products' defaults look like.
DEFAULT_SECRETS = ("change", "default", "django-insecure", "example", "insecure", "secret", "your-", "<")


class SettingError(ImproperlyConfigured):
    """A setting that must not be started with. The message begins with its name and is one line."""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The settings as values. Names are those of the environment in lower case; sizes in bytes, times in seconds."""

    demo: bool
    debug: bool
    https: bool
    secret_key: str
    key_pepper: str
    field_encryption_keys: tuple[str, ...]
    allowed_hosts: tuple[str, ...]
    csrf_trusted_origins: tuple[str, ...]
    trusted_proxies: tuple[str, ...]
    state_dir: Path
    database: dict[str, Any]
    redis_url: str
    celery_broker_url: str
    gateway_config: str
    rate_limit_redis_failure_policy: str
    budget_redis_failure_policy: str
    max_request_size_bytes: int
    chaos_enabled: bool
    webhook_allow_private_networks: bool
    provider_allow_private_networks: bool
    metrics_token: str
    log_level: str
    otel_exporter_otlp_endpoint: str
    otel_genai: str
    drain_seconds: float
    reservation_grace_seconds: float
    workers: int


class Reader:
    """Values of one environment. Every reader names the variable in the error that it raises."""

    def __init__(self, source: Mapping[str, str]) -> None:
        self._source = FileAwareMapping(env=dict(source), cache=False)

    def text(self, name: str, default: str = "") -> str:
        try:
            value = self._source.get(name, default)
        except (OSError, UnicodeDecodeError) as error:
            raise SettingError(f"{name}_FILE names a file that cannot be read ({type(error).__name__}).") from error
        return str(value).strip()

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        value = self.text(name) or default
        if value not in choices:
            raise SettingError(f"{name} must be one of {', '.join(choices)}.")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.text(name, "true" if default else "false").lower()
        if value not in TRUE_TEXTS + FALSE_TEXTS:
            raise SettingError(f"{name} must be true or false.")
        return value in TRUE_TEXTS

    def number(self, name: str, default: float, *, least: float, most: float) -> float:
        value = self.text(name) or str(default)
        try:
            number = float(value)
        except ValueError as error:
            raise SettingError(f"{name} must be a number.") from error
        if not least <= number <= most:
            raise SettingError(f"{name} must be from {least:g} to {most:g}.")
        return number

    def names(self, name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        parts = tuple(part.strip() for part in self.text(name).split(",") if part.strip())
        return parts or default

    def secret(self, name: str, demo: Mapping[str, str], least: int = MIN_SECRET_LENGTH) -> str:
        """A secret that must be set; in demo mode the one made for this installation."""
        value = self.text(name)
        if not value and demo:
            return demo[name]
        if not value:
            raise SettingError(f"{name} is empty: set it to a long random text of your own (docs/settings.md).")
        if value.lower().startswith(DEFAULT_SECRETS):
            raise SettingError(f"{name} is a default or an example: set it to a long random text of your own.")
        if len(value) < least:
            raise SettingError(f"{name} is too short: at least {least} characters.")
        return value

    def address(self, name: str, schemes: tuple[str, ...], default: str = "") -> str:
        value = self.text(name, default)
        if value and (urlsplit(value).scheme not in schemes or "://" not in value):
            raise SettingError(f"{name} must begin with one of {', '.join(f'{scheme}://' for scheme in schemes)}.")
        return value


def read_environment(source: Mapping[str, str]) -> Environment:
    """The settings in `source`. Raises SettingError for the first that is wrong."""
    read = Reader(source)
    demo = read.flag("DEMO")
    database = _database(read)
    state_dir = _state_dir(read, database)
    made = demo_secrets(state_dir) if demo else {}
    debug = read.flag("DEBUG")
    hosts = read.names("ALLOWED_HOSTS", ("localhost", "127.0.0.1", "[::1]"))
    redis_url = read.address("REDIS_URL", REDIS_SCHEMES)
    return Environment(
        demo=demo,
        debug=debug,
        https=read.flag("HTTPS", default=not (demo or debug or _only_loopback(hosts))),
        secret_key=read.secret("SECRET_KEY", made),
        key_pepper=read.secret("KEY_PEPPER", made),
        field_encryption_keys=_fernet_keys(read, made),
        allowed_hosts=hosts,
        csrf_trusted_origins=read.names("CSRF_TRUSTED_ORIGINS"),
        trusted_proxies=_networks(read, "TRUSTED_PROXIES"),
        state_dir=state_dir,
        database=database,
        redis_url=redis_url,
        celery_broker_url=read.text("CELERY_BROKER_URL", redis_url),
        gateway_config=_existing_file(read, "GATEWAY_CONFIG"),
        rate_limit_redis_failure_policy=read.choice("RATE_LIMIT_REDIS_FAILURE_POLICY", POLICIES, "fail_open"),
        budget_redis_failure_policy=read.choice("BUDGET_REDIS_FAILURE_POLICY", POLICIES, "fail_closed"),
        max_request_size_bytes=int(read.number("MAX_REQUEST_SIZE_BYTES", 2_097_152, least=1024, most=1 << 30)),
        chaos_enabled=read.flag("CHAOS_ENABLED"),
        webhook_allow_private_networks=read.flag("WEBHOOK_ALLOW_PRIVATE_NETWORKS"),
        provider_allow_private_networks=read.flag("PROVIDER_ALLOW_PRIVATE_NETWORKS", default=True),
        metrics_token=read.text("METRICS_TOKEN"),
        log_level=read.choice("LOG_LEVEL", LOG_LEVELS, "INFO"),
        otel_exporter_otlp_endpoint=read.address("OTEL_EXPORTER_OTLP_ENDPOINT", ("http", "https")),
        otel_genai=read.choice("OTEL_GENAI", ("compat", "latest", "both"), "compat"),
        drain_seconds=read.number("DRAIN_SECONDS", 60, least=0, most=3600),
        reservation_grace_seconds=read.number("RESERVATION_GRACE_SECONDS", 60, least=0, most=3600),
        workers=int(read.number("WEB_CONCURRENCY", 1, least=1, most=256)),
    )


@cache
def environment() -> Environment:
    """The settings of this process."""
    return read_environment(os.environ)


def _database(read: Reader) -> dict[str, Any]:
    url = read.text("DATABASE_URL") or DEFAULT_DATABASE_URL
    if url.partition("://")[0] not in DATABASE_SCHEMES:
        raise SettingError("DATABASE_URL must begin with sqlite:/// or postgres://.")
    try:
        config = Env.db_url_config(url)
    except (ValueError, KeyError, ImproperlyConfigured) as error:
        raise SettingError("DATABASE_URL cannot be understood.") from error
    if config["ENGINE"] == SQLITE and config["NAME"] != ":memory:":
        config["NAME"] = str(BASE_DIR / config["NAME"])
    return dict(config)


def _state_dir(read: Reader, database: dict[str, Any]) -> Path:
    """STATE_DIR; else beside the SQLite file, so that two installations on one machine never share a spool."""
    named = read.text("STATE_DIR")
    if named:
        return BASE_DIR / named
    if database["ENGINE"] == SQLITE and database["NAME"] != ":memory:":
        return Path(database["NAME"]).parent
    return BASE_DIR / "var"


def _fernet_keys(read: Reader, demo: Mapping[str, str]) -> tuple[str, ...]:
    name = "FIELD_ENCRYPTION_KEYS"
    keys = tuple(key.strip() for key in read.secret(name, demo, least=0).split(",") if key.strip())
    for number, key in enumerate(keys, start=1):
        try:
            raw = base64.urlsafe_b64decode(key.encode())
        except (binascii.Error, ValueError):
            raw = b""
        if len(raw) != 32:
            raise SettingError(f"{name}: key {number} is no Fernet key (32 bytes in URL-safe base64, 44 characters).")
        if len(set(raw)) == 1:
            raise SettingError(f"{name}: key {number} is a default: make one of your own.")
    if not keys:
        raise SettingError(f"{name} is empty: set at least one Fernet key (docs/settings.md).")
    return keys


def _networks(read: Reader, name: str) -> tuple[str, ...]:
    found = read.names(name)
    for text in found:
        try:
            ipaddress.ip_network(text)
        except ValueError as error:
            raise SettingError(f"{name} must be addresses or networks such as 10.0.0.0/8.") from error
    return found


def _existing_file(read: Reader, name: str) -> str:
    path = read.text(name)
    if path and not Path(path).is_file():
        raise SettingError(f"{name} names a file that does not exist.")
    return path


def _only_loopback(hosts: tuple[str, ...]) -> bool:
    return all(host in ("localhost", "127.0.0.1", "[::1]") or host.endswith(".localhost") for host in hosts)
