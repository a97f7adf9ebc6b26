"""Bodies that two parsers could read differently are refused, and named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.errors import BadRequest
from proxy.strict_json import MAX_DEPTH, decode_object

REFUSED = {
    "an empty body": b"",
    "an array": b"[]",
    "a text": b'"hello"',
    "a cut object": b'{"a": 1',
    "something behind it": b"{}{}",
    "NaN": b'{"a": NaN}',
    "infinity": b'{"a": -Infinity}',
    "a number beyond floats": b'{"a": 1e999}',
    "a number of 5,000 digits": b'{"a": ' + b"9" * 5000 + b"}",
    "bytes that are not UTF-8": b'{"a": "\xff"}',
    "an overlong encoding": b'{"a": "\xc0\xaf"}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "a lone surrogate": b'{"a": "\\ud800"}',
    "nesting without end": b'{"a":' + b"[" * 100_000,
    "objects too deep": b'{"a":' * 101 + b"1" + b"}" * 101,
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_strict_json_is_refused(what: str) -> None:
    with pytest.raises(BadRequest) as caught:
        decode_object(REFUSED[what])
    assert caught.value.code == "invalid_json"


@pytest.mark.parametrize("raw", [b'{"model": 1, "model": 2}', b'{"a": [{"b": 1, "c": 2, "b": 3}]}'])
def test_a_key_that_occurs_twice_is_named(raw: bytes) -> None:
    with pytest.raises(BadRequest) as caught:
        decode_object(raw)
    assert (caught.value.code, caught.value.param) in {("duplicate_key", "model"), ("duplicate_key", "b")}


def test_nesting_up_to_the_limit_and_brackets_in_texts_are_fine() -> None:
    deepest = b'{"a":' * (MAX_DEPTH - 1) + b"{}" + b"}" * (MAX_DEPTH - 1)
    assert "a" in decode_object(deepest)
    assert decode_object(json.dumps({"a": "[{" * 500}).encode()) == {"a": "[{" * 500}


def test_a_nul_in_a_prompt_passes() -> None:
    assert decode_object(b'{"a": "x\\u0000y"}') == {"a": "x\x00y"}


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), VALUES, max_size=5), st.booleans())
def test_every_document_that_json_can_write_comes_back(document: dict[str, Any], escaped: bool) -> None:
    try:
        raw = json.dumps(document, ensure_ascii=escaped).encode()
    except UnicodeEncodeError:
        return  # a lone surrogate, which is refused (above)
    if b"\\ud" in raw:
        return
    assert decode_object(raw) == document


@given(st.binary(max_size=200))
def test_any_bytes_are_an_object_or_a_bad_request(raw: bytes) -> None:
    try:
        outcome: object = decode_object(raw)
    except BadRequest as error:
        outcome = error.code
    assert isinstance(outcome, dict) or outcome in {"invalid_json", "duplicate_key"}
