"""Streams as Anthropic's clients read them, whatever order events come in."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canonical import (
    Finished,
    ForeignDelta,
    RedactedThinking,
    RefusalDelta,
    SignatureDelta,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    Usage,
    UsageSeen,
)
from proxy.context import ANTHROPIC
from proxy.dialects.anthropic import AnthropicDialect
from proxy.dialects.anthropic_rendering import MAX_TRIALS, AnthropicStreamRenderer
from tests.proxy.anthropic_wire import message_of, streaming_call
from tests.proxy.wire import documents, facts

SEARCH = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}


def renderer() -> AnthropicStreamRenderer:
    return AnthropicDialect().stream_renderer(streaming_call(), "req_1", "gpt-x")


def rendered(*events: StreamEvent, **told) -> dict:
    """The message a client gets when the events come one by one."""
    stream = renderer()
    raw = b"".join(stream.render([event]) for event in events)
    return message_of(raw + stream.end(facts(**told)))


def call(index: int, name: str, *fragments: str) -> list[StreamEvent]:
    return [ToolCallStart(index, f"call_{index}", name), *(ToolCallDelta(index, text) for text in fragments)]


def test_a_stream_of_text():
    message = rendered(TextDelta("Grüße "), TextDelta("🌍"), Finished("stop"))
    assert message["id"].startswith("msg_")
    assert message["model"] == "gpt-x"
    assert message["content"] == [{"type": "text", "text": "Grüße 🌍"}]
    assert (message["stop_reason"], message["stop_sequence"]) == ("end_turn", None)
    assert (message["usage"]["input_tokens"], message["usage"]["output_tokens"]) == (3, 4)


def test_an_answer_without_content_is_still_a_message():
    message = rendered(Finished("length"))
    assert (message["content"], message["stop_reason"]) == ([], "max_tokens")


def test_nothing_is_told_before_the_first_content_but_what_is_known_then():
    stream = renderer()
    usage = Usage(input_tokens=30, output_tokens=1, cache_read_tokens=20)
    assert stream.render([UsageSeen(usage)]) == b""
    first = documents(stream.render([TextDelta("a")]))[0][1]["message"]["usage"]
    assert (first["input_tokens"], first["cache_read_input_tokens"]) == (10, 20)


def test_thinking_with_its_signature_comes_before_the_text():
    message = rendered(
        ThinkingDelta("first "),
        ThinkingDelta("thought"),
        SignatureDelta("sig-1"),
        ThinkingDelta("second"),
        SignatureDelta("sig-2"),
        RedactedThinking("xx"),
        TextDelta("so"),
        Finished("stop"),
    )
    assert message["content"] == [
        {"type": "thinking", "thinking": "first thought", "signature": "sig-1"},
        {"type": "thinking", "thinking": "second", "signature": "sig-2"},
        {"type": "redacted_thinking", "data": "xx"},
        {"type": "text", "text": "so"},
    ]


def test_a_signature_without_words_is_a_block_of_its_own():
    message = rendered(SignatureDelta("sig"), TextDelta("a"), Finished("stop"))
    assert message["content"][0] == {"type": "thinking", "thinking": "", "signature": "sig"}


def test_a_tool_call_after_text():
    message = rendered(TextDelta("Let me look."), *call(0, "f", '{"a":', " 1}"), Finished("tool_calls"))
    assert message["content"] == [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "call_0", "name": "f", "input": {"a": 1}},
    ]
    assert message["stop_reason"] == "tool_use"


def test_a_call_without_arguments_has_an_empty_input():
    assert rendered(*call(0, "f"), Finished("stop"))["content"][0]["input"] == {}


def test_signatures_of_calls_and_odd_ids_reach_the_client_in_a_form_it_can_send_back():
    message = rendered(ToolCallStart(0, "functions.f:0", "f", "opaque"), ToolCallDelta(0, "{}"), Finished("tool_calls"))
    block = message["content"][0]
    assert block["extra_content"] == {"tollbar": {"signature": "opaque"}}
    assert block["id"].replace("_", "").isalnum()


def test_a_call_is_closed_as_soon_as_it_is_whole_and_the_next_one_begins():
    stream = renderer()
    stream.render(call(0, "f", '{"a":1}'))
    kinds = [name for name, _ in documents(stream.render(call(1, "g", '{"b"')))]
    assert kinds == ["content_block_stop", "content_block_start", "content_block_delta"]


def test_fragments_of_interleaved_calls_wait_for_their_turn():
    stream = renderer()
    raw = stream.render([*call(0, "f"), *call(1, "g")])
    assert [name for name, _ in documents(raw)] == ["message_start", "content_block_start"]
    assert stream.render([ToolCallDelta(1, '{"b":')]) == b""
    last = documents(stream.render([ToolCallDelta(0, '{"a":1}')]))
    assert [name for name, _ in last] == [
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
    ]
    assert last[-1][1] == {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": '{"b":'},
    }


def test_text_that_comes_while_a_call_is_open_follows_it():
    message = rendered(
        *call(0, "f", '{"a"'), TextDelta("wait"), *call(1, "g", "{}"), ToolCallDelta(0, ":1}"), Finished("tool_calls")
    )
    assert [block["type"] for block in message["content"]] == ["tool_use", "text", "tool_use"]
    assert message["content"][0]["input"] == {"a": 1}


def test_arguments_are_not_tried_for_completeness_without_end():
    stream = renderer()
    stream.render([*call(0, "f", '{"a":"'), *call(1, "g", "{}")])
    raw = b"".join(stream.render([ToolCallDelta(0, "}")]) for _ in range(MAX_TRIALS * 3))
    assert b"content_block_stop" not in raw
    stream.render([ToolCallDelta(0, '"}')])
    assert b'"id":"call_1"' in stream.end(facts())


def test_a_second_start_and_fragments_of_unknown_calls_are_left_out():
    message = rendered(*call(0, "f", "{}"), *call(0, "f"), ToolCallDelta(7, "x"), Finished("tool_calls"))
    assert len(message["content"]) == 1


def test_a_refusal_is_text_and_a_stop_reason():
    message = rendered(RefusalDelta("I "), RefusalDelta("won't."), Finished("stop"))
    assert message["content"] == [{"type": "text", "text": "I won't."}]
    assert message["stop_reason"] == "refusal"


def test_blocks_of_anthropic_pass_whole_and_those_of_others_are_left_out():
    message = rendered(ForeignDelta(ANTHROPIC, SEARCH), ForeignDelta("openai", {"x": 1}), Finished("stop"))
    assert message["content"] == [SEARCH]


@pytest.mark.parametrize(
    ("finished", "reason", "sequence"),
    [
        (Finished("stop", "stop_sequence", "END"), "stop_sequence", "END"),
        (Finished("content_filter"), "refusal", None),
        (Finished("tool_calls"), "end_turn", None),
    ],
)
def test_stop_reasons(finished, reason, sequence):
    message = rendered(TextDelta("a"), finished)
    assert (message["stop_reason"], message["stop_sequence"]) == (reason, sequence)


def test_a_stream_that_fails_ends_in_an_error_and_nothing_follows():
    stream = renderer()
    raw = stream.render([TextDelta("part")]) + stream.fail("It broke.", "upstream_error", "api_error", "req_1")
    assert documents(raw)[-1] == (
        "error",
        {
            "type": "error",
            "error": {"type": "api_error", "message": "It broke.", "code": "upstream_error"},
            "request_id": "req_1",
        },
    )
    assert stream.render([TextDelta("more")]) == stream.end(facts()) == stream.fail("a", "b", "c", "d") == b""


def test_a_text_that_looks_like_framing_stays_text():
    forged = 'a\n\nevent: error\ndata: {"type":"error"}\n\nb\r\n'
    assert rendered(TextDelta(forged), Finished("stop"))["content"][0]["text"] == forged


PIECES = st.sampled_from(["a", "é🌍", "\n\n", "{", "}", '"', "{}", ""])
ANY_EVENT = st.one_of(
    st.builds(TextDelta, PIECES),
    st.builds(ThinkingDelta, PIECES),
    st.builds(SignatureDelta, st.sampled_from(["sig", ""])),
    st.builds(RefusalDelta, PIECES),
    st.just(RedactedThinking("xx")),
    st.just(ForeignDelta(ANTHROPIC, SEARCH)),
    st.builds(ToolCallStart, st.integers(0, 3), st.sampled_from(["call_a", "x.y"]), st.just("f")),
    st.builds(UsageSeen, st.just(Usage(input_tokens=9, output_tokens=1))),
    st.builds(Finished, st.sampled_from(["stop", "length", "tool_calls", "content_filter"])),
)
# Calls whose fragments interleave with each other and with everything else; their arguments are whole in the end.
ARGUMENTS = st.sampled_from(['{"a":{"b":[1,"}"]}}', "{}", '{ "k": "\\"}{" }', ""])


@st.composite
def tangles(draw) -> tuple[list[StreamEvent], list[str]]:
    arguments = draw(st.lists(ARGUMENTS, min_size=0, max_size=4))
    queues: list[list[StreamEvent]] = []
    for index, whole in enumerate(arguments):
        cut = draw(st.integers(0, len(whole)))
        queues.append([ToolCallDelta(index, whole[:cut]), ToolCallDelta(index, whole[cut:])])
    events: list[StreamEvent] = []
    opened = 0
    while opened < len(arguments) or any(queues):
        choices = [index for index in range(opened) if queues[index]] + ([-1] if opened < len(arguments) else [])
        if not choices:
            break
        index = draw(st.sampled_from(choices))
        if index < 0:
            events.append(ToolCallStart(opened, f"call_{opened}", "f"))
            opened += 1
        else:
            events.append(queues[index].pop(0))
        if draw(st.booleans()):
            events.append(TextDelta(draw(PIECES)))
    return events, arguments


@given(tangles())
def test_however_calls_interleave_each_arrives_whole_and_in_order(tangle):
    events, arguments = tangle
    message = rendered(*events, Finished("stop"))
    calls = [block for block in message["content"] if block["type"] == "tool_use"]
    assert [(block["id"], block["input"]) for block in calls] == [
        (f"call_{index}", json.loads(whole or "{}")) for index, whole in enumerate(arguments)
    ]
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert "".join(block["text"] for block in message["content"] if block["type"] == "text") == said


@given(st.lists(ANY_EVENT, max_size=25))
def test_any_events_give_a_well_formed_message(events):
    message = rendered(*events)
    assert all(block["text"] for block in message["content"] if block["type"] == "text")


@given(st.lists(ANY_EVENT, max_size=15), st.integers(0, 15))
def test_events_together_or_apart_give_the_same_message(events, cut):
    stream = renderer()
    raw = stream.render(events[:cut]) + stream.render(events[cut:]) + stream.end(facts())
    assert message_of(raw) | {"id": ""} == rendered(*events) | {"id": ""}
