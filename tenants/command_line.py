"""What the commands of manage.py share: who runs them, how they show data, and spans of time as arguments.

Data goes to stdout and nothing else does; progress goes to stderr.
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, OutputWrapper

from tenants.durations import parse_duration
from tenants.models import Tenant
from tenants.selectors import tenant_by_slug


def current_actor() -> str:
    """Who the audit log names: `cli:` and the login of the process's user."""
    try:
        login = getpass.getuser()
    except (KeyError, OSError):  # a container's user need not have a name
        login = f"uid-{os.getuid()}"
    return f"cli:{login}"


def duration(text: str) -> timedelta:
    """argparse type: 24h, 90d."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} {error}") from None


def names(values: Sequence[str] | None, default: list[str]) -> list[str]:
    """A list given as several arguments, with commas, or both."""
    found = [part.strip() for value in values or () for part in value.split(",") if part.strip()]
    return found or default


def tenant_named(slug: str) -> Tenant:
    """The tenant, or the command ends with status 1."""
    tenant = tenant_by_slug(slug)
    if tenant is None:
        raise CommandError(f"There is no tenant {slug!r}.")
    return tenant


def refused(error: ValidationError) -> CommandError:
    """A refusal of a service as the command's last line."""
    return CommandError(" ".join(str(message) for message in error.messages))


def moment(value: datetime | None) -> str | None:
    """ISO 8601 in UTC, as JSON answers show it."""
    return value.isoformat(timespec="seconds").replace("+00:00", "Z") if value else None


def write_json(stdout: OutputWrapper, data: Any) -> None:
    stdout.write(json.dumps(data, indent=2, ensure_ascii=False, default=str))


def write_table(stdout: OutputWrapper, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Columns padded to their widest value; an empty list shows its heading only."""
    texts = [["" if value is None else str(value) for value in row] for row in (columns, *rows)]
    widths = [max(len(row[number]) for row in texts) for number in range(len(columns))]
    for row in texts:
        stdout.write("  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip())
