"""API keys as text: how they are made, recognised and digested. Pure: no database, no settings.

A generated key is `tb_<live|test>_<id>_<secret><check>`: 12, 43 and 6 characters of base62. The id is public (it names
the key in lists and in the audit log), the secret holds 256 bits, the check is the CRC32 of all before it, so that a
mistyped or truncated key is refused without asking anything. An imported key is any text of 24 or more characters.
"""

from __future__ import annotations

import hmac
import re
import secrets
import zlib
from typing import NamedTuple

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ID_LENGTH, SECRET_LENGTH, CHECK_LENGTH = 12, 43, 6
LIVE, TEST = "live", "test"
MIN_IMPORTED_LENGTH, MAX_IMPORTED_LENGTH = 24, 512

_GENERATED = re.compile(
    rf"tb_(?P<environment>{LIVE}|{TEST})_(?P<id>[0-9A-Za-z]{{{ID_LENGTH}}})"
    rf"_[0-9A-Za-z]{{{SECRET_LENGTH}}}(?P<check>[0-9A-Za-z]{{{CHECK_LENGTH}}})"
)
_PRINTABLE = re.compile(r"[!-~]+")


class ParsedKey(NamedTuple):
    """What a well-formed generated key says of itself."""

    environment: str
    id: str


def new_id() -> str:
    return _random(ID_LENGTH)


def generate(key_id: str, environment: str) -> str:
    """A new key with the public id `key_id`; `environment` is live or test."""
    body = f"tb_{environment}_{key_id}_{_random(SECRET_LENGTH)}"
    return body + _check(body)


def looks_like_generated(text: str) -> bool:
    """Whether `text` claims to be one of ours, so that `parse` decides about it."""
    return text.startswith((f"tb_{LIVE}_", f"tb_{TEST}_"))


def parse(text: str) -> ParsedKey | None:
    """What a generated key says; None when its form or its check is wrong. No I/O."""
    match = _GENERATED.fullmatch(text)
    if match is None or _check(text[:-CHECK_LENGTH]) != match["check"]:
        return None
    return ParsedKey(match["environment"], match["id"])


def fault_of_imported(text: str) -> str | None:
    """Why `text` cannot be a key's secret (without the text); None when it can."""
    if len(text) < MIN_IMPORTED_LENGTH:
        return f"must have at least {MIN_IMPORTED_LENGTH} characters"
    if len(text) > MAX_IMPORTED_LENGTH:
        return f"must have at most {MAX_IMPORTED_LENGTH} characters"
    if not _PRINTABLE.fullmatch(text):
        return "must be printable ASCII without spaces"
    if text.count(".") == 2 and not text.startswith("tb_"):
        return "must not consist of three parts separated by dots: a caller's JWT does"
    if looks_like_generated(text) and parse(text) is None:
        return "begins like a generated key, but its check is wrong"
    return None


def digest(pepper: bytes, secret: str) -> bytes:
    """HMAC-SHA256 of the whole key as the caller sends it: what is stored and looked up."""
    return hmac.digest(pepper, secret.encode(), "sha256")


def _random(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def _check(text: str) -> str:
    number = zlib.crc32(text.encode())
    digits = ""
    for _ in range(CHECK_LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits
