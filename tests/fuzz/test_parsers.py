"""Bytes of anybody: parsers raise what they say, do no more than their input asks for, and cuts change nothing."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from proxy.errors import BadRequest
from proxy.eventstream import EventStreamParser
from proxy.sse import LineParser, SseParser
from proxy.strict_json import decode_object
from tests.examples import examples
from tests.fakes.formats.bedrock_converse import message
from tests.fuzz.mutations import CUTS, ODD, mutated
from tests.fuzz.work import within
from tests.proxy.wire import pieces_of

SOUP = st.lists(st.sampled_from(ODD) | st.binary(max_size=8), max_size=40).map(b"".join)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
MESSAGES = st.lists(
    st.builds(message, st.text(max_size=8), st.dictionaries(st.text(max_size=4), st.text(max_size=9), max_size=2)),
    min_size=1,
    max_size=4,
).map(b"".join)


def fed(parser: Any, pieces: list[bytes]) -> tuple[list[Any], bool]:
    """What comes out, its end included, and whether there was a fault; within work that the input accounts for."""

    def run() -> list[Any]:
        found = [item for piece in pieces for item in parser.feed(piece)]
        return found + (parser.flush() if hasattr(parser, "flush") else [])

    size = sum(map(len, pieces))
    found = within(200 + 40 * (size + len(pieces)), run)
    assert len(found) <= size
    return found, parser.fault is not None


@examples(300)
@given(SOUP, CUTS)
def test_server_sent_events(soup, cuts):
    whole = fed(SseParser(), [soup])
    assert fed(SseParser(), pieces_of(soup, cuts)) == whole
    assert fed(SseParser(), [soup[at : at + 1] for at in range(len(soup))]) == whole


@examples(300)
@given(SOUP, CUTS)
def test_lines(soup, cuts):
    assert fed(LineParser(), pieces_of(soup, cuts)) == fed(LineParser(), [soup])


@examples(300)
@given(st.data(), MESSAGES, CUTS)
def test_event_streams(data, valid, cuts):
    soup = data.draw(mutated(valid) | st.just(valid))
    whole = fed(EventStreamParser(), [soup])
    assert fed(EventStreamParser(), pieces_of(soup, cuts)) == whole
    assert soup != valid or not whole[1]


@examples(200)
@given(SOUP | st.binary(max_size=200), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_event_streams_with_lengths_that_lie(body, total, headers):
    """A prelude that is sound by its checksum, whatever it says."""
    prelude = struct.pack(">II", total, headers)
    soup = prelude + struct.pack(">I", zlib.crc32(prelude)) + body
    found, _ = fed(EventStreamParser(), [soup + struct.pack(">I", zlib.crc32(soup))])
    assert len(found) <= 1


def outcome(raw: bytes) -> str | dict[str, Any]:
    try:
        return within(500 + 40 * len(raw), lambda: decode_object(raw))
    except BadRequest as error:
        return error.code


@examples(300)
@given(st.data(), st.dictionaries(st.text(max_size=6), VALUES, max_size=4))
def test_strict_json(data, document):
    """What is let through reads the same for a strict reader, and can be written again."""
    raw = data.draw(mutated(json.dumps(document, ensure_ascii=data.draw(st.booleans())).encode()) | SOUP)
    read = outcome(raw)
    if isinstance(read, str):
        assert read in ("invalid_json", "duplicate_key")
    else:
        assert json.loads(json.dumps(read, allow_nan=False).encode().decode()) == read == json.loads(raw)
