"""Calendar periods of quotas and budgets: minute, hour, day, week (from Monday), month and total, in a time zone.

A period's label is part of its counter's key, so a new period begins with a new counter, and what is settled later
still goes to the period of its admission. Days and longer end at local midnight; where a clock change leaves midnight
out, at the change.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

import msgspec

#: The names that configuration may use.
PERIODS = ("minute", "hour", "day", "week", "month", "total")

_FIXED_MS = {"minute": 60_000, "hour": 3_600_000}


class Period(msgspec.Struct, frozen=True):
    """From `start_ms` to before `end_ms` (epoch ms; None for `total`)."""

    label: str
    start_ms: int
    end_ms: int | None

    def holds(self, now_ms: int) -> bool:
        return self.start_ms <= now_ms and (self.end_ms is None or now_ms < self.end_ms)


TOTAL = Period("total", 0, None)

_current: dict[tuple[str, str], Period] = {}


def period_at(per: str, timezone: str, now_ms: int) -> Period:
    """The period that `now_ms` lies in. Raises ValueError for an unknown `per` or time zone."""
    known = _current.get((per, timezone))
    if known is None or not known.holds(now_ms):
        known = _current[per, timezone] = _period(per, _zone(timezone), now_ms)
    return known


def _period(per: str, zone: tzinfo, now_ms: int) -> Period:
    if per == "total":
        return TOTAL
    local = datetime.fromtimestamp(now_ms / 1000, zone)
    if per in _FIXED_MS:
        return _of_fixed_length(per, local, now_ms)
    today = local.date()
    if per == "day":
        first, following, label = today, today + timedelta(days=1), today.isoformat()
    elif per == "week":
        first = today - timedelta(days=today.weekday())
        following = first + timedelta(days=7)
        year, week, _ = first.isocalendar()
        label = f"{year}-W{week:02d}"
    elif per == "month":
        first = today.replace(day=1)
        following = (first + timedelta(days=32)).replace(day=1)
        label = f"{first:%Y-%m}"
    else:
        raise ValueError(f"unknown period {per!r}")
    return Period(label, _midnight_ms(first, zone), _midnight_ms(following, zone))


def _of_fixed_length(per: str, local: datetime, now_ms: int) -> Period:
    """Minutes and hours by the zone's offset from UTC now; an hour that a clock change repeats is labelled apart."""
    length = _FIXED_MS[per]
    offset = local.utcoffset() or timedelta()
    start = now_ms - (now_ms + offset // timedelta(milliseconds=1)) % length
    shape = "%Y-%m-%dT%H%M" if per == "minute" else "%Y-%m-%dT%H"
    return Period(local.strftime(shape) + ("b" if local.fold else ""), start, start + length)


def _midnight_ms(day: date, zone: tzinfo) -> int:
    return round(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp() * 1000)


@lru_cache(maxsize=1024)
def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        raise ValueError(f"unknown time zone {name!r}") from None
