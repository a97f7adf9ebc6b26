"""Gemini's streams as canonical events."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canonical import (
    GEMINI_SIGNED,
    ChatRequest,
    Finished,
    ForeignDelta,
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
from proxy.context import Call
from proxy.dialects.openai_rendering import OpenAIStreamRenderer
from proxy.gemini_format.frames import MAX_LIST_BYTES
from proxy.gemini_format.shapes import GEMINI
from proxy.providers.gemini import GeminiAdapter
from proxy.relay import TranslatingRelay
from proxy.sse import MAX_BYTES
from tests.proxy.gemini_wire import asked, call_of, counts, document, function_call, played, sse
from tests.proxy.wire import facts, finishes_of, pieces_of, play, text_of, tool_calls_of

ERROR = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}

DOCUMENTS = [
    document({"text": "hm", "thought": True}, finish=None, usageMetadata=counts(9, None)),
    document({"text": "Grüße "}, finish=None),
    document({"text": "🌍", "thoughtSignature": "dGV4dA=="}, function_call("f", {"a": "é"}, id="1"), finish=None),
    document(function_call("g", id="2") | {"thoughtSignature": "c2ln"}, usageMetadata=counts(9, 5)),
]
EVENTS = [
    ThinkingDelta("hm"),
    UsageSeen(Usage(9)),
    TextDelta("Grüße "),
    TextDelta("🌍"),
    SignatureDelta(GEMINI_SIGNED + "dGV4dA=="),
    ToolCallStart(0, "1", "f"),
    ToolCallDelta(0, '{"a":"é"}'),
    ToolCallStart(1, "2", "g", "c2ln"),
    ToolCallDelta(1, "{}"),
    UsageSeen(Usage(9, 5)),
    Finished("tool_calls", "STOP"),
]


def decoded(*documents, request: ChatRequest | None = None) -> list[StreamEvent]:
    """Events of a stream that ends well."""
    decoder, events = played(sse(*documents), request=request)
    assert decoder.fault is None, decoder.fault.message
    assert decoder.done
    return events


# ---------------------------------------------------------------- framing


@pytest.mark.parametrize("end", [b"\r\n\r\n", b"\n\n", b"\r\r"])
def test_events_end_in_any_way_lines_may(end):
    _, events = played(sse(*DOCUMENTS, end=end))
    assert events == EVENTS


def test_a_list_in_place_of_events_is_the_same_stream():
    for text in (json.dumps(DOCUMENTS), " \n" + json.dumps(DOCUMENTS, indent=2), "\ufeff" + json.dumps(DOCUMENTS)):
        decoder, events = played(text.encode())
        assert events == EVENTS
        assert decoder.done


def test_one_object_in_place_of_events_is_a_whole_answer():
    _, events = played(json.dumps(document({"text": "a"})).encode())
    assert events == [TextDelta("a"), Finished("stop", "STOP")]


def test_a_last_event_without_its_blank_line_counts():
    assert played(sse(*DOCUMENTS).rstrip())[1] == EVENTS


def test_a_byte_order_mark_and_comments_are_skipped():
    assert played(b"\xef\xbb\xbf: hi\n\n" + sse(*DOCUMENTS))[1] == EVENTS


@given(cuts=st.lists(st.integers(0, 5000), max_size=9), form=st.sampled_from(["crlf", "lf", "list", "object"]))
def test_any_cuts_give_the_same_events(cuts, form):
    stream = {
        "crlf": sse(*DOCUMENTS),
        "lf": sse(*DOCUMENTS, end=b"\n\n"),
        "list": b"\xef\xbb\xbf  " + json.dumps(DOCUMENTS, ensure_ascii=False).encode(),
        "object": json.dumps(DOCUMENTS[3]).encode(),
    }[form]
    decoder, events = played(*pieces_of(stream, cuts))
    assert (events, decoder.done, decoder.fault) == (played(stream)[1], True, None)


@given(
    cuts=st.lists(st.integers(0, 5000), max_size=9),
    breaks=st.sampled_from([b"", sse(ERROR), b"data: {\n\n", b"data: 1\n\n"]),
)
def test_any_cuts_give_the_same_fault(cuts, breaks):
    stream = sse(*DOCUMENTS[:2]) + breaks + sse(*DOCUMENTS[2:3])
    decoder, events = played(*pieces_of(stream, cuts))
    whole, expected = played(stream)
    assert events == expected
    assert not decoder.done
    assert decoder.fault is not None
    assert whole.fault is not None
    assert (decoder.fault.kind, decoder.fault.message) == (whole.fault.kind, whole.fault.message)


# ---------------------------------------------------------------- the end


def test_a_stream_without_a_finish_reason_was_cut():
    decoder, events = played(sse(*DOCUMENTS[:3]))
    assert events == EVENTS[:7]
    assert not decoder.done
    assert decoder.fault is not None
    assert decoder.fault.kind == "protocol"


@pytest.mark.parametrize("stream", [b"", b" \n", b"[]", sse(document(finish="FINISH_REASON_UNSPECIFIED"))])
def test_a_stream_that_says_nothing_was_cut(stream):
    decoder, events = played(stream)
    assert events == []
    assert decoder.fault is not None
    assert decoder.fault.kind == "protocol"


def test_text_after_a_finish_reason_still_belongs_to_the_answer():
    last = document(usageMetadata=counts(3, 4))
    assert decoded(document({"text": "a"}), document({"text": "b"}), last) == [
        TextDelta("a"),
        TextDelta("b"),
        UsageSeen(Usage(3, 4)),
        Finished("stop", "STOP"),
    ]


def test_nothing_is_done_before_the_stream_ends():
    decoder = GeminiAdapter().stream_decoder(call_of())
    states = []
    for step in (lambda: decoder.feed(sse(*DOCUMENTS)), decoder.eof):
        step()
        states.append(decoder.done)
    assert states == [False, True]
    assert decoder.feed(sse(*DOCUMENTS)) == decoder.eof() == []


def test_counts_of_the_last_document_hold():
    seen = [
        event.usage
        for event in decoded(
            document({"text": "a"}, finish=None, usageMetadata=counts(8, 20, thoughtsTokenCount=4)),
            document({"text": "b"}, finish=None, usageMetadata=counts(8, 20, thoughtsTokenCount=4)),
            document({"text": "c"}, finish=None, usageMetadata={"promptTokenCount": -1}),
            document(usageMetadata=counts(400, 122)),
        )
        if isinstance(event, UsageSeen)
    ]
    assert seen == [Usage(8, 24, reasoning_tokens=4), Usage(400, 122)]


@pytest.mark.parametrize("native", ["SAFETY", "PROHIBITED_CONTENT"])
def test_an_answer_that_is_broken_off_for_its_content(native):
    assert decoded(document({"text": "a"}, finish=None), {"candidates": [{"finishReason": native}]}) == [
        TextDelta("a"),
        Finished("content_filter", native),
    ]


@pytest.mark.parametrize("block", ["SAFETY", "OTHER"])
def test_a_blocked_prompt_ends_the_stream(block):
    blocked = {"promptFeedback": {"blockReason": block}, "usageMetadata": counts(5, None)}
    assert decoded(blocked) == [UsageSeen(Usage(5)), Finished("content_filter", block)]


def test_ratings_of_a_prompt_that_was_not_blocked_end_nothing():
    rated = document({"text": "a"}, finish=None, promptFeedback={"safetyRatings": []})
    assert decoded(rated, document())[-1] == Finished("stop", "STOP")


# ---------------------------------------------------------------- parts


def test_calls_without_ids_get_distinct_ones_over_the_whole_stream():
    events = decoded(document(function_call("f"), function_call("f"), finish=None), document(function_call("f")))
    starts = [event for event in events if isinstance(event, ToolCallStart)]
    assert [start.index for start in starts] == [0, 1, 2]
    assert len({start.id for start in starts}) == 3
    assert events[-1] == Finished("tool_calls", "STOP")


def test_a_renamed_tool_has_the_clients_name():
    tools = [Tool("a b")]
    written = asked(tools=tools)["tools"][0]["functionDeclarations"][0]["name"]
    events = decoded(document(function_call(written, id="1")), request=ChatRequest(messages=[], tools=tools))
    assert events[0] == ToolCallStart(0, "1", "a b")


def test_what_only_gemini_says_and_other_candidates():
    code = {"executableCode": {"code": "1"}}
    other = {"candidates": [{"index": 1, "content": {"parts": [{"text": "no"}]}, "finishReason": "SAFETY"}]}
    assert decoded(document(code, finish=None), other, document({"text": ""})) == [
        ForeignDelta(GEMINI, code),
        Finished("stop", "STOP"),
    ]


# ---------------------------------------------------------------- faults


@pytest.mark.parametrize(("documents", "events_before"), [(0, 0), (2, 3), (4, 10)])
def test_an_error_inside_the_stream_is_a_fault_also_after_a_finish_reason(documents, events_before):
    decoder, events = played(sse(*DOCUMENTS[:documents], ERROR))
    assert events == EVENTS[:events_before]
    assert not decoder.done
    assert decoder.fault is not None
    assert (decoder.fault.kind, decoder.fault.message) == ("server", "The model is overloaded.")


@pytest.mark.parametrize("body", [[ERROR], ERROR])
def test_an_error_in_place_of_the_stream_is_a_fault(body):
    decoder, _ = played(json.dumps(body).encode())
    assert decoder.fault is not None
    assert decoder.fault.kind == "server"


def test_bare_text_between_events_is_no_event():
    bare = json.dumps(ERROR, indent=2).encode()
    assert played(sse(*DOCUMENTS) + bare)[1] == EVENTS
    decoder, _ = played(sse(*DOCUMENTS[:2]) + bare)
    assert decoder.fault is not None
    assert decoder.fault.kind == "protocol"


@pytest.mark.parametrize("stream", [b"[1]", b"[{", b"[{}] x", b'{"a":', b"data: x\n\n", b"data: []\n\n"])
def test_what_is_no_answer_is_a_breach_of_protocol(stream):
    decoder, events = played(stream)
    assert events == []
    assert decoder.fault is not None
    assert decoder.fault.kind == "protocol"


@pytest.mark.parametrize(
    "stream", [b"data: " + b"x" * (MAX_BYTES + 1), b"[" + b" " * MAX_LIST_BYTES, b" " * (MAX_LIST_BYTES + 1)]
)
def test_what_never_ends_is_given_up(stream):
    decoder, events = played(
        *(stream[start : start + MAX_BYTES // 2] for start in range(0, len(stream), MAX_BYTES // 2))
    )
    assert events == []
    assert decoder.fault is not None
    assert decoder.fault.kind == "protocol"


# ---------------------------------------------------------------- through the relay


def test_a_client_of_openai_reads_the_stream():
    call = Call(dialect="openai", body={"model": "m"}, model="m", stream=True)
    relay = TranslatingRelay(GeminiAdapter().stream_decoder(call_of()), OpenAIStreamRenderer(call, "g"))
    raw = play(relay, pieces_of(sse(*DOCUMENTS), [100, 300])) + relay.end(facts())
    assert text_of(raw) == "Grüße 🌍"
    assert tool_calls_of(raw) == [
        {"id": "1", "name": "f", "arguments": '{"a":"é"}'},
        {"id": "2", "name": "g", "arguments": "{}"},
    ]
    assert finishes_of(raw) == ["tool_calls"]
    assert relay.usage == Usage(9, 5)
    assert relay.usage_final
