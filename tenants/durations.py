"""Spans of time as people write them on the command line: 90d, 24h, 30m, 15s, 2w, 0h."""

from __future__ import annotations

import re
from datetime import timedelta

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION = re.compile(r"([0-9]{1,6})([smhdw])")


def parse_duration(text: str) -> timedelta:
    """The span that `text` names. Raises ValueError saying what is expected."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError("must be a number and a unit of s, m, h, d, w, such as 24h or 90d")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
