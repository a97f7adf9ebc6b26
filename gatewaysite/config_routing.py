"""Applies the sections of the configuration file that say where calls go and what they cost."""

from __future__ import annotations

from typing import Any

from billing.models import Price
from gatewaysite.config_changes import ChangeLog, Wanted, remove_rows, sync_rows
from gatewaysite.config_file import ConfigFileError
from gatewaysite.config_schema import ConfigFile, ModelEntry, PriceEntry, ProviderEntry
from gatewaysite.config_values import Secret
from proxy.models import ModelAlias, Provider, Target

PriceIdentity = tuple[str, str, Any]


def apply_providers(log: ChangeLog, config: ConfigFile) -> dict[str, Provider]:
    """Providers by name, those of the file included."""
    existing = {row.name: row for row in Provider.objects.all()}
    wanted = {
        entry.name: Wanted(subject=f"providers/{entry.name}", values=_provider_values(entry))
        for entry in config.providers
    }
    created, _ = sync_rows(log, Provider, existing, wanted)
    return existing | _by_name(Provider, created)


def apply_models(log: ChangeLog, config: ConfigFile, providers: dict[str, Provider]) -> None:
    _check_targets(config, providers)
    names = [entry.name for entry in config.models]
    existing = {row.name: row for row in ModelAlias.objects.filter(name__in=names)}
    wanted = {
        entry.name: Wanted(subject=f"models/{entry.name}", values=_model_values(entry)) for entry in config.models
    }
    created, _ = sync_rows(log, ModelAlias, existing, wanted)
    aliases = existing | _by_name(ModelAlias, created)
    _apply_targets(log, config, aliases, providers)


def apply_prices(log: ChangeLog, config: ConfigFile, providers: dict[str, Provider]) -> None:
    faults = [
        f"prices[{number}].provider: there is no provider {entry.provider}"
        for number, entry in enumerate(config.prices)
        if entry.provider not in providers
    ]
    if faults:
        raise ConfigFileError(faults)
    wanted = {
        price_identity(entry): Wanted(
            subject=f"prices/{entry.provider}/{entry.model}@{entry.effective_from}", values=_price_values(entry)
        )
        for entry in config.prices
    }
    existing = {(row.provider, row.model, row.effective_from): row for row in Price.objects.all()} if wanted else {}
    sync_rows(log, Price, existing, wanted)


def price_identity(entry: PriceEntry) -> PriceIdentity:
    return str(entry.provider), str(entry.model), entry.effective_from


def _by_name(model: Any, rows: list[Any]) -> dict[str, Any]:
    """Rows just made, by name, with their ids."""
    if any(row.pk is None for row in rows):
        return {row.name: row for row in model.objects.filter(name__in=[row.name for row in rows])}
    return {row.name: row for row in rows}


def _provider_values(entry: ProviderEntry) -> dict[str, Any]:
    values = {
        "name": str(entry.name),
        "kind": str(entry.kind),
        "base_url": str(entry.base_url or ""),
        "region": entry.region or "",
        "api_version": entry.api_version or "",
        "headers": {str(name): str(value) for name, value in entry.headers.items()},
        "timeout_connect": entry.timeout.connect,
        "timeout_first_byte": entry.timeout.first_byte,
        "timeout_idle": entry.timeout.idle,
        "timeout_total": entry.timeout.total,
        "max_attempts": entry.retries.max_attempts,
        "backoff": entry.retries.backoff,
        "max_backoff": entry.retries.max_backoff,
        "breaker_failures": entry.breaker.failures,
        "breaker_window": entry.breaker.window,
        "breaker_open_for": entry.breaker.open_for,
        "breaker_close_after": entry.breaker.close_after,
        "rpm": entry.limits.rpm,
        "tpm": entry.limits.tpm,
        "concurrency": entry.limits.concurrency,
    }
    if entry.api_key is None:
        values["api_key"] = ""
    elif isinstance(entry.api_key, Secret):
        values["api_key"] = entry.api_key.text
    return values


def _model_values(entry: ModelEntry) -> dict[str, Any]:
    return {
        "name": str(entry.name),
        "strategy": str(entry.strategy),
        "max_output_tokens": entry.max_output_tokens,
        "cache_exact_ttl": entry.cache.exact_ttl,
        "cache_semantic_ttl": entry.cache.semantic_ttl,
        "cache_semantic_threshold": entry.cache.semantic_threshold,
    }


def _price_values(entry: PriceEntry) -> dict[str, Any]:
    return {
        "provider": str(entry.provider),
        "model": str(entry.model),
        "input": entry.input,
        "output": entry.output,
        "cache_read": entry.cache_read,
        "cache_write": entry.cache_write,
        "cache_write_1h": entry.cache_write_1h,
        "per": entry.per,
        "effective_from": entry.effective_from,
    }


def _check_targets(config: ConfigFile, providers: dict[str, Provider]) -> None:
    faults = [
        f"models[{model_number}].targets[{number}].provider: there is no provider {target.provider}"
        for model_number, model in enumerate(config.models)
        for number, target in enumerate(model.targets)
        if target.provider not in providers
    ]
    if faults:
        raise ConfigFileError(faults)


def _apply_targets(
    log: ChangeLog, config: ConfigFile, aliases: dict[str, ModelAlias], providers: dict[str, Provider]
) -> None:
    """An alias has exactly the targets of its entry, in that order."""
    ids = [aliases[entry.name].pk for entry in config.models]
    existing = {(row.alias_id, row.provider_id, row.model): row for row in Target.objects.filter(alias_id__in=ids)}
    wanted = {}
    for entry in config.models:
        alias = aliases[entry.name]
        for position, target in enumerate(entry.targets):
            provider = providers[target.provider]
            wanted[alias.pk, provider.pk, str(target.model)] = Wanted(
                subject=f"models/{entry.name}/targets/{target.provider}/{target.model}",
                values={
                    "alias_id": alias.pk,
                    "provider_id": provider.pk,
                    "model": str(target.model),
                    "weight": target.weight,
                    "position": position,
                },
            )
    names = {alias.pk: alias.name for alias in aliases.values()}
    provider_names = {provider.pk: provider.name for provider in providers.values()}
    gone = [
        (row, f"models/{names[row.alias_id]}/targets/{provider_names[row.provider_id]}/{row.model}", "")
        for identity, row in existing.items()
        if identity not in wanted
    ]
    remove_rows(log, gone)
    sync_rows(log, Target, existing, wanted)
