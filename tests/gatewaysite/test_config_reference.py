"""The file, the database and the documentation know the same choices and fields."""

import re
import typing

import msgspec
import pytest

from billing.models import BudgetScope, Period
from gatewaysite import config_schema
from gatewaysite.config_schema import (
    BudgetEntry,
    Entry,
    Limits,
    ModelEntry,
    TenantEntry,
)
from proxy.models import Provider, Strategy
from proxy.providers.base import adapters
from tenants.limit_fields import Algorithm
from tenants.models import Priority, Unpriced
from tests.conftest import ROOT
from tests.gatewaysite.configuring import VARIABLES, read

PAGE = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
ENTRIES = [
    value
    for value in vars(config_schema).values()
    if isinstance(value, type) and issubclass(value, Entry) and value is not Entry
]


def choices_of(entry: type, field: str) -> set[str]:
    hint = typing.get_type_hints(entry)[field]
    options = typing.get_args(hint)
    if type(None) in options:
        options = typing.get_args(options[0])
    return set(options)


@pytest.mark.parametrize(
    ("entry", "field", "choices"),
    [
        (ModelEntry, "strategy", Strategy),
        (Limits, "algorithm", Algorithm),
        (BudgetEntry, "per", Period),
        (BudgetEntry, "scope", BudgetScope),
        (TenantEntry, "priority", Priority),
        (TenantEntry, "unpriced", Unpriced),
    ],
)
def test_the_file_takes_what_the_database_takes(entry, field, choices):
    assert choices_of(entry, field) == set(choices.values)


def test_the_kinds_of_admin_and_documentation_are_the_adapters_there_are():
    choices = Provider._meta.get_field("kind").flatchoices
    assert {kind for kind, _ in choices} == set(adapters())
    (row,) = [line for line in PAGE.splitlines() if line.startswith("| `kind` |")]
    assert set(re.findall(r"`(\w+)`", row)) - {"kind"} == set(adapters())


def test_every_field_is_documented():
    words = set(re.findall(r"[a-z_0-9]+", PAGE))
    fields = {field.name for entry in ENTRIES for field in msgspec.structs.fields(entry)}
    assert len(ENTRIES) > 15
    assert fields - words == set()


def test_the_example_of_the_documentation_is_right(tmp_path, monkeypatch):
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "anthropic").write_text("sk-ant-0123456789")
    variables = {"OPENAI_API_KEY": "sk-0", "ACME_KEY": "a" * 24, "ACME_AUDITOR_KEY": "b" * 24}
    for name, value in variables.items():
        monkeypatch.setitem(VARIABLES, name, value)
    config = read(SNIPPETS[-1].encode(), tmp_path).config
    assert [key.name for key in config.tenants[0].keys] == ["app", "auditor"]


def test_every_example_of_a_provider_is_right(tmp_path, monkeypatch):
    rows = "".join(SNIPPETS[:-1])
    for name in re.findall(r"env:(\w+)", rows):
        monkeypatch.setitem(VARIABLES, name, "sk-0123456789")
    providers = read(f"version: 1\nproviders:\n{rows}".encode(), tmp_path).config.providers
    vendors = {provider.name for provider in providers if provider.kind == "openai_compatible"}
    assert {"mistral", "groq", "deepseek", "openrouter", "xai", "perplexity", "cohere", "vllm", "lm-studio"} <= vendors
