"""A configuration file is read strictly, and every error names its place and shows no secret."""

import contextlib
from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewaysite.config_file import ConfigFileError
from tests.gatewaysite.configuring import FULL, minimal, read, tenant

SECRET = "literal-secret-that-must-not-be-shown"


def faults(document):
    with pytest.raises(ConfigFileError) as caught:
        read(document)
    return caught.value.faults


def changed(path, value):
    """FULL with the value at `path` (keys and list positions) replaced or added."""
    document = deepcopy(FULL)
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return document


def written(path):
    """tenants[0].keys[1].foo"""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def test_every_field_of_the_reference_is_read():
    config = read(FULL).config
    assert config.providers[0].timeout.total == 4.5
    assert config.tenants[0].keys[0].secret.text == "the-secret-of-the-key-app-0123456789"
    assert config.prices[0].input.as_tuple().digits == (2, 5, 0)


@pytest.mark.parametrize(
    "path",
    [
        ("foo",),
        ("providers", 0, "foo"),
        ("providers", 0, "timeout", "foo"),
        ("models", 0, "targets", 1, "foo"),
        ("prices", 1, "foo"),
        ("tiers", 0, "quotas", 0, "foo"),
        ("tenants", 0, "keys", 1, "foo"),
        ("tenants", 0, "keys", 0, "budgets", 0, "foo"),
        ("tenants", 0, "jwt", "foo"),
        ("tenants", 0, "webhooks", 0, "foo"),
    ],
)
def test_an_unknown_field_is_an_error_at_its_path(path):
    assert faults(changed(path, 1)) == (f"{written(path)}: unknown field",)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("version",), 2),
        (("version",), "1"),
        (("providers",), {}),
        (("providers", 0, "name"), 7),
        (("providers", 0, "name"), "with space"),
        (("providers", 0, "kind"), "openia"),
        (("providers", 0, "base_url"), "ftp://api.example"),
        (("providers", 0, "base_url"), "https://user:pw@api.example/v1"),
        (("providers", 0, "base_url"), "https://evil\\@good/v1"),
        (("providers", 0, "base_url"), "https://api.example/v1?key=1"),
        (("providers", 0, "base_url"), "https://api.example/../v1"),
        (("providers", 0, "base_url"), "https://１27.0.0.1/"),
        (("providers", 0, "timeout", "connect"), 0),
        (("providers", 0, "timeout", "connect"), "5"),
        (("providers", 0, "retries", "max_attempts"), 0),
        (("providers", 0, "retries", "max_attempts"), True),
        (("providers", 0, "limits", "rpm"), 1.5),
        (("providers", 0, "limits", "rpm"), 0),
        (("models", 0, "targets"), []),
        (("models", 0, "strategy"), "random"),
        (("prices", 0, "input"), "-1"),
        (("prices", 0, "input"), "1e3"),
        (("prices", 0, "input"), "1.0000000001"),
        (("prices", 0, "input"), True),
        (("prices", 0, "input"), None),
        (("prices", 0, "per"), 0),
        (("prices", 0, "effective_from"), "yesterday"),
        (("tenants", 0, "slug"), "Not A Slug"),
        (("tenants", 0, "name"), "x" * 101),
        (("tenants", 0, "name"), "a\u202eb"),
        (("tenants", 0, "priority"), "urgent"),
        (("tenants", 0, "limits", "rpm"), -1),
        (("tenants", 0, "limits", "rpm"), 10**18),
        (("tenants", 0, "quotas", 0, "tokens"), 2**53),
        (("tenants", 0, "quotas", 0, "per"), "year"),
        (("tenants", 0, "quotas", 0, "timezone"), "Mars/Olympus"),
        (("tenants", 0, "budgets", 0, "usd"), "9000001"),
        (("tenants", 0, "budgets", 0, "scope"), "team"),
        (("tenants", 0, "budgets", 0, "warn_at", 0), 101),
        (("tenants", 0, "keys", 0, "name"), ""),
        (("tenants", 0, "keys", 0, "scopes", 0), "root"),
        (("tenants", 0, "keys", 0, "cidrs", 0), "10.0.0.1/8"),
        (("tenants", 0, "keys", 0, "expires_at"), "soon"),
        (("tenants", 0, "keys", 0, "expires_at"), 1700000000),
        (("tenants", 0, "keys", 0, "models", 0), 4),
        (("tenants", 0, "webhooks", 0, "url"), "javascript:alert(1)"),
        (("tenants", 0, "webhooks", 0, "url"), "http://hooks.example/"),
        (("tenants", 0, "webhooks", 0, "url"), "https://10.0.0.1/"),
        (("providers", 0, "headers", "Authorization"), "Bearer x"),
        (("providers", 0, "headers", "Content-Length"), "1"),
        (("tenants", 0, "jwt", "algorithms"), ["none"]),
    ],
)
def test_a_value_that_cannot_be_is_an_error_at_its_path(path, value):
    place = written(path)
    assert [fault.split(":")[0] for fault in faults(changed(path, value))] in ([place], [f"{place}[0]"])


@pytest.mark.parametrize(("section", "name"), [("providers", "kind"), ("models", "targets"), ("tenants", "slug")])
def test_a_missing_field_is_named(section, name):
    document = deepcopy(FULL)
    del document[section][0][name]
    assert faults(document) == (f"{section}[0].{name}: is required",)


@pytest.mark.parametrize(
    ("document", "place"),
    [
        (minimal(providers=[{"name": "a", "kind": "mock"}] * 2), "providers[1]"),
        (tenant({"name": "k", "secret": "x" * 24}, {"name": "k", "secret": "y" * 24}), "tenants[0].keys[1]"),
        (tenant(quotas=[{"tokens": 1}, {"tokens": 2}]), "tenants[0].quotas[1]"),
        (tenant(budgets=[{"usd": "1"}, {"usd": "2", "scope": "tenant"}]), "tenants[0].budgets[1]"),
        (minimal(models=[{"name": "m", "targets": [{"provider": "p", "model": "x"}] * 2}]), "models[0].targets[1]"),
    ],
)
def test_what_is_there_twice_is_an_error(document, place):
    assert [fault.split(":")[0] for fault in faults(document)] == [place]


def test_two_keys_with_one_secret_are_an_error_that_does_not_show_it():
    (fault,) = faults(tenant({"name": "a", "secret": SECRET}, {"name": "b", "secret": SECRET}))
    assert fault == "tenants[0].keys[1].secret: is also the secret of tenants[0].keys[0]"


@pytest.mark.parametrize("secret", ["short", "with a space 0123456789012", "aaaaaaaaaaaa.bbbbbbbbbbbb.cccccccccccc"])
def test_a_secret_that_no_caller_could_send_is_refused(secret):
    (fault,) = faults(tenant({"name": "a", "secret": secret}))
    assert fault.startswith("tenants[0].keys[0].secret: must")
    assert secret not in fault


def test_a_variable_that_is_not_set_is_named():
    assert faults(tenant({"name": "a", "secret": "env:NOT_SET"})) == (
        "tenants[0].keys[0].secret: environment variable NOT_SET is not set",
    )


def test_a_secret_may_come_from_a_file_beside_the_configuration(tmp_path):
    (tmp_path / "app").write_text("the-secret-in-the-file-0123456789\n")
    config = read(tenant({"name": "a", "secret": "file:app"}), tmp_path).config
    assert config.tenants[0].keys[0].secret.text == "the-secret-in-the-file-0123456789"
    assert faults(tenant({"name": "a", "secret": "file:nowhere"})) == (
        "tenants[0].keys[0].secret: file nowhere cannot be read (FileNotFoundError)",
    )


def test_a_key_of_a_mapping_that_is_there_twice_is_an_error():
    (fault,) = faults(b"version: 1\ntenants: []\ntenants: []\n")
    assert "'tenants' is there twice (line 3)" in fault


@pytest.mark.parametrize(
    "text",
    [
        f"version: 1\nproviders: [{{name: a, kind: mock, api_key: {SECRET}",
        f"version: 1\nproviders:\n\t- api_key: {SECRET}",
        f"version: 1\nx: !!python/object/apply:os.system [{SECRET}]",
        "version: 1\nprices: [{effective_from: 2025-13-45}]",
        f"- {SECRET}",
        SECRET,
        "",
        "\x00",
    ],
)
def test_what_is_no_configuration_at_all_is_an_error_that_does_not_show_it(text):
    assert SECRET not in " ".join(faults(text.encode()))


def test_numbers_are_taken_where_they_are_exact():
    prices = [{"provider": "p", "model": "m", "input": 0.1, "output": 3, "effective_from": "2025-01-01"}]
    (price,) = read(minimal(prices=prices)).config.prices
    assert (str(price.input), str(price.output)) == ("0.1", "3")


def test_dates_are_dates_with_and_without_quotes():
    key = b"{name: k, secret: 0123456789abcdef01234567x, expires_at: 2030-01-01}"
    document = b"version: 1\ntenants: [{slug: a, keys: [" + key + b"]}]"
    (key,) = read(document).config.tenants[0].keys
    assert key.expires_at.at.isoformat() == "2030-01-01T00:00:00+00:00"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
places = st.sampled_from(
    [("providers",), ("providers", 0), ("models", 0, "targets"), ("prices", 0, "input"), ("tenants", 0, "keys", 0)]
)


@settings(max_examples=200, deadline=None)
@given(places, values)
def test_no_value_does_anything_but_be_read_or_refused(path, value):
    with contextlib.suppress(ConfigFileError):
        read(changed(path, value))
