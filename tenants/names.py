"""What a name that people choose may hold: any script and sign, but nothing that hides or reorders text."""

from __future__ import annotations

import unicodedata

MAX_NAME_LENGTH = 100
#: Unicode categories that a reader cannot see or that change how the rest is read: controls, formats (bidi
#: overrides, zero-width characters), surrogates, private use, line and paragraph separators.
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def fault_of_name(text: str, longest: int = MAX_NAME_LENGTH) -> str | None:
    """Why `text` cannot be a name; None when it can."""
    if not text.strip():
        return "must not be empty"
    if len(text) > longest:
        return f"must have at most {longest} characters"
    if any(unicodedata.category(character) in _UNSEEN for character in text):
        return "must not hold control, zero-width or direction-changing characters"
    return None
