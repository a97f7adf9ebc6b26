"""What the reports of manage.py share: spans of days, and where the report goes."""

from __future__ import annotations

import argparse
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.core.management.base import CommandError, CommandParser


def day(text: str) -> date:
    """argparse type: 2026-01-31."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day such as 2026-01-31") from None


def today() -> date:
    return datetime.now(UTC).date()


def add_span(parser: CommandParser, default_days: int) -> None:
    """--from and --to, both days included."""
    parser.add_argument(
        "--from", dest="first", type=day, metavar="DAY", help=f"first day, UTC (default: {default_days} days back)"
    )
    parser.add_argument("--to", dest="last", type=day, metavar="DAY", help="last day, UTC (default: today)")
    parser.set_defaults(default_days=default_days)


def span(options: dict[str, Any]) -> tuple[date, date]:
    """The days asked for. Raises CommandError (usage) when they are the wrong way round."""
    last = options["last"] or today()
    first = options["first"] or last - timedelta(days=options["default_days"] - 1)
    if first > last:
        raise CommandError(f"--from {first} is after --to {last}.", returncode=2)
    return first, last


def positive(text: str) -> int:
    """argparse type: an integer from 1 on."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return number
