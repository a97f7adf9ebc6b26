"""AWS event streams (application/vnd.amazon.eventstream): bytes in any chunks in, whole messages out.

A message is a prelude (total length, length of the headers, CRC32 of these two), headers, a payload and the CRC32 of
all before it, numbers big-endian (Smithy specification, "Amazon Event Stream"). Both checksums are checked. Any
chunking of a stream gives the same messages. A broken or oversized message sets `fault`, and from then on nothing comes
out.
"""

from __future__ import annotations

import struct
import zlib

import msgspec

from proxy.errors import UpstreamFault

#: The most a message may hold, prelude and checksums included (bytes), and its headers as the specification caps them.
MAX_MESSAGE_BYTES = 1 << 20
MAX_HEADERS_BYTES = 128 << 10

_PRELUDE = struct.Struct(">III")
_CRC = struct.Struct(">I")
_LENGTH = struct.Struct(">H")

#: The length of what a header of a type holds (bytes); types 6 and 7 say it themselves.
_FIXED = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
_BYTES, _STRING = 6, 7
_BOOLEANS = {0: True, 1: False}
_INTEGERS = (2, 3, 4, 5, 8)

#: Booleans, integers (a timestamp is one, in milliseconds since 1970), bytes (a UUID is 16 of them) or texts.
Header = bool | int | bytes | str


class Message(msgspec.Struct, frozen=True):
    headers: dict[str, Header]
    payload: bytes

    def text(self, name: str) -> str:
        """A header that is a text; "" when there is none."""
        value = self.headers.get(name)
        return value if isinstance(value, str) else ""


class EventStreamParser:
    """Splits one stream."""

    __slots__ = ("_buffer", "fault")

    def __init__(self) -> None:
        self.fault: UpstreamFault | None = None
        self._buffer = bytearray()

    @property
    def pending(self) -> bool:
        """Whether a message was begun that has not ended."""
        return bool(self._buffer)

    def feed(self, chunk: bytes) -> list[Message]:
        """The messages that `chunk` completes."""
        if self.fault is not None:
            return []
        self._buffer += chunk
        messages: list[Message] = []
        start = 0
        try:
            while (total := self._whole(start)) is not None:
                messages.append(_message(memoryview(self._buffer)[start : start + total].tobytes()))
                start += total
        except _Broken as broken:
            self.fault = UpstreamFault("protocol", f"a broken event stream: {broken}", status=200)
            self._buffer.clear()
            return messages
        if start:
            del self._buffer[:start]
        return messages

    def _whole(self, start: int) -> int | None:
        """The length of the message at `start`, None while it is not all there."""
        there = len(self._buffer) - start
        if there < _PRELUDE.size:
            return None
        total, headers, crc = _PRELUDE.unpack_from(self._buffer, start)
        if zlib.crc32(self._buffer[start : start + 8]) != crc:
            raise _Broken("the checksum of a prelude is wrong")
        if total > MAX_MESSAGE_BYTES or headers > MAX_HEADERS_BYTES:
            raise _Broken(f"a message of more than {MAX_MESSAGE_BYTES} bytes")
        if total < _PRELUDE.size + headers + _CRC.size:
            raise _Broken("a message shorter than its headers")
        return total if there >= total else None


class _Broken(Exception):
    """What is wrong with a message."""


def _message(data: bytes) -> Message:
    if zlib.crc32(data[: -_CRC.size]) != _CRC.unpack_from(data, len(data) - _CRC.size)[0]:
        raise _Broken("the checksum of a message is wrong")
    end = _PRELUDE.size + _PRELUDE.unpack_from(data)[1]
    return Message(_headers(data[_PRELUDE.size : end]), data[end : -_CRC.size])


def _headers(data: bytes) -> dict[str, Header]:
    headers: dict[str, Header] = {}
    position = 0
    try:
        while position < len(data):
            name_end = position + 1 + data[position]
            name, kind = data[position + 1 : name_end].decode(), data[name_end]
            position = name_end + 1
            if kind in _FIXED:
                length = _FIXED[kind]
            elif kind in {_BYTES, _STRING}:
                (length,) = _LENGTH.unpack_from(data, position)
                position += _LENGTH.size
            else:
                raise _Broken(f"a header of type {kind}")
            if position + length > len(data):
                raise _Broken("a header that is cut")
            headers[name] = _value(kind, data[position : position + length])
            position += length
    except (IndexError, struct.error):
        raise _Broken("a header that is cut") from None
    except UnicodeDecodeError:
        raise _Broken("a header that is no UTF-8") from None
    return headers


def _value(kind: int, data: bytes) -> Header:
    if kind in _BOOLEANS:
        return _BOOLEANS[kind]
    if kind in _INTEGERS:
        return int.from_bytes(data, "big", signed=True)
    return data.decode() if kind == _STRING else data
