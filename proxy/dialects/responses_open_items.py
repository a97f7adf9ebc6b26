"""Output items of a stream of OpenAI's Responses API while they are being written: the events that tell of them.

Sequence: https://platform.openai.com/docs/api-reference/responses-streaming
"""

from __future__ import annotations

from typing import Any

import msgspec

from proxy.canonical import Thinking, ToolCall
from proxy.dialects.responses_items import (
    call_item,
    message_item,
    new_id,
    reasoning_item,
    refusal_part,
    summary_part,
    text_part,
)
from proxy.openai_format.responses_shapes import sealed_signature, sealed_thinking

JSON = dict[str, Any]

#: How often arguments are tried for completeness when another item begins.
MAX_TRIALS = 64

_encode = msgspec.json.encode


class Events:
    """Frames of one stream, numbered from 0."""

    def __init__(self) -> None:
        self.number = 0

    def frame(self, kind: str, **members: Any) -> bytes:
        document = {"type": kind, **members, "sequence_number": self.number}
        self.number += 1
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), _encode(document))

    def delta(self, head: bytes, text: str, tail: bytes = b"") -> bytes:
        """A frame of which all but text and number was made before: by `head_of`."""
        frame = b'%b%b%b,"sequence_number":%d}\n\n' % (head, _encode(text), tail, self.number)
        self.number += 1
        return frame


def head_of(kind: str, place: JSON) -> bytes:
    """A frame up to the value of its delta."""
    written = _encode({"type": kind, **place})[:-1]
    return b'event: %b\ndata: %b,"delta":' % (kind.encode(), written)


class OpenItem:
    """One item from its first event on; `document` is the whole item once it is closed."""

    prefix = ""

    def __init__(self, events: Events, index: int) -> None:
        self.events = events
        self.id = new_id(self.prefix)
        self.index = index
        self.place: JSON = {"item_id": self.id, "output_index": index}
        self.document: JSON | None = None

    def begin(self) -> bytes:
        return self.events.frame("response.output_item.added", output_index=self.index, item=self.draft())

    def draft(self) -> JSON:
        """The item while it is empty."""
        raise NotImplementedError

    def close(self, status: str) -> bytes:
        raise NotImplementedError

    def finish(self, document: JSON) -> bytes:
        self.document = document
        return self.events.frame("response.output_item.done", output_index=self.index, item=document)


class OpenMessage(OpenItem):
    """What the assistant says: parts of text and refusals, one after the other."""

    prefix = "msg"

    def __init__(self, events: Events, index: int) -> None:
        super().__init__(events, index)
        self._parts: list[JSON] = []
        self._kind = ""  # of the part that goes on
        self._texts: list[str] = []
        self._head = b""

    def draft(self) -> JSON:
        return message_item(self.id, [], "in_progress")

    def add_text(self, text: str) -> bytes:
        frames = b"" if self._kind == "output_text" else self._open("output_text", text_part(""))
        self._texts.append(text)
        return frames + self.events.delta(self._head, text, b',"logprobs":[]')

    def add_refusal(self, text: str) -> bytes:
        frames = b"" if self._kind == "refusal" else self._open("refusal", refusal_part(""))
        self._texts.append(text)
        return frames + self.events.delta(self._head, text)

    def close(self, status: str) -> bytes:
        return self._close_part() + self.finish(message_item(self.id, self._parts, status))

    def _open(self, kind: str, part: JSON) -> bytes:
        frames = self._close_part()
        place = {**self.place, "content_index": len(self._parts)}
        self._kind, self._texts = kind, []
        self._head = head_of(f"response.{kind}.delta", place)
        return frames + self.events.frame("response.content_part.added", **place, part=part)

    def _close_part(self) -> bytes:
        if not self._kind:
            return b""
        text = "".join(self._texts)
        place = {**self.place, "content_index": len(self._parts)}
        if self._kind == "output_text":
            part = text_part(text)
            done = self.events.frame("response.output_text.done", **place, text=text, logprobs=[])
        else:
            part = refusal_part(text)
            done = self.events.frame("response.refusal.done", **place, refusal=text)
        self._parts.append(part)
        return done + self.events.frame("response.content_part.done", **place, part=part)


class OpenReasoning(OpenItem):
    """Thinking as a summary of one part, with what is opaque in `encrypted_content`."""

    prefix = "rs"

    def __init__(self, events: Events, index: int) -> None:
        super().__init__(events, index)
        self.block = Thinking()
        self.call: ToolCall | None = None  # the signed call that follows
        self._texts: list[str] = []
        self._place = {**self.place, "summary_index": 0}
        self._head = head_of("response.reasoning_summary_text.delta", self._place)

    def draft(self) -> JSON:
        return reasoning_item(self.id, "", None)

    def add(self, text: str) -> bytes:
        frames = b""
        if not self._texts:
            frames = self.events.frame("response.reasoning_summary_part.added", **self._place, part=summary_part(""))
        self._texts.append(text)
        return frames + self.events.delta(self._head, text)

    def close(self, status: str) -> bytes:
        frames = b""
        text = self.block.text = "".join(self._texts)
        if text:
            frames = self.events.frame("response.reasoning_summary_text.done", **self._place, text=text)
            part = summary_part(text)
            frames += self.events.frame("response.reasoning_summary_part.done", **self._place, part=part)
        sealed = sealed_signature(self.call) if self.call else sealed_thinking(self.block)
        return frames + self.finish(reasoning_item(self.id, text, sealed))


class OpenCall(OpenItem):
    """A call of a function; its arguments come in fragments."""

    prefix = "fc"

    def __init__(self, events: Events, index: int, call: ToolCall) -> None:
        super().__init__(events, index)
        self._call = call
        self._arguments: list[str] = []
        self._trials = 0
        self._head = head_of("response.function_call_arguments.delta", self.place)

    def draft(self) -> JSON:
        return call_item(self.id, self._call, "in_progress")

    def add(self, arguments: str) -> bytes:
        self._arguments.append(arguments)
        return self.events.delta(self._head, arguments)

    def is_complete(self) -> bool:
        """Whether the arguments are a whole JSON object."""
        self._trials += 1
        if self._trials > MAX_TRIALS:
            return False
        try:
            return isinstance(msgspec.json.decode("".join(self._arguments)), dict)
        except (msgspec.DecodeError, RecursionError):
            return False

    def close(self, status: str) -> bytes:
        frames = b"" if self._arguments else self.add("{}")
        whole = ToolCall(self._call.id, self._call.name, "".join(self._arguments))
        frames += self.events.frame(
            "response.function_call_arguments.done", **self.place, name=whole.name, arguments=whole.arguments
        )
        return frames + self.finish(call_item(self.id, whole, status))
