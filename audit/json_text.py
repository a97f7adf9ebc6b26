"""JSON for people to read on a page."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

#: Characters that a reader cannot see or that reorder what follows are shown by their number, as JSON writes them.
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def pretty_json(value: Any) -> SafeString:
    """A block of indented JSON, escaped. A text that is no JSON is shown as it is."""
    if isinstance(value, bytes | memoryview):
        value = bytes(value).decode("utf-8", "replace")
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return _block(value)
    return _block(json.dumps(value, indent=2, ensure_ascii=False))


def _block(text: str) -> SafeString:
    return format_html('<pre class="tollbar-json">{}</pre>', "".join(map(_visible, text)))


def _visible(character: str) -> str:
    if character == "\n" or unicodedata.category(character) not in _UNSEEN:
        return character
    return json.dumps(character)[1:-1] if ord(character) != 0x7F else "\\u007f"
