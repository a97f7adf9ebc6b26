"""An Anthropic stream as canonical events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.anthropic_format.decoder import AnthropicStreamDecoder
from proxy.canonical import (
    ChatRequest,
    Finished,
    ForeignDelta,
    RedactedThinking,
    SignatureDelta,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    Tool,
    ToolCallDelta,
    ToolCallStart,
    Usage,
    UsageSeen,
)
from proxy.context import ANTHROPIC, Call, ProviderTarget
from proxy.dialects.anthropic_rendering import AnthropicStreamRenderer
from proxy.providers.anthropic import AnthropicAdapter
from proxy.relay import TranslatingRelay
from tests.proxy.anthropic_wire import STREAM, block, ended, event, message_of, sse, started, text, tool_use
from tests.proxy.wire import facts, pieces_of, play

TARGET = ProviderTarget(provider="p", kind="anthropic", model="claude-x", base_url="https://x")


def call_with(*tools: Tool) -> Call:
    return Call(dialect="openai", body={}, model="m", canonical=ChatRequest(messages=[], tools=list(tools)))


def decoder() -> AnthropicStreamDecoder:
    return AnthropicAdapter().stream_decoder(call_with())


def decoded(*events) -> list[StreamEvent]:
    """Events of a stream that ends well, usage left out."""
    one = decoder()
    found = one.feed(sse(started(), *events)) + one.eof()
    assert one.fault is None, one.fault.message
    assert one.done
    return [item for item in found if not isinstance(item, UsageSeen)]


def test_a_stream_of_text():
    assert decoder().feed(STREAM) == [
        UsageSeen(Usage(input_tokens=25, output_tokens=1)),
        TextDelta("Grüße "),
        TextDelta("🌍"),
        UsageSeen(Usage(input_tokens=25, output_tokens=9)),
        Finished("stop", native_finish="end_turn"),
    ]


def test_thinking_signatures_and_redacted_thinking():
    thinking = block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "signature_delta", "signature": "sig"},
    )
    redacted = block(1, {"type": "redacted_thinking", "data": "xx"})
    whole = block(2, {"type": "thinking", "thinking": "at once", "signature": "sig-2"})
    assert decoded(thinking, redacted, whole, ended())[:-1] == [
        ThinkingDelta("hm"),
        SignatureDelta("sig"),
        RedactedThinking("xx"),
        ThinkingDelta("at once"),
        SignatureDelta("sig-2"),
    ]


def test_tool_calls_are_numbered_from_0_whatever_blocks_stand_between():
    calls = [*text(0, "a"), *tool_use(1, "c1", "f", '{"a":', "1}"), *text(2, "b"), *tool_use(3, "c2", "g", "")]
    assert decoded(calls, ended("tool_use")) == [
        TextDelta("a"),
        ToolCallStart(0, "c1", "f"),
        ToolCallDelta(0, '{"a":'),
        ToolCallDelta(0, "1}"),
        TextDelta("b"),
        ToolCallStart(1, "c2", "g"),
        ToolCallDelta(1, "{}"),
        Finished("tool_calls", native_finish="tool_use"),
    ]


def test_input_that_comes_whole_with_the_start_of_the_call():
    whole = block(0, {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}})
    assert decoded(whole, ended("tool_use"))[1] == ToolCallDelta(0, '{"a":1}')


def test_blocks_of_server_tools_are_kept_whole():
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    asked = block(0, search, {"type": "input_json_delta", "partial_json": '{"query"'}, {"partial_json": ':"x"}'})
    result = {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"url": "https://x"}]}
    assert decoded(asked, block(1, result), ended())[:-1] == [
        ForeignDelta(ANTHROPIC, search | {"input": {"query": "x"}}),
        ForeignDelta(ANTHROPIC, result),
    ]


def test_citations_and_unknown_events_say_nothing_to_other_dialects():
    cited = block(0, {"type": "text", "text": ""}, {"type": "citations_delta", "citation": {"cited_text": "x"}})
    assert decoded(cited, event("something_new", delta=7), ended()) == [Finished("stop", native_finish="end_turn")]


@pytest.mark.parametrize(
    ("closing", "finished"),
    [
        (ended("stop_sequence", "END"), Finished("stop", "stop_sequence", "END")),
        (ended("max_tokens"), Finished("length", "max_tokens")),
        (ended("refusal"), Finished("content_filter", "refusal")),
        (ended(None), Finished("stop")),
        ([event("message_stop")], Finished("stop")),
    ],
)
def test_how_it_finished(closing, finished):
    assert decoded(text(0, "a"), closing)[-1] == finished


def test_without_a_stop_reason_calls_decide():
    assert decoded(tool_use(0, "c", "f"), event("message_stop"))[-1] == Finished("tool_calls")


def test_names_that_had_to_be_changed_come_back_as_the_client_knows_them():
    tool = Tool("weather.get")
    call = call_with(tool)
    request = AnthropicAdapter().build_request(call, TARGET)
    written = request.body.split(b'"tools":[{"name":"')[1].split(b'"')[0].decode()
    assert written != tool.name
    events = AnthropicAdapter().stream_decoder(call).feed(sse(started(), *tool_use(0, "c", written, "{}")))
    assert ToolCallStart(0, "c", "weather.get") in events


@pytest.mark.parametrize(
    "broken",
    [
        STREAM[:-40],
        sse(started(), event("content_block_delta", index=0, delta={"type": "text_delta", "text": "outside"})),
        sse(*text(0, "before the message")),
        sse(started(), block(0, {"type": "tool_use", "id": "c"})),
        sse(started()) + b"data: nonsense\n\n",
        sse(started()) + b'data: {"type":"content_block_start","content_block":7}\n\n',
    ],
)
def test_a_breach_of_protocol_is_a_fault(broken):
    one = decoder()
    one.feed(broken)
    one.eof()
    assert one.fault is not None
    assert (one.fault.kind, one.done) == ("protocol", False)


def test_events_before_an_error_are_still_told_and_none_after():
    failed = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
    one = decoder()
    events = one.feed(sse(started(), *text(0, "part"), failed, *text(1, "never"), *ended()))
    assert events[-1] == TextDelta("part")
    assert one.fault is not None
    assert (one.fault.kind, one.fault.message) == ("server", "Overloaded")


def test_nothing_after_the_end_marker_is_read():
    one = decoder()
    one.feed(STREAM)
    assert one.feed(sse(*text(1, "late"))) == []
    assert one.done


def test_half_a_surrogate_pair_becomes_a_replacement_character():
    half = b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\ud83c!"}}\n\n'
    one = decoder()
    assert one.feed(sse(started(), text(0)[0]) + half)[-1] == TextDelta("\ufffd!")


SIGNED = [{"type": "thinking_delta", "thinking": "hm"}, {"type": "signature_delta", "signature": "s"}]
INPUT = {"type": "input_json_delta", "partial_json": "{}"}
BLOCKS = st.lists(
    st.sampled_from(
        [
            lambda n: text(n, "é🌍", "", "\n\n"),
            lambda n: tool_use(n, f"c{n}", "f", '{"a"', ':"é"}'),
            lambda n: tool_use(n, f"c{n}", "f"),
            lambda n: block(n, {"type": "thinking", "thinking": "", "signature": ""}, *SIGNED),
            lambda n: block(n, {"type": "redacted_thinking", "data": "xx"}),
            lambda n: block(n, {"type": "server_tool_use", "id": "s", "name": "n", "input": {}}, INPUT),
        ]
    ),
    max_size=6,
).map(lambda makers: [make(number) for number, make in enumerate(makers)])


@given(BLOCKS, st.lists(st.integers(0, 5000), max_size=10))
def test_any_cuts_give_the_same_events(blocks, cuts):
    stream = sse(started(), *blocks, ended())
    results = []
    for pieces in ([stream], pieces_of(stream, cuts), [stream[i : i + 1] for i in range(len(stream))]):
        one = decoder()
        results.append([item for piece in pieces for item in one.feed(piece)] + one.eof())
        assert one.done
    assert results[0] == results[1] == results[2]


@given(BLOCKS)
def test_decoded_and_rendered_again_it_is_the_same_message(blocks):
    """Texts that follow each other become one: other formats do not part them."""
    stream = sse(started(), *blocks, ended())
    relay = TranslatingRelay(decoder(), AnthropicStreamRenderer("claude-x"))
    again = message_of(play(relay, [stream]) + relay.end(facts(relay.usage)))
    assert _joined(again["content"]) == _joined(message_of(stream)["content"])


def _joined(content: list[dict]) -> list[dict]:
    joined: list[dict] = []
    for entry in content:
        if entry["type"] == "text" and joined and joined[-1]["type"] == "text":
            joined[-1] = joined[-1] | {"text": joined[-1]["text"] + entry["text"]}
        elif entry.get("text") != "":
            joined.append(entry)
    return joined


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_random_bytes_never_raise(pieces):
    one = decoder()
    for piece in pieces:
        one.feed(piece)
    one.eof()
    assert one.fault is not None


def test_a_block_that_nothing_stopped_ends_with_the_message():
    assert ToolCallDelta(0, "{}") in decoded(tool_use(0, "c", "f")[:1], ended("tool_use"))
