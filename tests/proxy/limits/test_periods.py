"""Calendar periods: they follow each other without gap or overlap, in every zone, through every clock change."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.periods import PERIODS, Period, period_at

CALENDAR = ("minute", "hour", "day", "week", "month")
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "America/Havana", "Asia/Beirut", "Pacific/Apia"]
# 2000 to 2037: what every time zone database has rules for.
moments = st.integers(946_684_800_000, 2_114_380_800_000)


def ms(text: str, zone: str = "UTC", fold: int = 0) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp() * 1000)


def end_of(period: Period) -> int:
    assert period.end_ms is not None
    return period.end_ms


@pytest.mark.parametrize(
    ("per", "zone", "now", "label", "start", "end"),
    [
        ("minute", "UTC", "2026-12-01T02:14:59.999", "2026-12-01T0214", "2026-12-01T02:14", "2026-12-01T02:15"),
        ("hour", "UTC", "2026-12-01T02:14", "2026-12-01T02", "2026-12-01T02:00", "2026-12-01T03:00"),
        ("hour", "Asia/Kolkata", "2026-12-01T02:14", "2026-12-01T02", "2026-12-01T02:00", "2026-12-01T03:00"),
        ("day", "UTC", "2026-12-31T23:59:59.999", "2026-12-31", "2026-12-31T00:00", "2027-01-01T00:00"),
        ("day", "Europe/Berlin", "2026-03-29T12:00", "2026-03-29", "2026-03-29T00:00", "2026-03-30T00:00"),
        ("week", "UTC", "2027-01-01T00:00", "2026-W53", "2026-12-28T00:00", "2027-01-04T00:00"),
        ("month", "UTC", "2026-12-15T00:00", "2026-12", "2026-12-01T00:00", "2027-01-01T00:00"),
        ("month", "America/New_York", "2026-02-28T23:59", "2026-02", "2026-02-01T00:00", "2026-03-01T00:00"),
    ],
)
def test_a_period_is_the_calendars_in_its_zone(per, zone, now, label, start, end):
    assert period_at(per, zone, ms(now, zone)) == Period(label, ms(start, zone), ms(end, zone))


def test_total_never_ends():
    period = period_at("total", "UTC", 0)
    assert (period.label, period.end_ms) == ("total", None)
    assert period.holds(2**50)


@given(st.sampled_from(CALENDAR), st.sampled_from(ZONES), moments)
def test_every_moment_lies_in_its_period_and_the_next_begins_where_it_ends(per, zone, now):
    period = period_at(per, zone, now)
    assert period.end_ms is not None
    assert period.start_ms <= now < period.end_ms
    following = period_at(per, zone, period.end_ms)
    assert following.start_ms == period.end_ms
    assert following.label != period.label
    assert period_at(per, zone, period.start_ms) == period == period_at(per, zone, period.end_ms - 1)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Havana", "Australia/Lord_Howe", "Africa/Cairo"])
@pytest.mark.parametrize("per", ["hour", "day"])
def test_a_year_of_periods_has_no_label_twice(per, zone):
    labels: list[str] = []
    ends: list[int] = []
    now, end = ms("2026-01-01T00:00", zone), ms("2027-01-01T00:00", zone)
    while now < end:
        period = period_at(per, zone, now)
        labels.append(period.label)
        now = end_of(period)
        ends.append(now)
    assert len(set(labels)) == len(labels)
    assert all(before < after for before, after in pairwise(ends))


def test_a_day_has_23_or_25_hours_when_the_clocks_change():
    lengths = {}
    for day in ("2026-03-29", "2026-06-01", "2026-10-25"):
        period = period_at("day", "Europe/Berlin", ms(f"{day}T12:00", "Europe/Berlin"))
        lengths[day] = timedelta(milliseconds=end_of(period) - period.start_ms) // timedelta(hours=1)
    assert lengths == {"2026-03-29": 23, "2026-06-01": 24, "2026-10-25": 25}


@given(st.sampled_from(sorted(available_timezones())), moments)
def test_every_zone_has_days(zone, now):
    period = period_at("day", zone, now)
    assert period.holds(now)
    assert period.label == datetime.fromtimestamp(now / 1000, UTC).astimezone(ZoneInfo(zone)).date().isoformat()


@pytest.mark.parametrize(("per", "zone"), [("year", "UTC"), ("day", "Mars/Base"), ("day", "../../etc/passwd")])
def test_what_is_unknown_is_refused(per, zone):
    with pytest.raises(ValueError, match="unknown"):
        period_at(per, zone, 0)


def test_the_names_are_those_of_the_configuration():
    assert (*CALENDAR, "total") == PERIODS
