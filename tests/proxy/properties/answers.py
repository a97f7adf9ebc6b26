"""Random answers of providers, and what is heard of one: the same for a whole answer and for any stream of it."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
from hypothesis import strategies as st

from proxy.canonical import (
    ChatResponse,
    Finished,
    FinishReason,
    RedactedThinking,
    RefusalDelta,
    SignatureDelta,
    StreamEvent,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    Usage,
    UsageSeen,
)
from proxy.context import Call, ProviderReply
from proxy.providers.base import Adapter, StreamDecoder
from tests.fakes.formats.style import Style

JSON = dict[str, Any]

TEXTS = st.one_of(
    st.sampled_from(["a", "Grüße 🌍", "\n\ndata: x\n\n", "\r", "\u2028", "👩‍👩‍👧", '{"a":', "data: [DONE]"]),
    st.text(min_size=1, max_size=12),
)
OPAQUE = st.binary(min_size=1, max_size=8).map(lambda data: base64.b64encode(data).decode())  # signatures
NAMES = st.text("abcxyz_-09", min_size=1, max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(-1e9, 1e9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
ARGUMENTS = st.dictionaries(NAMES | TEXTS, VALUES, max_size=3).map(lambda value: json.dumps(value, ensure_ascii=False))

STYLES = st.builds(
    Style,
    step=st.sampled_from([1, 2, 7, 1000]),
    newline=st.sampled_from(["\n", "\r\n", "\r"]),
    comments=st.booleans(),
    spread=st.booleans(),
    spaced=st.booleans(),
)
CUTS = st.lists(st.integers(0, 20_000), max_size=12)


def _usages(says: frozenset[str]) -> st.SearchStrategy[Usage]:
    def none_unless(name: str, largest: int) -> st.SearchStrategy[int]:
        return st.integers(0, largest) if name in says else st.just(0)

    def built(plain: int, output: int, read: int, write: int, hour: int, reasoning: int) -> Usage:
        return Usage(plain + read + write, output + reasoning, read, write, min(hour, write), reasoning)

    cached = (none_unless(name, 90) for name in ("cache_read", "cache_write", "cache_write_1h"))
    return st.builds(built, st.integers(0, 90), st.integers(0, 90), *cached, none_unless("reasoning", 90))


def _thinking(says: frozenset[str]) -> st.SearchStrategy[Thinking]:
    if "thinking" not in says:
        return st.nothing()
    signatures = st.none() | OPAQUE if "signature" in says else st.none()
    kinds = [st.builds(Thinking, text=TEXTS, signature=signatures)]
    if "redacted" in says:
        kinds.append(st.builds(Thinking, redacted=OPAQUE))
    return st.one_of(kinds)


@st.composite
def answers(draw: Any, says: frozenset[str]) -> ChatResponse:
    """An answer in what a format `says`: thinking, then text, then calls, unless it may mix them."""
    thinking = draw(st.lists(_thinking(says), max_size=2)) if "thinking" in says else []
    texts = draw(st.lists(st.builds(Text, TEXTS), max_size=2))
    signatures = st.none() | OPAQUE if "call_signature" in says else st.none()
    count = draw(st.integers(0, 3)) if "calls" in says else 0
    calls = [ToolCall(f"call_{n}", draw(NAMES), draw(ARGUMENTS), draw(signatures)) for n in range(count)]
    parts: list[Any] = [*thinking, *texts, *calls]
    if "mixed" in says:
        parts = draw(st.permutations(parts))
    reasons: list[FinishReason] = ["tool_calls"] if calls else ["stop", "length"]
    answer = ChatResponse(parts=parts, finish_reason=draw(st.sampled_from(reasons)), usage=draw(_usages(says)))
    if "refusal" in says and not parts and draw(st.booleans()):
        answer.refusal, answer.finish_reason = draw(TEXTS), "stop"
    if "stop_sequence" in says and answer.finish_reason == "stop" and draw(st.booleans()):
        answer.stop_sequence = draw(TEXTS)
    return answer


def decoded(decoder: StreamDecoder, pieces: list[bytes]) -> list[StreamEvent]:
    """All events of a stream, its end included."""
    events: list[StreamEvent] = []
    for piece in pieces:
        if decoder.done or decoder.fault is not None:
            return events
        events += decoder.feed(piece)
    return events if decoder.done or decoder.fault is not None else events + decoder.eof()


def events_of(answer: ChatResponse) -> list[StreamEvent]:
    """A whole answer as the events of a stream that says the same."""
    events: list[StreamEvent] = []
    calls = 0
    for part in answer.parts:
        if isinstance(part, Text):
            events.append(TextDelta(part.text))
        elif isinstance(part, Thinking):
            events += _thought(part)
        elif isinstance(part, ToolCall):
            start = ToolCallStart(calls, part.id, part.name, part.signature)
            events += [start, ToolCallDelta(calls, part.arguments)]
            calls += 1
    if answer.refusal:
        events.append(RefusalDelta(answer.refusal))
    if answer.usage is not None:
        events.append(UsageSeen(answer.usage))
    return [*events, Finished(answer.finish_reason, answer.native_finish, answer.stop_sequence)]


def read(adapter: Adapter, call: Call, body: bytes) -> list[StreamEvent]:
    """What a provider's whole answer says."""
    response = adapter.parse_response(call, ProviderReply(200, {}, body))
    assert isinstance(response, ChatResponse)
    return events_of(response)


def _thought(part: Thinking) -> list[StreamEvent]:
    if part.redacted is not None:
        return [RedactedThinking(part.redacted)]
    events: list[StreamEvent] = [ThinkingDelta(part.text)] if part.text else []
    return [*events, SignatureDelta(part.signature)] if part.signature else events


class Heard(msgspec.Struct):
    """An answer as it is heard: fragments joined, arguments as the object that they are, the last usage."""

    said: list[Any] = []
    usage: Usage | None = None
    finish: FinishReason | None = None
    stop_sequence: str | None = None


def heard(events: list[StreamEvent]) -> Heard:
    """What a stream says, whatever its fragments. A signature closes the thinking it is of."""
    told = Heard()
    calls: dict[int, list[Any]] = {}
    for event in events:
        if isinstance(event, UsageSeen):
            told.usage = event.usage
        elif isinstance(event, Finished):
            told.finish, told.stop_sequence = event.finish_reason, event.stop_sequence
        elif isinstance(event, ToolCallStart):
            calls[event.index] = ["call", event.id, event.name, event.signature, ""]
            told.said.append(calls[event.index])
        elif isinstance(event, ToolCallDelta):
            calls[event.index][-1] += event.arguments
        else:
            _hear(event, told.said)
    for call in calls.values():
        call[-1] = json.loads(call[-1] or "{}")
    return told


def _hear(event: StreamEvent, said: list[Any]) -> None:
    last: list[Any] = said[-1] if said else [None]
    if isinstance(event, TextDelta | RefusalDelta):
        kind = "text" if isinstance(event, TextDelta) else "refusal"
        if last[0] == kind:
            last[1] += event.text
        elif event.text:
            said.append([kind, event.text])
    elif isinstance(event, ThinkingDelta):
        if last[0] == "thinking" and last[2] is None:
            last[1] += event.text
        elif event.text:
            said.append(["thinking", event.text, None])
    elif isinstance(event, SignatureDelta):
        if last[0] == "thinking" and last[2] is None:
            last[2] = event.signature
        else:
            said.append(["thinking", "", event.signature])
    else:
        said.append([type(event).__name__, msgspec.to_builtins(event)])
