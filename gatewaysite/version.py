"""The version of Tollbar, from the one place that names it."""

from __future__ import annotations

import tomllib
from functools import cache

from gatewaysite.env import BASE_DIR


@cache
def version() -> str:
    project = tomllib.loads((BASE_DIR / "pyproject.toml").read_text(encoding="utf-8"))
    return str(project["project"]["version"])
