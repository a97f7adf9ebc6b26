"""Secrets are found by what their fields are called."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from audit.redaction import is_secret, without_secrets


@pytest.mark.parametrize(
    "name",
    [
        "secret",
        "api_key",
        "API-Key",
        "x-api-key",
        "Authorization",
        "client_secret",
        "access_token",
        "password",
        "digest",
    ],
)
def test_a_secret(name):
    assert is_secret(name)


@pytest.mark.parametrize("name", ["key_id", "tokens", "max_tokens", "name", "secret_last4", "token_bucket", "monkey"])
def test_no_secret(name):
    assert not is_secret(name)


def test_an_absent_secret_stays_absent_so_that_a_change_shows():
    assert without_secrets({"secret": ""}) == {"secret": ""}
    assert without_secrets({"secret": None}) == {"secret": None}
    assert without_secrets({"headers": {"Authorization": "Bearer x", "X-Team": "a"}}) == {
        "headers": {"Authorization": "[secret]", "X-Team": "a"}
    }


def test_what_json_cannot_hold_becomes_text():
    values = {"usd": Decimal("1.50"), "at": datetime(2026, 1, 2, tzinfo=UTC), "share": 0.5, "on": True, "n": 3}
    assert without_secrets(values) == {
        "usd": "1.50",
        "at": "2026-01-02 00:00:00+00:00",
        "share": "0.5",
        "on": True,
        "n": 3,
    }
