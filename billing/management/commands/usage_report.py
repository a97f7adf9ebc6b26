"""usage_report: who used what, for finance."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TextIO

from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing.command_line import add_span, span
from billing.reports import csv_line
from billing.selectors import GROUPINGS, Row, usage, usage_columns


class Command(BaseCommand):
    help = "Usage and cost of all tenants by tenant, model, day, provider or key, as CSV or JSON."

    def add_arguments(self, parser: CommandParser) -> None:
        add_span(parser, default_days=30)
        parser.add_argument(
            "--group-by",
            type=groupings,
            default=("tenant", "model", "day"),
            metavar="FIELDS",
            help=f"some of {','.join(GROUPINGS)} (default: tenant,model,day)",
        )
        parser.add_argument("--format", choices=("csv", "json"), default="csv", help="default: csv")
        parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to a file (default: stdout)")

    def handle(self, *_args: Any, **options: Any) -> None:
        first, last = span(options)
        columns = usage_columns(options["group_by"])
        rows = usage(first, last, options["group_by"])
        pieces = _csv(columns, rows) if options["format"] == "csv" else _json(rows)
        try:
            with _target(options["output"], self.stdout) as target:
                for piece in pieces:
                    target.write(piece)
        except OSError as error:
            raise CommandError(f"{options['output']}: {error.strerror}") from None
        if options["output"]:
            self.stderr.write(f"Written to {options['output']}.")


def groupings(text: str) -> tuple[str, ...]:
    """argparse type: tenant,model,day."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    unknown = [name for name in names if name not in GROUPINGS]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(GROUPINGS)}")
    return names


def _target(path: Path | None, stdout: Any) -> AbstractContextManager[TextIO]:
    if path is not None:
        return path.open("w", encoding="utf-8", newline="")
    return contextlib.nullcontext(getattr(stdout, "_out", sys.stdout))  # without Django's line endings


def _csv(columns: list[str], rows: Iterator[Row]) -> Iterator[str]:
    yield csv_line(columns)
    for row in rows:
        yield csv_line(row[column] for column in columns)


def _json(rows: Iterator[Row]) -> Iterator[str]:
    """One array, a row a line."""
    separator = "[\n"
    for row in rows:
        yield separator + json.dumps(row, ensure_ascii=False)
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"
