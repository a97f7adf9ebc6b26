"""What a Claude model accepts, by its name."""

import pytest

from proxy.anthropic_format import models


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("claude-3-haiku-20240307", (3, 0)),
        ("claude-3-7-sonnet-latest", (3, 7)),
        ("claude-sonnet-4-20250514", (4, 0)),
        ("claude-opus-4-1-20250805", (4, 1)),
        ("claude-sonnet-4-5", (4, 5)),
        ("claude-haiku-4-5@20251001", (4, 5)),
        ("anthropic/claude-opus-4.7", (4, 7)),
        ("us.anthropic.claude-opus-4-6-v1:0", (4, 6)),
        ("claude-sonnet-5", (5, 0)),
        ("claude-2.1", (2, 1)),
        ("claude-v2", (2, 0)),
        ("my-claude", None),
        ("claude-latest", None),
        ("gpt-4o", None),
    ],
)
def test_versions(name, version):
    assert models.version_of(name) == version


@pytest.mark.parametrize(
    ("name", "mode", "sampling", "both", "schema"),
    [
        ("claude-3-5-haiku-20241022", None, True, True, False),
        ("claude-3-7-sonnet-20250219", "budget", True, True, False),
        ("claude-opus-4-1", "budget", True, False, True),
        ("claude-sonnet-4-5", "budget", True, False, True),
        ("claude-sonnet-4-6", "adaptive", True, False, True),
        ("claude-opus-4-7", "adaptive", False, False, True),
        ("claude-haiku-5-5", "adaptive", False, False, True),
        ("my-claude", None, True, False, True),
    ],
)
def test_what_is_accepted(name, mode, sampling, both, schema):
    assert models.thinking_mode(name) == mode
    assert models.takes_sampling(name) == sampling
    assert models.takes_both_sampling_parameters(name) == both
    assert models.takes_schema(name) == schema
