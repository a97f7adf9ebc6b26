"""Strict JSON for request bodies: what two parsers could read differently is refused.

Refused: duplicate keys, NaN and infinities, numbers out of range, nesting over 100, invalid UTF-8, a byte order mark,
lone surrogates, anything behind the document.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from proxy.errors import BadRequest

MAX_DEPTH = 100
MAX_DIGITS = 300

_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


def decode_object(raw: bytes) -> dict[str, Any]:
    """The JSON object in `raw`. Raises BadRequest with code invalid_json or duplicate_key."""
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH:
        _check_depth(raw)
    try:
        value = _DECODER.decode(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise _invalid("The body is not valid UTF-8.") from None
    except json.JSONDecodeError as error:
        raise _invalid(f"The body is not valid JSON: {error.msg} at character {error.pos}.") from None
    except RecursionError:
        raise _invalid(f"The body is nested deeper than {MAX_DEPTH} levels.") from None
    if not isinstance(value, dict):
        raise _invalid("The body must be a JSON object.")
    if b"\\u" in raw:
        _check_surrogates(value)
    return value


def _invalid(message: str) -> BadRequest:
    return BadRequest(message, code="invalid_json")


def _check_depth(raw: bytes) -> None:
    brackets = _STRINGS.sub(b"", raw).translate(None, _NOT_BRACKETS)
    depth = 0
    for byte in brackets:
        depth += 1 if byte in b"[{" else -1
        if depth > MAX_DEPTH:
            raise _invalid(f"The body is nested deeper than {MAX_DEPTH} levels.")


def _check_surrogates(value: dict[str, Any]) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise _invalid("The body holds a lone surrogate.") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise BadRequest(
                    f"The key '{name[:100]}' occurs twice in one object.", code="duplicate_key", param=name[:100]
                )
            seen.add(name)
    return found


def _no_constant(name: str) -> NoReturn:
    raise _invalid(f"{name} is not JSON.")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise _invalid("A number is out of range.")
    return value


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise _invalid("A number is out of range.")
    return int(text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite, parse_int=_integer
)
