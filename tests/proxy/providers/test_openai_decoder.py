"""An OpenAI-style stream as canonical events, and rendered for a client of another format."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canonical import (
    Finished,
    RefusalDelta,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    Usage,
    UsageSeen,
)
from proxy.dialects.chat import ChatStreamRenderer
from proxy.openai_format.decoder import OpenAIStreamDecoder
from proxy.relay import TranslatingRelay
from tests.proxy.wire import chunk, documents, facts, pieces_of, play, sse, usage_chunk

CALL = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}


def decode(*pieces: bytes) -> tuple[OpenAIStreamDecoder, list[StreamEvent]]:
    decoder = OpenAIStreamDecoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    if not decoder.done and decoder.fault is None:
        events += decoder.eof()
    return decoder, events


def test_text_thinking_refusal_and_usage():
    stream = sse(
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "hm"}),
        chunk({"reasoning": "so", "content": ""}),
        chunk({"content": "Grüße"}),
        chunk({"refusal": "no"}),
        chunk(
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "t"}]},
                    {"type": "text", "text": "!"},
                ]
            }
        ),
        chunk(finish="length"),
        usage_chunk(5, 2, completion_tokens_details={"reasoning_tokens": 1}),
        "DONE",
    )
    decoder, events = decode(stream)
    assert events == [
        ThinkingDelta("hm"),
        ThinkingDelta("so"),
        TextDelta("Grüße"),
        RefusalDelta("no"),
        ThinkingDelta("t"),
        TextDelta("!"),
        UsageSeen(Usage(input_tokens=5, output_tokens=2, reasoning_tokens=1)),
        Finished("length", native_finish="length"),
    ]
    assert decoder.done


def test_tool_calls_carry_google_signatures():
    signed = CALL | {"extra_content": {"google": {"thought_signature": "sig"}}}
    second = {"index": 0, "id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}}
    _, events = decode(
        sse(
            chunk({"tool_calls": [signed]}),
            chunk({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}, second]}),
            chunk(finish="stop"),
            "DONE",
        )
    )
    assert events == [
        ToolCallStart(0, "a", "f", "sig"),
        ToolCallDelta(0, "{}"),
        ToolCallStart(1, "b", "g"),
        ToolCallDelta(1, "{}"),
        Finished("tool_calls", native_finish="stop"),
    ]


def test_only_the_first_choice_is_read():
    other = chunk(choices=[{"index": 1, "delta": {"content": "b"}, "finish_reason": "stop"}])
    _, events = decode(sse(other, chunk({"content": "a"}), "DONE"))
    assert events == [TextDelta("a"), Finished("stop")]


def test_half_a_surrogate_pair_becomes_a_replacement_character():
    _, events = decode(b'data: {"choices":[{"index":0,"delta":{"content":"a\\ud83c"},"finish_reason":"stop"}]}\n\n')
    assert events == [TextDelta("a\ufffd"), Finished("stop", native_finish="stop")]


@pytest.mark.parametrize(
    "stream", [b"", b"data: [DONE]\n\n", sse(chunk({"content": "a"})), sse({"error": {"message": "x"}})]
)
def test_an_end_without_marker_and_finish_reason_is_a_fault(stream):
    decoder, events = decode(stream)
    assert decoder.fault is not None
    assert not decoder.done
    assert not any(isinstance(event, Finished) for event in events)


EVENTS = st.lists(
    st.sampled_from(
        [
            chunk({"content": "é🌍"}),
            chunk({"reasoning": "x"}),
            chunk({"tool_calls": [CALL]}),
            chunk({"tool_calls": [{"function": {"arguments": "1"}}]}),
            chunk(finish="stop"),
            usage_chunk(3, 4),
            {"choices": 1},
            "DONE",
            b": ping\n\n",
            b"data: x\n\n",
        ]
    ),
    max_size=10,
)


@given(EVENTS, st.lists(st.integers(0, 5000), max_size=10))
def test_any_cuts_give_the_same_events(events, cuts):
    stream = sse(*events)
    whole, expected = decode(stream)
    cut, found = decode(*pieces_of(stream, cuts))
    assert found == expected
    assert (cut.done, bool(cut.fault)) == (whole.done, bool(whole.fault))
    assert sum(isinstance(event, Finished) for event in found) == int(cut.done)


# ---------------------------------------------------------------- translated


def translating() -> TranslatingRelay:
    return TranslatingRelay(OpenAIStreamDecoder(), ChatStreamRenderer())


def test_a_translated_stream_knows_what_metering_needs():
    relay = translating()
    stream = sse(
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning": "abc"}),
        chunk({"content": "Hi"}),
        chunk({"tool_calls": [CALL]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}),
        chunk(finish="tool_calls"),
        usage_chunk(7, 5),
        "DONE",
    )
    out = play(relay, [stream]) + relay.end(facts(relay.usage))
    assert (relay.started, relay.done, relay.fault) == (True, True, None)
    assert (relay.usage, relay.usage_final) == (Usage(input_tokens=7, output_tokens=5), True)
    assert (relay.finish_reason, relay.produced_chars) == ("tool_calls", len("abc") + len("Hi") + len("f") + len("{}"))
    assert [name for name, _ in documents(out)] == ["delta", "delta", "delta", "done"]


def test_thinking_is_content_although_this_client_cannot_see_it():
    relay = translating()
    assert relay.feed(sse(chunk({"role": "assistant", "content": ""}))) == b""
    assert not relay.started
    relay.feed(sse(chunk({"reasoning": "hm"})))
    assert relay.started


def test_a_fault_keeps_the_content_before_it_and_ends_the_stream():
    relay = translating()
    out = relay.feed(
        sse(chunk({"content": "part"}), {"error": {"message": "x", "code": 500}}, chunk({"content": "no"}))
    )
    assert documents(out) == [("delta", {"content": "part"})]
    assert relay.fault is not None
    assert relay.feed(sse(chunk({"content": "no"}))) == b""
    assert documents(relay.fail("It broke.", "upstream_error", "api_error", "req_1"))[0][0] == "error"


def test_a_call_without_arguments_has_an_empty_object_of_them():
    _, events = decode(sse(chunk({"tool_calls": [CALL]}), chunk(finish="tool_calls"), "DONE"))
    assert events == [ToolCallStart(0, "a", "f"), ToolCallDelta(0, "{}"), Finished("tool_calls", "tool_calls")]
