from datetime import timedelta

import pytest

from tenants.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("90d", timedelta(days=90)),
        ("24h", timedelta(hours=24)),
        ("0h", timedelta(0)),
        ("30m", timedelta(minutes=30)),
        ("15s", timedelta(seconds=15)),
        ("2W", timedelta(weeks=2)),
    ],
)
def test_a_number_and_a_unit_is_a_span(text, span):
    assert parse_duration(text) == span


@pytest.mark.parametrize("text", ["", "90", "d", "-1d", "1.5h", "1 d", "1y", "٣d", "9999999d"])
def test_everything_else_is_refused(text):
    with pytest.raises(ValueError, match="24h"):
        parse_duration(text)
