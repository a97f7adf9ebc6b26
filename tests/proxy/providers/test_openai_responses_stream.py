"""A stream of OpenAI's Responses API handed on to a client that speaks it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canonical import Usage
from proxy.context import RESPONSES, Call
from proxy.errors import UpstreamFault
from proxy.openai_format.responses_relay import MAX_WAITING, ResponsesRelay
from proxy.sse import MAX_BYTES
from tests.proxy.responses_wire import events, function_call, message, read_events, response, text_events
from tests.proxy.wire import facts, pieces_of, play

STREAM = events(*text_events("Grüße ", "🌍"))
LAST = STREAM[STREAM.rindex(b"event: ") :]
COUNTED = Usage(input_tokens=20, output_tokens=9, cache_read_tokens=8, cache_write_tokens=2, reasoning_tokens=4)


def relay_for() -> ResponsesRelay:
    return ResponsesRelay(Call(dialect=RESPONSES, body={}, model="m", stream=True))


def before_content() -> bytes:
    return events(*text_events("x")[:3])


def faulted(stream: bytes) -> UpstreamFault:
    relay = relay_for()
    play(relay, [stream])
    assert relay.fault is not None
    assert not relay.done
    return relay.fault


def test_all_events_pass_byte_for_byte_and_the_last_waits_for_the_end():
    relay = relay_for()
    before = play(relay, [STREAM])
    assert before == STREAM[: -len(LAST)]
    assert relay.end(facts()) == LAST
    assert (relay.done, relay.fault, relay.finish_reason) == (True, None, "stop")
    assert (relay.usage, relay.usage_final, relay.produced_chars) == (COUNTED, True, 7)


def test_nothing_is_handed_out_before_the_first_content():
    relay = relay_for()
    assert relay.feed(before_content()) == b""
    assert not relay.started
    delta = events({"type": "response.output_text.delta", "delta": "a"})
    assert relay.feed(delta) == before_content() + delta
    assert relay.started


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.reasoning_summary_text.delta", "delta": "hm"},
        {"type": "response.refusal.delta", "delta": "no"},
        {"type": "response.function_call_arguments.delta", "delta": "{"},
        {"type": "response.output_item.added", "output_index": 0, "item": function_call("f", "")},
        {"type": "response.output_item.added", "output_index": 0, "item": {"id": "ws_1", "type": "web_search_call"}},
    ],
)
def test_reasoning_refusals_and_calls_are_content(event):
    relay = relay_for()
    assert relay.feed(events(event)) == events(event)
    assert relay.started


@given(st.lists(st.integers(0, 1 << 16), max_size=12), st.sampled_from([b"\n", b"\r\n", b"\r"]), st.booleans())
def test_any_cuts_line_ends_and_comments_hand_on_the_same_bytes(cuts, line_end, commented):
    sent = STREAM.replace(b"\n\n", b"\n\n: keep-alive\n\n") if commented else STREAM
    relay = relay_for()
    got = play(relay, pieces_of(sent.replace(b"\n", line_end), cuts))
    assert got + relay.end(facts()) == STREAM
    assert (relay.usage, relay.fault) == (COUNTED, None)


def test_an_event_named_after_its_data_or_not_at_all_is_known_by_its_type():
    documents = read_events(STREAM)
    after = b"".join(b"data: %b\nevent: %b\n\n" % (json.dumps(d).encode(), d["type"].encode()) for d in documents)
    bare = b"".join(b"data: %b\n\n" % json.dumps(d).encode() for d in documents)
    for stream in (after, bare):
        relay = relay_for()
        play(relay, [stream])
        assert (relay.done, relay.fault, relay.usage) == (True, None, COUNTED)


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "content_filter"),
        ({"output": [function_call("f", "{}")]}, "tool_calls"),
    ],
)
def test_the_last_event_says_why_it_stopped(members, reason):
    last = response(message("a"), **members)
    relay = relay_for()
    stream = events(*text_events("a")[:-1], {"type": f"response.{last['status']}", "response": last})
    play(relay, [stream])
    assert (relay.done, relay.finish_reason) == (True, reason)


def test_done_after_the_last_event_is_no_event_and_before_it_no_end():
    relay = relay_for()
    play(relay, [STREAM + b"data: [DONE]\n\n"])
    assert relay.end(facts()) == LAST
    assert faulted(STREAM[: -len(LAST)] + b"data: [DONE]\n\n").kind == "protocol"


def test_a_last_event_without_usage_leaves_it_to_the_estimate():
    relay = relay_for()
    play(relay, [events(*text_events("four", usage=None))])
    assert (relay.done, relay.usage, relay.usage_final, relay.produced_chars) == (True, None, False, 4)


@pytest.mark.parametrize("length", range(0, len(STREAM) - len(LAST), 97))
def test_a_stream_that_stops_anywhere_is_a_fault(length):
    assert faulted(STREAM[:length]).kind == "protocol"


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"type": "error", "code": "server_error", "message": "sorry", "param": None}, "server"),
        ({"type": "error", "code": "rate_limit_exceeded", "message": "sorry"}, "rate_limit"),
        ({"type": "error", "error": {"type": "invalid_request_error", "code": None, "message": "sorry"}}, "request"),
        ({"type": "error", "code": "odd", "message": "sorry"}, "protocol"),
        (
            {
                "type": "response.failed",
                "response": response(status="failed", error={"code": "server_error", "message": "sorry"}),
            },
            "server",
        ),
        (
            {
                "type": "response.failed",
                "response": response(status="failed", error={"code": "invalid_image_url", "message": "sorry"}),
            },
            "request",
        ),
        ({"type": "response.completed", "response": response(error={"message": "sorry"})}, "protocol"),
    ],
)
@pytest.mark.parametrize("started", [False, True])
def test_what_the_provider_reports_is_a_fault_and_never_handed_on(event, kind, started):
    relay = relay_for()
    out = relay.feed(before_content() if not started else STREAM[: -len(LAST)])
    assert relay.feed(events(event)) == b""
    assert relay.fault is not None
    assert (relay.fault.kind, relay.fault.message, relay.started) == (kind, "sorry", started)
    assert relay.feed(STREAM) == relay.eof() == b""
    assert bool(out) is started


@pytest.mark.parametrize(
    "data",
    [b"data: {}\n\n", b"data: nonsense\n\n", b'data: {"type": 1}\n\n', b'data: {"type":"response.completed"}\n\n'],
)
def test_what_is_not_understood_is_a_fault(data):
    assert faulted(data).kind == "protocol"


def test_an_error_without_a_type_is_a_fault_with_its_words():
    fault = faulted(b'data: {"error": {"message": "sorry", "code": "server_error"}}\n\n')
    assert (fault.kind, fault.message) == ("server", "sorry")


def test_a_line_or_a_beginning_too_long_is_a_fault():
    assert faulted(b"data: " + b"x" * (MAX_BYTES + 1)).kind == "protocol"
    long = events({"type": "response.in_progress", "response": "x" * (MAX_BYTES - 200)})
    relay = relay_for()
    for _ in range(MAX_WAITING // len(long) + 1):
        assert relay.feed(long) == b""
    assert relay.fault is not None
    assert relay.fault.message == "a stream of too many events without content"


def test_a_broken_stream_ends_with_an_error_event_that_is_numbered_on():
    relay = relay_for()
    relay.feed(STREAM[: -len(LAST)])
    document = read_events(relay.fail("went wrong", "upstream_error", "api_error", "req_1"))[0]
    assert document["type"] == "error"
    assert document["code"] == document["error"]["code"] == "upstream_error"
    assert document["message"] == document["error"]["message"] == "went wrong"
    assert document["request_id"] == "req_1"
    assert document["sequence_number"] == len(read_events(STREAM)) - 1
