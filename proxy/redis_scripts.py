"""The Lua scripts of the store, from proxy/lua. Each file's header states its KEYS, its ARGV and its answer."""

from __future__ import annotations

import hashlib
from pathlib import Path

_FOLDER = Path(__file__).parent / "lua"


class Script:
    """One script with its SHA-1, as EVALSHA names it. `counting.lua` goes before each."""

    __slots__ = ("name", "sha", "text")

    def __init__(self, name: str) -> None:
        self.name = name
        parts = ((_FOLDER / f"{part}.lua").read_text(encoding="utf-8") for part in ("counting", name))
        self.text = _without_comments("".join(parts))
        self.sha = hashlib.sha1(self.text.encode()).hexdigest()  # noqa: S324 (Redis names scripts by SHA-1)


def _without_comments(text: str) -> str:
    """Whole-line comments emptied: line numbers stay, and the embedded store compiles less at each call."""
    return "\n".join("" if line.lstrip().startswith("--") else line for line in text.split("\n"))


ADMIT = Script("admit")
SETTLE = Script("settle")
CANCEL = Script("cancel")
EXTEND = Script("extend")
READ_LIMITS = Script("read_limits")
RESTORE = Script("restore")

SCRIPTS = (ADMIT, SETTLE, CANCEL, EXTEND, READ_LIMITS, RESTORE)
