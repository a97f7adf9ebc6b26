"""A Gemini stream's bytes as whole documents: server-sent events, or one JSON list where `alt=sse` was not heeded.

What stands between events is no event and is skipped, also the bare JSON of an error with which Google breaks a stream
off: without a finishReason before it the stream counts as broken anyway.
"""

from __future__ import annotations

import msgspec

from proxy.errors import UpstreamFault
from proxy.gemini_format.shapes import UNREADABLE
from proxy.sse import SseParser

#: The most a list may hold: it is read when it has ended (bytes).
MAX_LIST_BYTES = 8 << 20

_BOM = b"\xef\xbb\xbf"
_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode


class DocumentParser:
    """Splits one stream. Any chunking gives the same documents; `fault` is set when there is too much of one."""

    def __init__(self) -> None:
        self.fault: UpstreamFault | None = None
        self._events = SseParser()
        self._head = b""  # what may be the beginning of a byte order mark
        self._blank = 0  # bytes of white space before anything else
        self._list: bytearray | None = None
        self._begun = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The documents that `chunk` completes."""
        if self.fault is not None:
            return []
        if not self._begun:
            chunk = self._begin(chunk)
        if self._list is not None:
            self._list += chunk
            if len(self._list) > MAX_LIST_BYTES:
                self.fault = UpstreamFault("protocol", f"a list longer than {MAX_LIST_BYTES} bytes")
            return []
        return self._read(self._events.feed(chunk))

    def flush(self) -> list[bytes]:
        """What the end of the stream leaves."""
        if self.fault is not None:
            return []
        if self._list is None:
            return self._read(self._events.flush())
        whole = bytes(self._list)
        if whole.startswith(b"{"):
            return [whole]
        try:
            return [bytes(document) for document in _decode_list(whole)]
        except UNREADABLE:
            self.fault = UpstreamFault("protocol", "the answer is not JSON", status=200)
            return []

    def _begin(self, chunk: bytes) -> bytes:
        """Find out by the first characters what comes; gives what is to be read now."""
        head = self._head + chunk
        text = (head if self._blank else head.removeprefix(_BOM)).lstrip()
        if not self._blank and _BOM.startswith(head):
            self._head = head
            return b""
        self._head = b""
        if not text:
            self._blank += len(head)
            if self._blank > MAX_LIST_BYTES:
                self.fault = UpstreamFault("protocol", "a stream of nothing but white space")
            return b""
        self._begun = True
        if text.startswith((b"[", b"{")):
            self._list = bytearray()
        return text

    def _read(self, events: list[tuple[bytes | None, bytes]]) -> list[bytes]:
        self.fault = self._events.fault
        return [data for _, data in events]
