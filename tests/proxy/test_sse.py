"""Server-sent events and newline-delimited JSON, whole or in pieces."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.sse import MAX_BYTES, Event, LineParser, SseParser, frame
from tests.proxy.wire import pieces_of

CUTS = st.lists(st.integers(0, 10_000), max_size=12)
# Bytes in which every rule of the format turns up often.
TANGLE = st.lists(
    st.sampled_from(
        [
            *(b"data", b": ", b":", b"\n", b"\r", b"\r\n", b"\n\n", b"event", b" ", b"x", b"id: 1"),
            *(b"\xc3\xa9", b"\xef\xbb\xbf", b"\x00\xff", b"data: a\n\n", b"data:b\r\n\r\n", b"data: c\rdata: d\r\r"),
            *(b"event: error\n", b": ping\n\n"),
        ]
    ),
    max_size=30,
).map(b"".join)


def parse(pieces: list[bytes]) -> list[Event]:
    parser = SseParser()
    return [event for piece in pieces for event in parser.feed(piece)]


def by_the_letter(stream: bytes) -> list[Event]:
    """The WHATWG algorithm written down line by line, less events with blank data."""
    if stream.startswith(b"\xef\xbb\xbf"):
        stream = stream[3:]
    events: list[Event] = []
    data: list[bytes] = []
    name: bytes | None = None
    for line in re.split(rb"\r\n|\r|\n", stream)[:-1]:
        if line == b"":
            if b"\n".join(data).strip():
                events.append((name, b"\n".join(data)))
            data, name = [], None
            continue
        field, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value or None
    return events


@given(TANGLE)
def test_any_stream_is_read_by_the_letter_of_the_standard(stream):
    assert parse([stream]) == by_the_letter(stream)


@given(TANGLE, CUTS)
def test_any_cuts_give_the_same_events(stream, cuts):
    assert parse(pieces_of(stream, cuts)) == parse([stream])
    assert parse([stream[i : i + 1] for i in range(len(stream))]) == parse([stream])


@given(st.lists(st.binary(max_size=40), max_size=10))
def test_random_bytes_never_raise(pieces):
    parser = SseParser()
    for piece in pieces:
        parser.feed(piece)
    parser.flush()


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\n", [(None, b"a")]),
        (b"data:a\n\n", [(None, b"a")]),
        (b"data:  a\n\n", [(None, b" a")]),
        (b"data: a\ndata: b\n\n", [(None, b"a\nb")]),
        (b"event: error\ndata: a\n\n", [(b"error", b"a")]),
        (b"event: error\n\ndata: a\n\n", [(None, b"a")]),
        (b": comment\n\ndata: a\n\n: more\n\n", [(None, b"a")]),
        (b"data: a\r\ndata: b\r\n\r\n", [(None, b"a\nb")]),
        (b"data: a\r\n\r\ndata: b\r\rdata: c\n\n", [(None, b"a"), (None, b"b"), (None, b"c")]),
        (b"\xef\xbb\xbfdata: a\n\n", [(None, b"a")]),
        (b"data:\n\ndata: \n\ndata:   \n\n", []),
        (b"id: 7\nretry: 5\nnonsense\ndata: a\n\n", [(None, b"a")]),
        (b"data: a", []),
        (b"data: a\n", []),
    ],
)
def test_rules_of_the_format(stream, events):
    assert parse([stream]) == events
    assert parse([stream[i : i + 1] for i in range(len(stream))]) == events


def test_an_event_without_its_blank_line_comes_with_the_flush():
    parser = SseParser()
    assert parser.feed(b"data: a\n\ndata: [DONE]") == [(None, b"a")]
    assert parser.flush() == [(None, b"[DONE]")]


@pytest.mark.parametrize("size", [MAX_BYTES - 6, MAX_BYTES - 5])
@pytest.mark.parametrize("step", [1 << 30, 65_536])
def test_a_line_may_hold_one_mebibyte_and_no_more(size, step):
    stream = b"data: first\n\ndata: " + b"x" * size + b"\n\ndata: last\n\n"
    parser = SseParser()
    events = [event for at in range(0, len(stream), step) for event in parser.feed(stream[at : at + step])]
    if size + 6 <= MAX_BYTES:
        assert [len(data) for _, data in events] == [5, size, 4]
        assert parser.fault is None
    else:
        assert events == [(None, b"first")]
        assert parser.fault is not None
        assert parser.fault.kind == "protocol"


def test_an_event_of_many_lines_has_the_same_limit():
    parser = SseParser()
    line = b"data: " + b"x" * 1000 + b"\n"
    for _ in range(MAX_BYTES // 1000 + 1):
        assert parser.feed(line) == []
    assert parser.fault is not None
    assert parser.feed(b"\ndata: a\n\n") == []


def test_a_flood_of_comments_fills_no_buffer():
    parser = SseParser()
    for _ in range(3 * MAX_BYTES // 1000):
        parser.feed(b": " + b"x" * 1000 + b"\n")
    assert parser.fault is None
    assert parser.feed(b"data: a\n\n") == [(None, b"a")]


def test_frames_are_read_back_as_they_were_written():
    assert frame(b"{}") == b"data: {}\n\n"
    assert frame(b"{}", "done") == b"event: done\ndata: {}\n\n"
    assert parse([frame(b"a\nb"), frame(b"c", "error")]) == [(None, b"a\nb"), (b"error", b"c")]


@given(
    st.lists(st.sampled_from([b'{"a":1}', b"\n", b"\r\n", b" ", b"\xc3\xa9", b"\r"]), max_size=20).map(b"".join), CUTS
)
def test_lines_are_the_same_for_any_cuts(stream, cuts):
    def lines(pieces: list[bytes]) -> list[bytes]:
        parser = LineParser()
        found = [line for piece in pieces for line in parser.feed(piece)]
        return found + parser.flush()

    assert lines(pieces_of(stream, cuts)) == lines([stream]) == [x.strip() for x in stream.split(b"\n") if x.strip()]


def test_a_line_above_the_limit_is_a_fault_and_the_lines_before_it_are_not_lost():
    for step in (1 << 30, 65_536):
        stream = b"{}\n" + b"x" * (MAX_BYTES + 1) + b"\n{}\n"
        parser = LineParser()
        lines = [line for at in range(0, len(stream), step) for line in parser.feed(stream[at : at + step])]
        assert lines == [b"{}"]
        assert parser.fault is not None
        assert parser.flush() == []
