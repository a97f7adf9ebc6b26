"""Server-sent events and newline-delimited JSON: bytes in any chunks in, whole events or lines out.

`SseParser` follows the WHATWG rules (HTML, section 9.2.6): lines end in LF, CRLF or CR, a byte order mark and comments
are skipped, one space after the colon is dropped, data lines are joined by LF. Nothing is decoded: cuts inside a
character do no harm. Any chunking of a stream gives the same events. A line or an event above `MAX_BYTES` sets `fault`,
and from then on nothing comes out.
"""

from __future__ import annotations

import re

from proxy.errors import UpstreamFault

#: The most a line, or the data of an event, may hold.
MAX_BYTES = 1 << 20

#: An event: its name (None when it has none) and its data.
Event = tuple[bytes | None, bytes]

_BOM = b"\xef\xbb\xbf"

#: More blank lines than one say nothing: a flood of them is cut short before it is split.
_BLANK_LINES = re.compile(rb"\n{3,}")

#: An event of the usual form with a name: two lines, nothing blank.
_NAMED = re.compile(rb"event: ([^\n]+)\ndata: ([^\n\x00-\x20][^\n]*)")


def frame(data: bytes, event: str | None = None) -> bytes:
    """One event as bytes; `data` has no CR."""
    if b"\n" in data:
        data = data.replace(b"\n", b"\ndata: ")
    if event is None:
        return b"data: %b\n\n" % data
    return b"event: %b\ndata: %b\n\n" % (event.encode(), data)


def _too_long() -> UpstreamFault:
    return UpstreamFault("protocol", f"a line or event of the stream is longer than {MAX_BYTES} bytes")


class SseParser:
    """Splits one stream. Events with blank data are dropped, as are `id` and `retry`."""

    __slots__ = ("_after_cr", "_at_start", "_data", "_data_size", "_name", "_partial", "_partial_size", "fault")

    def __init__(self) -> None:
        self.fault: UpstreamFault | None = None
        self._partial: list[bytes] = []  # pieces of the line that has not ended yet
        self._partial_size = 0
        self._data: list[bytes] = []  # data lines of the event that has not ended yet
        self._data_size = 0
        self._name: bytes | None = None
        self._after_cr = False  # a LF that comes next belongs to the CR before it
        self._at_start = True  # the first line may begin with a byte order mark

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that `chunk` completes."""
        if self.fault is not None:
            return []
        chunk = self._tidied(chunk)
        end = chunk.rfind(b"\n\n")
        if end < 0 or self._data or self._name is not None:
            return self._feed_lines(chunk)
        # Here the chunk's first line goes on where the partial line stopped, and the rest are whole events.
        block = chunk[:end]
        if self._partial:
            block = b"".join(self._partial) + block
            self._clear_partial()
        events: list[Event] = []
        small = len(block) <= MAX_BYTES
        for part in self._without_bom(block).split(b"\n\n"):
            if small and part[:6] == b"data: " and part.find(b"\n") < 0 and part[6:7] > b" ":
                events.append((None, part[6:]))
            elif small and (found := _NAMED.fullmatch(part)):
                events.append((found[1], found[2]))
            elif not self._add_part(part, events):
                return events
        tail = chunk[end + 2 :]
        if tail:
            events += self._feed_lines(tail)
        return events

    def flush(self) -> list[Event]:
        """The event that the end of the stream left without its blank line. WHATWG drops it; some providers end so."""
        if self.fault is not None:
            return []
        return self._feed_lines(b"\n\n")

    def _tidied(self, chunk: bytes) -> bytes:
        """The same with LF for every end of a line, and no more than one blank line at a time."""
        if self._after_cr or b"\r" in chunk:
            chunk = self._without_cr(chunk)
        return _BLANK_LINES.sub(b"\n\n", chunk) if b"\n\n\n" in chunk else chunk

    def _without_cr(self, chunk: bytes) -> bytes:
        if self._after_cr and chunk[:1] == b"\n":
            chunk = chunk[1:]
            self._after_cr = False
        if chunk:
            self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _without_bom(self, text: bytes) -> bytes:
        """`text` begins with a whole line or block; the first one of the stream may have a byte order mark."""
        if self._at_start:
            self._at_start = False
            if text.startswith(_BOM):
                return text[len(_BOM) :]
        return text

    def _add_part(self, part: bytes, events: list[Event]) -> bool:
        """An event of any form; False when it is too long."""
        for line in part.split(b"\n"):
            if not self._add_line(line, events):
                return False
        return self._add_line(b"", events)

    def _feed_lines(self, chunk: bytes) -> list[Event]:
        events: list[Event] = []
        first, *lines = chunk.split(b"\n")
        if not lines:
            self._keep(first)
            return events
        if self._partial:
            self._partial.append(first)
            first = b"".join(self._partial)
            self._clear_partial()
        rest = lines.pop()
        for line in (first, *lines):
            if not self._add_line(self._without_bom(line), events):
                return events
        self._keep(rest)
        return events

    def _keep(self, piece: bytes) -> None:
        """The beginning, or more, of a line that has not ended."""
        if piece:
            self._partial.append(piece)
            self._partial_size += len(piece)
            if self._partial_size > MAX_BYTES:
                self._give_up()

    def _add_line(self, line: bytes, events: list[Event]) -> bool:
        """Take one whole line; False when it, or its event, is too long."""
        if not line:
            data = b"\n".join(self._data)
            if data and not data.isspace():
                events.append((self._name, data))
            self._clear_event()
            return True
        if len(line) > MAX_BYTES:
            self._give_up()
            return False
        field, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if field == b"data":
            self._data.append(value)
            self._data_size += len(value) + 1
            if self._data_size > MAX_BYTES:
                self._give_up()
                return False
        elif field == b"event":
            self._name = value or None
        return True

    def _clear_partial(self) -> None:
        self._partial = []
        self._partial_size = 0

    def _clear_event(self) -> None:
        self._data = []
        self._data_size = 0
        self._name = None

    def _give_up(self) -> None:
        self.fault = _too_long()
        self._clear_partial()
        self._clear_event()


class LineParser:
    """Splits newline-delimited JSON. Blank lines are dropped; LF and CRLF end a line."""

    __slots__ = ("_partial", "_partial_size", "fault")

    def __init__(self) -> None:
        self.fault: UpstreamFault | None = None
        self._partial: list[bytes] = []
        self._partial_size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes."""
        if self.fault is not None:
            return []
        first, *lines = chunk.split(b"\n")
        if not lines:
            self._keep(first)
            return []
        rest = lines.pop()
        if self._partial:
            first = b"".join([*self._partial, first])
            self._partial = []
            self._partial_size = 0
        found = self._whole([first, *lines])
        if self.fault is None:
            self._keep(rest)
        return found

    def flush(self) -> list[bytes]:
        """The last line, when the stream ended without a newline."""
        last, self._partial = b"".join(self._partial), []
        self._partial_size = 0
        return [] if self.fault is not None else self._whole([last])

    def _whole(self, lines: list[bytes]) -> list[bytes]:
        found = []
        for line in lines:
            if len(line) > MAX_BYTES:
                self.fault = _too_long()
                break
            text = line.strip()
            if text:
                found.append(text)
        return found

    def _keep(self, piece: bytes) -> None:
        if piece:
            self._partial.append(piece)
            self._partial_size += len(piece)
            if self._partial_size > MAX_BYTES:
                self.fault = _too_long()
                self._partial = []
