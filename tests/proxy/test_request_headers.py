"""What headers add to a call."""

from __future__ import annotations

import pytest

from proxy.context import OPENAI, Call
from proxy.errors import BadRequest
from proxy.request_headers import apply_headers


def call() -> Call:
    return Call(dialect=OPENAI, body={}, model="m", metadata={"team": "a"})


def test_metadata_of_the_header_joins_that_of_the_body() -> None:
    made = call()
    apply_headers(made, {b"x-tollbar-metadata": b'{"run": "7"}'})
    assert made.metadata == {"team": "a", "run": "7"}


@pytest.mark.parametrize("value", [b"", b"[]", b'{"a": 1}', b'{"a": "\\u0000"}', b"\xff"])
def test_metadata_that_is_no_object_of_texts_is_refused_by_name(value: bytes) -> None:
    with pytest.raises(BadRequest) as caught:
        apply_headers(call(), {b"x-tollbar-metadata": value})
    assert caught.value.param == "metadata"


def test_the_sdks_read_timeout_is_a_deadline() -> None:
    made = call()
    apply_headers(made, {b"x-stainless-read-timeout": b"2.5"})
    assert made.timeout_ms == 2500


@pytest.mark.parametrize("value", [b"0", b"-1", b"nan", b"inf", b"soon", b"1e9"])
def test_a_read_timeout_that_makes_no_sense_is_ignored(value: bytes) -> None:
    made = call()
    apply_headers(made, {b"x-stainless-read-timeout": value})
    assert made.timeout_ms is None


def test_anthropic_versions_are_kept_to_be_forwarded() -> None:
    made = call()
    apply_headers(made, {b"anthropic-version": b"2023-06-01", b"anthropic-beta": b"some-beta"})
    assert (made.anthropic_version, made.anthropic_beta) == ("2023-06-01", "some-beta")
