"""Bytes that were valid once: cut, doubled, swapped, spliced, with odd pieces put in."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

#: Pieces that mean something to one format or another, or to JSON.
ODD = [
    *(
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\x00",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xe2\x80\xa8",
        b":",
        b"data: ",
        b"event: error\n",
    ),
    *(
        b"data: [DONE]\n\n",
        b"[",
        b"]",
        b"{",
        b"}",
        b'"',
        b"\\",
        b",",
        b"null",
        b"true",
        b"-1",
        b"1e999",
        b"NaN",
        b"0.5",
    ),
    *(b"[[[[[[[[", b'{"a":' * 50, b"9" * 400, b"[]", b"{}", b'""', b"\\ud83c", b"\\u0000", b'"error":{"message":"x"},'),
    *(b'"index":-1', b'"index":99999', b'"index":"0"', b'"type":"error"', b'"choices":null', b'"usage":{"a":-5}'),
]

CUTS = st.lists(st.integers(0, 50_000), max_size=12)


@st.composite
def mutated(draw: Any, valid: bytes) -> bytes:
    """`valid` after a few changes."""
    data = valid
    for _ in range(draw(st.integers(1, 4))):
        data = _changed(draw, data)
    return data


def _changed(draw: Any, data: bytes) -> bytes:
    at, to = sorted(draw(st.tuples(st.integers(0, len(data)), st.integers(0, len(data)))))
    kind = draw(st.sampled_from(["insert", "replace", "drop", "double", "flip", "truncate", "to a value"]))
    odd = draw(st.sampled_from(ODD) | st.binary(max_size=6))
    if kind == "insert":
        return data[:at] + odd + data[at:]
    if kind == "replace":
        return data[:at] + odd + data[at + len(odd) :]
    if kind == "drop":
        return data[:at] + data[to:]
    if kind == "double":
        return data[:to] + data[at:]
    if kind == "truncate":
        return data[:to]
    if kind == "flip" and at < len(data):
        return data[:at] + bytes([data[at] ^ (1 << draw(st.integers(0, 7)))]) + data[at + 1 :]
    return _with_another_value(draw, data, at)


def _with_another_value(draw: Any, data: bytes, at: int) -> bytes:
    """A JSON member whose value is of another type."""
    colon = data.find(b'":', at)
    if colon < 0:
        return data
    end = min((place for mark in b",}]" if (place := data.find(bytes([mark]), colon)) > 0), default=len(data))
    value = draw(
        st.sampled_from([b"null", b"[]", b"{}", b'"x"', b"7", b"-1", b"1.5", b"true", b"[null]", b'[{"a":1}]'])
    )
    return data[: colon + 2] + value + data[end:]
