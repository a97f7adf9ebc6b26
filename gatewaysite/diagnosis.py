"""What `doctor` looks at. Every check is short, reads only, and names its setting or table, never a value."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import redis
from django.conf import settings
from django.core import checks as system_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from audit.models import AuditEvent, ChainHead
from gatewaysite.config_file import ConfigFileError, read_config_file
from proxy.models import Provider
from proxy.providers.base import adapters
from tenants.models import JwtIssuer, Tenant
from tenants.revocation import open_redis
from webhooks.models import Endpoint


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The outcome of one check: ok, warning or failed."""

    check: str
    result: str
    detail: str


def diagnose() -> list[Finding]:
    """All findings, in order. A database that does not answer ends the list."""
    found = [*_settings(), *_files(), *_store()]
    database = list(_guarded("database", _database))
    found += database
    if any(finding.result == "failed" for finding in database):
        return found
    for name, check in (("secrets", _secrets), ("providers", _providers), ("audit", _chains)):
        found += _guarded(name, check)
    return found


def _guarded(name: str, check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from check()
    except DatabaseError as error:
        yield Finding(check=name, result="failed", detail=f"the database does not answer ({type(error).__name__})")


def _settings() -> Iterator[Finding]:
    messages = system_checks.run_checks(include_deployment_checks=not (settings.DEMO or settings.DEBUG))
    shown = [message for message in messages if not message.is_silenced() and message.level >= system_checks.WARNING]
    for message in shown:
        failed = message.is_serious()
        yield Finding(check="settings", result="failed" if failed else "warning", detail=f"{message.id}: {message.msg}")
    if not shown:
        yield Finding(check="settings", result="ok", detail="nothing to say")


def _files() -> Iterator[Finding]:
    writable = os.access(settings.STATE_DIR, os.W_OK)
    yield Finding(
        check="state folder",
        result="ok" if writable else "failed",
        detail="can be written" if writable else "STATE_DIR cannot be written: events could not be spooled",
    )
    if settings.GATEWAY_CONFIG:
        try:
            read_config_file(Path(settings.GATEWAY_CONFIG))
            yield Finding(check="configuration file", result="ok", detail="can be applied")
        except ConfigFileError as error:
            yield Finding(check="configuration file", result="failed", detail=error.faults[0])


def _store() -> Iterator[Finding]:
    if not settings.REDIS_URL:
        yield Finding(check="store", result="ok", detail="embedded, in the server's process")
        return
    try:
        with open_redis(settings.REDIS_URL) as connection_:
            connection_.ping()
            policy = connection_.info("memory").get("maxmemory_policy", "noeviction")
    except (redis.RedisError, OSError) as error:
        yield Finding(check="store", result="failed", detail=f"REDIS_URL does not answer ({type(error).__name__})")
        return
    yield Finding(check="store", result="ok", detail="answers")
    if policy != "noeviction":
        yield Finding(check="store", result="warning", detail=f"maxmemory-policy is {policy}: budgets may be evicted")


def _database() -> Iterator[Finding]:
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    yield Finding(check="database", result="ok", detail=f"{connection.vendor} answers")
    yield Finding(
        check="migrations",
        result="failed" if missing else "ok",
        detail=f"{len(missing)} not applied: run migrate" if missing else "all applied",
    )


def _secrets() -> Iterator[Finding]:
    """Every stored secret opens with the keys of FIELD_ENCRYPTION_KEYS."""
    tables = ((Provider, "api_key"), (Tenant, "webhook_secret"), (JwtIssuer, "secret"), (Endpoint, "secret"))
    for model, column in tables:
        try:
            count = len(model._default_manager.values_list(column, flat=True))
        except ImproperlyConfigured as error:
            yield Finding(check="secrets", result="failed", detail=str(error))
        else:
            yield Finding(check="secrets", result="ok", detail=f"{count} of {model._meta.label} can be opened")


def _providers() -> Iterator[Finding]:
    known = adapters()
    keyless = set(Provider.objects.filter(api_key="").values_list("pk", flat=True))
    for row in Provider.objects.filter(enabled=True).defer("api_key"):
        if row.kind not in known:
            yield Finding(check="providers", result="failed", detail=f"{row.name}: no adapter for the kind {row.kind}")
        elif not row.base_url and known[row.kind].default_base_url is None:
            yield Finding(check="providers", result="failed", detail=f"{row.name}: has no base_url")
        elif known[row.kind].needs_region and not row.base_url and not row.region:
            yield Finding(check="providers", result="failed", detail=f"{row.name}: has no region")
        elif row.pk in keyless and known[row.kind].needs_secret:
            yield Finding(check="providers", result="warning", detail=f"{row.name}: has no api_key")
        else:
            yield Finding(check="providers", result="ok", detail=f"{row.name}: complete")


def _chains() -> Iterator[Finding]:
    """Each chain ends in the event that its head names. `verify_audit` checks every link."""
    for head in ChainHead.objects.filter(seq__gt=0).order_by("chain"):
        last = AuditEvent.objects.filter(chain=head.chain).order_by("-seq").values_list("seq", "hash").first()
        whole = last == (head.seq, head.hash)
        yield Finding(
            check="audit",
            result="ok" if whole else "failed",
            detail=f"chain {head.chain}: {head.seq} events" if whole else f"chain {head.chain}: its end is missing",
        )
