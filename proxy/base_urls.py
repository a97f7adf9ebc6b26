"""Which addresses a provider may have: plain http or https origins with an optional path, nothing clever."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_HOST = re.compile(r"(?!.*\.\.)[a-z0-9]([a-z0-9._-]{0,251}[a-z0-9])?|\[[0-9a-f:.]+\]")
_PATH = re.compile(r"(/[A-Za-z0-9._~%!$&'()*+,;=:@-]*)*")
_DOTS = re.compile(r"/\.{1,2}(/|$)")


def fault_of_base_url(text: str) -> str | None:
    """Why `text` cannot be a provider's base_url; None when it can. Nothing is resolved or connected."""
    if not text.isascii() or not text.isprintable() or " " in text or "\\" in text:
        return "must be printable ASCII without spaces and backslashes"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return "is no URL"
    if parts.scheme not in ("http", "https"):
        return "must begin with http:// or https://"
    if "@" in parts.netloc:
        return "must not hold a user name or password"
    if parts.query or parts.fragment or "?" in text or "#" in text:
        return "must not have a query or a fragment"
    host = parts.netloc.lower().removesuffix(f":{port}") if port is not None else parts.netloc.lower()
    if not _HOST.fullmatch(host) or port == 0:
        return "has no valid host and port"
    if not _PATH.fullmatch(parts.path) or _DOTS.search(parts.path):
        return "has a path with characters that do not belong there"
    return None
