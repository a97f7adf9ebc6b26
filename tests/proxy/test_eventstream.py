"""AWS event streams: whole messages out of bytes in any chunks, broken ones told apart."""

import struct
import zlib

import pytest
from botocore.eventstream import EventStreamBuffer
from hypothesis import given
from hypothesis import strategies as st

from proxy.eventstream import MAX_MESSAGE_BYTES, EventStreamParser, Message
from tests.proxy.bedrock_wire import frame, header, text_frame
from tests.proxy.wire import pieces_of

PLAIN = text_frame({":event-type": "chunk"}, b"{}")

names = st.text(min_size=1, max_size=20).filter(lambda name: len(name.encode()) < 256)
texts = st.dictionaries(names, st.text(max_size=40), max_size=4)
streams = st.lists(st.tuples(texts, st.binary(max_size=60)), max_size=5)


def parsed(data: bytes) -> list[Message]:
    parser = EventStreamParser()
    messages = parser.feed(data)
    assert parser.fault is None, parser.fault.message
    return messages


def fault_of(data: bytes) -> str:
    parser = EventStreamParser()
    parser.feed(data)
    assert parser.fault is not None
    assert (parser.fault.kind, parser.fault.status) == ("protocol", 200)
    assert parser.feed(PLAIN) == []
    return parser.fault.message


@given(streams, st.lists(st.integers(0, 10_000), max_size=30))
def test_any_chunking_gives_the_same_messages(stream, cuts):
    data = b"".join(text_frame(headers, payload) for headers, payload in stream)
    parser = EventStreamParser()
    found = [message for piece in pieces_of(data, cuts) for message in parser.feed(piece)]
    assert found == [Message(headers, payload) for headers, payload in stream]
    assert (parser.fault, parser.pending) == (None, False)


@given(streams)
def test_botocore_reads_the_same(stream):
    data = b"".join(text_frame(headers, payload) for headers, payload in stream)
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    assert parsed(data) == [Message(message.headers, message.payload) for message in buffer]


def test_every_type_of_header():
    headers = b"".join(
        (
            header("yes", 0, b""),
            header("no", 1, b""),
            header("byte", 2, b"\xff"),
            header("short", 3, struct.pack(">h", -2)),
            header("int", 4, struct.pack(">i", 70_000)),
            header("long", 5, struct.pack(">q", -(2**40))),
            header("bytes", 6, b"\x00\x01"),
            header("text", 7, "Grüße".encode()),
            header("time", 8, struct.pack(">q", 1_700_000_000_000)),
            header("uuid", 9, bytes(range(16))),
        )
    )
    (message,) = parsed(frame(headers, b"x"))
    assert message.headers == {
        "yes": True,
        "no": False,
        "byte": -1,
        "short": -2,
        "int": 70_000,
        "long": -(2**40),
        "bytes": b"\x00\x01",
        "text": "Grüße",
        "time": 1_700_000_000_000,
        "uuid": bytes(range(16)),
    }
    assert (message.text("text"), message.text("int"), message.text("none")) == ("Grüße", "", "")


@pytest.mark.parametrize("place", range(len(PLAIN)))
def test_a_flipped_bit_anywhere_is_noticed(place):
    broken = bytearray(PLAIN)
    broken[place] ^= 1
    assert "checksum" in fault_of(bytes(broken))


def test_messages_before_a_broken_one_still_come():
    parser = EventStreamParser()
    broken = PLAIN[:-1] + b"\x00"
    assert [message.payload for message in parser.feed(PLAIN + PLAIN + broken + PLAIN)] == [b"{}", b"{}"]
    assert parser.fault is not None


def test_a_message_above_the_cap_is_refused_by_its_prelude_alone():
    whole = text_frame({}, b"x" * MAX_MESSAGE_BYTES)
    assert "more than" in fault_of(whole[:12])
    assert len(parsed(text_frame({}, b"x" * (MAX_MESSAGE_BYTES - 16)))) == 1


@pytest.mark.parametrize(
    ("headers", "complaint"),
    [
        (b"\x03abc", "cut"),
        (b"\x01a\x07\x00\x09short", "cut"),
        (b"\x01a\x04\x00", "cut"),
        (b"\x01a\x06\x00", "cut"),
        (b"\x01a\x0b", "type 11"),
        (b"\x01\xff\x00", "UTF-8"),
        (b"\x01a\x07\x00\x01\xff", "UTF-8"),
    ],
)
def test_headers_that_make_no_sense(headers, complaint):
    assert complaint in fault_of(frame(headers, b""))


def test_a_message_shorter_than_its_headers():
    prelude = struct.pack(">II", 20, 100)
    assert "shorter" in fault_of(prelude + struct.pack(">I", zlib.crc32(prelude)))


def test_what_is_no_event_stream_at_all():
    assert "checksum" in fault_of(b'{"message": "no"}')


def test_a_message_that_is_cut_waits_for_its_rest():
    parser = EventStreamParser()
    assert parser.feed(PLAIN[:20]) == []
    assert parser.pending
    assert len(parser.feed(PLAIN[20:])) == 1
    assert not parser.pending
