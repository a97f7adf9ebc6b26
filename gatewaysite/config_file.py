"""Reads the configuration file: strict YAML, typed and checked as a whole, every error with the path of its place."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml

from audit.redaction import is_secret
from gatewaysite.config_schema import (
    BudgetEntry,
    ConfigFile,
    JwtEntry,
    KeyEntry,
    ProviderEntry,
    QuotaEntry,
    TenantEntry,
)
from gatewaysite.config_values import Secret, SecretSource, converter
from proxy.providers.base import adapters
from tenants.keys import fault_of_imported

MAX_FILE_BYTES = 32 * 1024 * 1024
MIN_JWT_SECRET_LENGTH = 16
HEADERS_OF_THE_CONNECTION = ("connection", "content-length", "host", "transfer-encoding")

_PLACE = re.compile(r"(?P<what>.*) - at (?:`key` in )?`\$\.?(?P<path>[^`]*)`$", re.DOTALL)
_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(?P<field>.*)`", re.DOTALL)
_MISSING_FIELD = re.compile(r"Object missing required field `(?P<field>.*)`", re.DOTALL)


class ConfigFileError(Exception):
    """The file cannot be applied. `faults` are lines of "path: what is wrong"; none shows a secret."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(self.faults))


@dataclass(frozen=True, kw_only=True)
class ReadFile:
    """A file that is right in itself. `digest` (SHA-256, hex) tells versions of it apart."""

    config: ConfigFile
    digest: str


def read_config_file(path: Path) -> ReadFile:
    """The file at `path`. Raises ConfigFileError."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigFileError([f"{path.name} cannot be read ({error.strerror})"]) from error
    return read_config(raw, SecretSource(path.parent))


def digest_of(raw: bytes) -> str:
    """Tells versions of a file apart without reading what is in it."""
    return hashlib.sha256(raw).hexdigest()


def read_config(raw: bytes, secrets: SecretSource) -> ReadFile:
    """The configuration in `raw`. Raises ConfigFileError."""
    if len(raw) > MAX_FILE_BYTES:
        raise ConfigFileError([f"the file is larger than {MAX_FILE_BYTES} bytes"])
    document = _parse_yaml(raw)
    try:
        config = msgspec.convert(document, ConfigFile, dec_hook=converter(secrets))
    except msgspec.ValidationError as error:
        raise ConfigFileError([_placed(str(error))]) from None
    except RecursionError:
        raise ConfigFileError(["the file is nested too deeply"]) from None
    faults = list(_faults(config))
    if faults:
        raise ConfigFileError(faults)
    return ReadFile(config=config, digest=digest_of(raw))


# ---------------------------------------------------------------------------------------------------------------- YAML


class _Loader(yaml.CSafeLoader):
    """Plain data only (no tags that build objects), and no key twice in a mapping."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode) and key_node.tag != "tag:yaml.org,2002:merge":
                if key_node.value in seen:
                    line = key_node.start_mark.line + 1
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key_node.value!r} is there twice (line {line})"
                    )
                seen.add(key_node.value)
        return super().construct_mapping(node, deep)


def _parse_yaml(raw: bytes) -> Any:
    try:
        return yaml.load(raw, Loader=_Loader)  # noqa: S506  (a safe loader)
    except yaml.MarkedYAMLError as error:  # its own text would show the line, and with it a secret
        mark = error.problem_mark
        place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise ConfigFileError([f"no valid YAML: {error.problem}{place}"]) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigFileError([f"no valid YAML: {type(error).__name__}"]) from None
    except RecursionError:
        raise ConfigFileError(["the file is nested too deeply"]) from None


def _placed(message: str) -> str:
    """msgspec's message with its place first: `tenants[0].keys[1].foo: unknown field`."""
    match = _PLACE.fullmatch(message)
    what, path = (match["what"], match["path"]) if match else (message, "")
    for pattern, text in ((_UNKNOWN_FIELD, "unknown field"), (_MISSING_FIELD, "is required")):
        field = pattern.fullmatch(what)
        if field:
            path, what = f"{path}.{field['field']}".lstrip("."), text
    return f"{path or 'the file'}: {what}"


# -------------------------------------------------------------------------------------------- what the types cannot say


def _faults(config: ConfigFile) -> Iterator[str]:
    yield from _twice("providers", config.providers, lambda entry: entry.name)
    yield from _twice("models", config.models, lambda entry: entry.name)
    yield from _twice("tiers", config.tiers, lambda entry: entry.name)
    yield from _twice("tenants", config.tenants, lambda entry: entry.slug)
    yield from _twice("prices", config.prices, lambda entry: (entry.provider, entry.model, entry.effective_from))
    for number, provider in enumerate(config.providers):
        yield from _provider_faults(f"providers[{number}]", provider)
    for number, model in enumerate(config.models):
        yield from _twice(f"models[{number}].targets", model.targets, lambda entry: (entry.provider, entry.model))
    for number, tier in enumerate(config.tiers):
        yield from _twice(f"tiers[{number}].quotas", tier.quotas, quota_identity)
    for number, tenant in enumerate(config.tenants):
        yield from _tenant_faults(f"tenants[{number}]", tenant)
    yield from _secret_faults(config)
    yield from _issuer_faults(config)


def quota_identity(entry: QuotaEntry) -> tuple[str, str]:
    return entry.per, entry.timezone


def budget_identity(entry: BudgetEntry, default_scope: str) -> tuple[str, str, str]:
    return entry.scope or default_scope, entry.per, entry.timezone


def _provider_faults(path: str, entry: ProviderEntry) -> Iterator[str]:
    if len(entry.name) > 63:
        yield f"{path}.name: must have at most 63 characters"
    adapter = adapters().get(entry.kind)
    if adapter is None:
        yield f"{path}.kind: must be one of {', '.join(sorted(adapters()))}"
    elif entry.base_url is None and adapter.default_base_url is None:
        yield f"{path}.base_url: is required for the kind {entry.kind}"
    for name in entry.headers:
        if name.lower() in HEADERS_OF_THE_CONNECTION:
            yield f"{path}.headers.{name}: belongs to the connection and cannot be set"
        elif is_secret(name):
            yield f"{path}.headers.{name}: carries a credential, and headers are shown: use api_key"


def _tenant_faults(path: str, entry: TenantEntry) -> Iterator[str]:
    yield from _twice(f"{path}.quotas", entry.quotas, quota_identity)
    yield from _twice(f"{path}.budgets", entry.budgets, lambda budget: budget_identity(budget, "tenant"))
    yield from _twice(f"{path}.keys", entry.keys, lambda key: key.name)
    yield from _twice(f"{path}.webhooks", entry.webhooks, lambda webhook: webhook.url)
    for number, key in enumerate(entry.keys):
        yield from _key_faults(f"{path}.keys[{number}]", key)
    if entry.jwt is not None:
        yield from _jwt_faults(f"{path}.jwt", entry.jwt)


def _key_faults(path: str, entry: KeyEntry) -> Iterator[str]:
    yield from _twice(f"{path}.quotas", entry.quotas, quota_identity)
    yield from _twice(f"{path}.budgets", entry.budgets, lambda budget: budget_identity(budget, "key"))
    for number, budget in enumerate(entry.budgets):
        if budget.scope == "tenant":
            yield f"{path}.budgets[{number}].scope: a key's budget is of the key or of its users"
    if isinstance(entry.secret, Secret) and (fault := fault_of_imported(entry.secret.text)):
        yield f"{path}.secret: {fault}"


def _jwt_faults(path: str, entry: JwtEntry) -> Iterator[str]:
    symmetric = [name for name in entry.algorithms if name.startswith("HS")]
    if symmetric and len(symmetric) < len(entry.algorithms):
        yield f"{path}.algorithms: either HS algorithms (with a secret) or the others (with jwks_url), not both"
    if entry.secret is None and entry.jwks_url is None:
        yield f"{path}: needs a secret or a jwks_url"
    if isinstance(entry.secret, Secret) and entry.jwks_url is not None:
        yield f"{path}: has both a secret and a jwks_url; one of them decides"
    if symmetric and entry.jwks_url is not None:
        yield f"{path}.algorithms: a key set is not checked with HS algorithms"
    if isinstance(entry.secret, Secret) and len(entry.secret.text) < MIN_JWT_SECRET_LENGTH:
        yield f"{path}.secret: must have at least {MIN_JWT_SECRET_LENGTH} characters"


def _secret_faults(config: ConfigFile) -> Iterator[str]:
    seen: dict[str, str] = {}
    for path, key in all_keys(config):
        if isinstance(key.secret, Secret):
            first = seen.setdefault(key.secret.text, path)
            if first != path:
                yield f"{path}.secret: is also the secret of {first}"


def _issuer_faults(config: ConfigFile) -> Iterator[str]:
    seen: dict[str, str] = {}
    for number, tenant in enumerate(config.tenants):
        if tenant.jwt is not None and seen.setdefault(tenant.jwt.issuer, tenant.slug) != tenant.slug:
            yield f"tenants[{number}].jwt.issuer: is also that of another tenant"


def all_keys(config: ConfigFile) -> Iterator[tuple[str, KeyEntry]]:
    """Every key with its path."""
    for tenant_number, tenant in enumerate(config.tenants):
        for number, key in enumerate(tenant.keys):
            yield f"tenants[{tenant_number}].keys[{number}]", key


def _twice(path: str, entries: Iterable[Any], identity: Callable[[Any], Any]) -> Iterator[str]:
    seen: dict[Any, int] = {}
    for number, entry in enumerate(entries):
        first = seen.setdefault(identity(entry), number)
        if first != number:
            yield f"{path}[{number}]: is there twice (see {path}[{first}])"
