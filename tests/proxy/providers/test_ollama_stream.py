"""Ollama's newline-delimited stream as canonical events."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canonical import (
    ChatRequest,
    Finished,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    Usage,
    UsageSeen,
)
from proxy.context import Call
from proxy.providers.ollama import OllamaAdapter, OllamaStreamDecoder
from proxy.sse import MAX_BYTES
from tests.proxy.wire import pieces_of


def decoder() -> OllamaStreamDecoder:
    return OllamaAdapter().stream_decoder(
        Call(dialect="openai", body={}, model="m", canonical=ChatRequest(messages=[]))
    )


def line(message: dict | None = None, **members) -> bytes:
    said = {"role": "assistant", "content": ""} | (message or {})
    document = {"model": "llama3", "created_at": "t", "message": said, "done": False} | members
    return json.dumps(document, ensure_ascii=False).encode() + b"\n"


def called(name: str, arguments: dict, **members) -> dict:
    return {"tool_calls": [members | {"function": {"name": name, "arguments": arguments}}]}


LAST = line(done=True, done_reason="stop", prompt_eval_count=17, eval_count=63)


def read(stream: bytes) -> list[StreamEvent]:
    one = decoder()
    events = one.feed(stream) + one.eof()
    assert one.fault is None, one.fault.message
    assert one.done
    return events


def test_a_stream_of_thinking_and_text():
    stream = line({"thinking": "hm"}) + line({"content": "Grüße "}) + line({"content": "🌍"}) + LAST
    assert read(stream) == [
        ThinkingDelta("hm"),
        TextDelta("Grüße "),
        TextDelta("🌍"),
        UsageSeen(Usage(input_tokens=17, output_tokens=63)),
        Finished("stop", native_finish="stop"),
    ]


def test_the_last_line_may_hold_content_and_lack_its_newline_and_its_counts():
    assert read(line({"content": "all"}, done=True, done_reason="length").rstrip()) == [
        TextDelta("all"),
        Finished("length", native_finish="length"),
    ]


def test_tool_calls_come_whole_and_are_numbered_through_the_stream():
    stream = line(called("f", {"a": "é"}, id="c1")) + line(called("g", {})) + LAST
    events = read(stream)
    second = events[2]
    assert isinstance(second, ToolCallStart)
    assert events[:4] == [
        ToolCallStart(0, "c1", "f"),
        ToolCallDelta(0, '{"a":"é"}'),
        ToolCallStart(1, second.id, "g"),
        ToolCallDelta(1, "{}"),
    ]
    assert second.id not in ("", "c1")
    assert events[-1] == Finished("tool_calls", native_finish="stop")


def test_an_error_in_the_middle_is_a_fault_and_nothing_follows():
    one = decoder()
    events = one.feed(
        line({"content": "part"}) + b'{"error":"llama runner died"}\n' + line({"content": "never"}) + LAST
    )
    assert events == [TextDelta("part")]
    assert one.fault is not None
    assert (one.fault.kind, one.fault.message, one.done) == ("server", "llama runner died", False)


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        line({"content": "cut"}),
        (line({"content": "cut"}) + LAST)[:-20],
        b"<html>hello</html>\n",
        b"7\n",
        b"[" * 100_000 + b"\n",
        line({"tool_calls": [{"function": {}}]}) + LAST,
        b"x" * (MAX_BYTES + 1),
    ],
)
def test_a_breach_of_protocol_is_a_fault(stream):
    one = decoder()
    one.feed(stream)
    one.eof()
    assert one.fault is not None
    assert (one.fault.kind, one.done) == ("protocol", False)


def test_nothing_after_the_last_line_is_read():
    one = decoder()
    one.feed(LAST)
    assert one.feed(line({"content": "late"})) == one.eof() == []


LINES = st.lists(
    st.sampled_from(
        [
            line({"content": "é🌍\n\n"}),
            line({"content": "", "thinking": "x"}),
            line(called("f", {"a": 1}, id="c")),
            line({"content": 7, "tool_calls": None}),
            line().replace(b"\n", b"\r\n"),
            b"\n",
            b'{"done":false}\n',
            b"{\n",
            b'{"error":"x"}\n',
            LAST,
        ]
    ),
    max_size=8,
)


@given(LINES, st.lists(st.integers(0, 2000), max_size=8))
def test_any_cuts_give_the_same_events(lines, cuts):
    stream = b"".join(lines)
    results = []
    for pieces in ([stream], pieces_of(stream, cuts), [stream[i : i + 1] for i in range(len(stream))]):
        one = decoder()
        events = [event for piece in pieces for event in one.feed(piece)] + one.eof()
        results.append((events, one.done, one.fault and (one.fault.kind, one.fault.message)))
    assert results[0] == results[1] == results[2]
    assert all(done or fault for _, done, fault in results)


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_random_bytes_never_raise(pieces):
    one = decoder()
    for piece in pieces:
        one.feed(piece)
    one.eof()
    assert one.fault is not None
