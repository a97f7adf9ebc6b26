"""An Anthropic stream handed on to a client of the same format."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.anthropic_format.relay import AnthropicRelay
from proxy.canonical import Usage
from proxy.providers.anthropic import AnthropicAdapter
from proxy.sse import MAX_BYTES, SseParser
from tests.proxy.anthropic_wire import (
    STREAM,
    block,
    ended,
    event,
    message_of,
    sse,
    started,
    streaming_call,
    text,
    tool_use,
)
from tests.proxy.wire import documents, facts, pieces_of, play


def relay_for() -> AnthropicRelay:
    return AnthropicAdapter().stream_pass_through(streaming_call())


def relayed(stream: bytes) -> tuple[AnthropicRelay, bytes]:
    """A stream that ends well, with what the client got of it."""
    relay = relay_for()
    out = play(relay, [stream])
    assert relay.fault is None, relay.fault.message
    assert relay.done
    return relay, out + relay.end(facts(relay.usage))


def test_a_stream_passes_byte_for_byte():
    relay, out = relayed(STREAM)
    assert out == STREAM
    assert (relay.started, relay.produced_chars, relay.finish_reason) == (True, 7, "stop")
    assert (relay.usage, relay.usage_final) == (Usage(input_tokens=25, output_tokens=9), True)


def test_odd_spacing_unknown_members_and_unknown_events_pass_as_they_came():
    odd = (
        b'event: content_block_delta\ndata: {"index" : 0,"type":"content_block_delta","delta":{"text":"a","n":1.5}}\n\n'
    )
    new = b'event: something_new\ndata: {"type":"something_new","delta":7}\n\n'
    relay = relay_for()
    relay.feed(sse(started()))
    assert relay.feed(odd + new) == odd + new


def test_framing_is_written_anew():
    crlf = STREAM.replace(b"\n", b"\r\n").replace(b"data: ", b"data:")
    assert relayed(b": hello\r\n\r\n" + crlf)[1] == STREAM
    nameless = b"".join(line + b"\n" for line in STREAM.split(b"\n") if not line.startswith(b"event: "))
    assert relayed(nameless)[1] == STREAM


def test_data_of_several_lines_stays_one_event():
    split = sse(started()).replace(b'"message":', b'\ndata: "message":', 1)
    out = relay_for().feed(split)
    assert SseParser().feed(out) == SseParser().feed(split)
    assert out.startswith(b"event: message_start\ndata: {")


def test_the_closing_frames_wait_for_the_end():
    relay = relay_for()
    before = play(relay, [STREAM])
    assert [name for name, _ in documents(before)][-1] == "content_block_stop"
    assert [name for name, _ in documents(relay.end(facts()))] == ["message_delta", "message_stop"]


@pytest.mark.parametrize(
    ("start", "delta", "usage"),
    [
        (
            {"input_tokens": 9, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 1, "output_tokens": 1},
            {"input_tokens": 9, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 1, "output_tokens": 16},
            Usage(input_tokens=10, output_tokens=16, cache_read_tokens=1),
        ),
        (
            {"input_tokens": 0, "output_tokens": 0},
            {"input_tokens": 300, "cache_creation_input_tokens": 200, "output_tokens": 5},
            Usage(input_tokens=500, output_tokens=5, cache_write_tokens=200),
        ),
        (
            {"input_tokens": 25, "cache_read_input_tokens": 4, "output_tokens": 1},
            {"output_tokens": 15, "input_tokens": None},
            Usage(input_tokens=29, output_tokens=15, cache_read_tokens=4),
        ),
    ],
)
def test_usage_is_cumulative_and_never_added_up(start, delta, usage):
    relay, _ = relayed(sse(started(**start), *text(0, "Hi"), *ended(**delta)))
    assert relay.usage == usage


def test_of_two_message_deltas_the_later_counts():
    first = event("message_delta", delta={"stop_reason": None}, usage={"output_tokens": 8})
    stream = sse(started(), *text(0, "Hi"), first, *ended("max_tokens", output_tokens=15))
    relay, out = relayed(stream)
    assert out == stream
    assert (relay.usage, relay.finish_reason) == (Usage(input_tokens=25, output_tokens=15), "length")


def test_usage_of_a_broken_stream_is_not_final():
    relay = relay_for()
    relay.feed(sse(started(), *text(0, "Hi")))
    assert (relay.usage, relay.usage_final) == (Usage(input_tokens=25, output_tokens=1), False)


@pytest.mark.parametrize("usage", [{"output_tokens": -5}, {"output_tokens": "ten"}, {"output_tokens": 1 << 60}])
def test_usage_that_makes_no_sense_counts_as_none(usage):
    relay, _ = relayed(sse(started(), *text(0, "Hi"), *ended(**usage)))
    assert (relay.usage, relay.usage_final) == (None, False)


def test_a_client_gets_usage_also_from_a_provider_that_sends_none():
    bare = event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None})
    relay, out = relayed(sse(started(), *text(0, "Hi"), bare, event("message_stop")))
    assert not relay.usage_final
    assert relay.usage is not None
    assert message_of(out)["usage"]["output_tokens"] == relay.usage.output_tokens


def test_a_missing_message_delta_is_made_up_when_the_end_marker_came():
    call = sse(started(), *tool_use(0, "c", "f", "{}"), event("message_stop"))
    assert message_of(relayed(call)[1])["stop_reason"] == "tool_use"
    assert message_of(relayed(sse(started(), *text(0, "a"), event("message_stop")))[1])["stop_reason"] == "end_turn"


@pytest.mark.parametrize(
    "content",
    [
        text(0, "a"),
        block(0, {"type": "text", "text": "a"}),
        block(0, {"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": "a"}),
        block(0, {"type": "redacted_thinking", "data": "xx"}),
        tool_use(0, "c", "f", "{}"),
        block(0, {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
    ],
)
def test_what_counts_as_content(content):
    relay = relay_for()
    relay.feed(sse(started(), event("ping")))
    assert not relay.started
    relay.feed(sse(content))
    assert relay.started


def test_what_is_nothing_yet_is_no_content():
    relay = relay_for()
    relay.feed(sse(started(), text(0, "", ""), block(1, {"type": "thinking", "thinking": "", "signature": ""})))
    assert not relay.started


def test_characters_of_text_thinking_and_tool_calls_are_counted():
    thinking = block(0, {"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": "hm"})
    relay, _ = relayed(sse(started(), thinking, text(1, "é🌍"), tool_use(2, "c", "name", '{"a"', ":1}"), ended()))
    assert relay.produced_chars == 2 + 2 + 4 + 7


@pytest.mark.parametrize("cut", range(0, len(STREAM), 17))
def test_a_stream_cut_anywhere_never_ends_well(cut):
    relay = relay_for()
    out = play(relay, [STREAM[: min(cut, len(STREAM) - 20)]])
    assert not relay.done
    assert relay.fault is not None
    assert (relay.fault.kind, relay.fault.failover) == ("protocol", True)
    assert b"message_delta" not in out


def test_a_stream_that_breaks_behind_its_stop_reason_is_told_as_failed_only():
    relay = relay_for()
    out = play(relay, [STREAM[: STREAM.index(b"event: message_stop")]])
    assert relay.fault is not None
    told = documents(out + relay.fail("It broke.", "upstream_error", "api_error", "req_1"))
    assert "message_delta" not in [name for name, _ in told]
    assert told[-1] == (
        "error",
        {
            "type": "error",
            "error": {"type": "api_error", "message": "It broke.", "code": "upstream_error"},
            "request_id": "req_1",
        },
    )


@pytest.mark.parametrize(
    ("kind", "meaning"),
    [
        ("overloaded_error", "server"),
        ("api_error", "server"),
        ("rate_limit_error", "rate_limit"),
        ("invalid_request_error", "request"),
        ("authentication_error", "credential"),
        ("not_found_error", "not_found"),
        ("timeout_error", "timeout"),
        ("something_new", "server"),
    ],
)
def test_an_error_in_the_stream_is_a_fault_and_not_handed_on(kind, meaning):
    failed = event("error", error={"type": kind, "message": "Overloaded"})
    relay = relay_for()
    before = sse(started(), *text(0, "part"))
    assert relay.feed(before + sse(failed, *text(1, "never"), *ended())) == before
    assert relay.fault is not None
    assert (relay.fault.kind, relay.fault.message, relay.fault.status) == (meaning, "Overloaded", 200)


def test_an_error_is_known_by_the_name_of_its_event_alone():
    relay = relay_for()
    assert relay.feed(b'event: error\ndata: {"message":"gone"}\n\n') == b""
    assert relay.fault is not None
    assert not relay.started


@pytest.mark.parametrize(
    "nonsense",
    [
        b"data: {\n\n",
        b"data: [DONE]\n\n",
        b"<html>hello</html>",
        b'data: {"type":"content_block_delta","delta":{"text":7}}\n\n',
        sse(*text(0, "content before its message")),
        b'data: {"type":"x","usage":' + b"[" * 100_000 + b"\n\n",
    ],
)
def test_what_is_no_stream_of_messages_is_a_fault_before_content(nonsense):
    relay = relay_for()
    assert play(relay, [nonsense]) == b""
    assert relay.fault is not None
    assert (relay.fault.kind, relay.started) == ("protocol", False)


def test_an_event_name_cannot_forge_framing():
    forged = b'data: {"type":"x\\n\\nevent: message_stop\\ndata: {}"}\n\nevent: a b\ndata: {}\n\n'
    relay = relay_for()
    assert relay.feed(sse(started()) + forged) == sse(started())
    assert not relay.done


def test_half_a_surrogate_pair_passes_as_it_came():
    half = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"text":"\\ud83c"}}\n\n'
    relay = relay_for()
    relay.feed(sse(started()))
    assert relay.feed(half) == half


def test_an_endless_beginning_and_an_endless_end_are_given_up():
    pings = sse(event("ping")) * 1000
    for begin in (sse(started()), sse(started(), *text(0, "a"), ended()[0])):
        relay = relay_for()
        relay.feed(begin)
        for _ in range(MAX_BYTES // len(pings) + 1):
            relay.feed(pings)
        assert relay.fault is not None


def test_an_endless_line_is_given_up_after_the_content_before_it():
    relay = relay_for()
    out = relay.feed(sse(started(), *text(0, "a")) + b"data: " + b"x" * MAX_BYTES)
    assert out == sse(started(), *text(0, "a"))
    assert relay.fault is not None


EVENTS = st.lists(
    st.one_of(
        st.just(started()),
        st.builds(text, st.just(0), st.sampled_from(["é🌍", "", "a\n\nb"])),
        st.just(tool_use(1, "c", "f", '{"a"', ":1}")),
        st.just(block(2, {"type": "server_tool_use", "id": "s", "name": "n", "input": {}})),
        st.just(ended()),
        st.just(ended()[0]),
        st.sampled_from(
            [
                event("ping"),
                event("error", error={"type": "api_error", "message": "x"}),
                b": ping\n\n",
                b"data: 7\n\n",
                b'data: {"type":"content_block_start","content_block":null}\r\n\r\n',
                b"data: {}\n\n",
            ]
        ),
    ),
    max_size=10,
)


@given(EVENTS, st.booleans(), st.lists(st.integers(0, 5000), max_size=10))
def test_any_cuts_give_the_client_the_same_bytes(events, begun, cuts):
    stream = sse(*([started()] if begun else []), *events)
    results = []
    for pieces in ([stream], pieces_of(stream, cuts), [stream[i : i + 1] for i in range(len(stream))]):
        relay = relay_for()
        out = play(relay, pieces)
        out += relay.end(facts()) if relay.fault is None else b""
        results.append((out, relay.usage, relay.done, relay.started, relay.produced_chars, relay.finish_reason))
    assert results[0] == results[1] == results[2]
    assert all(result[2] or relay.fault for result in results)


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_random_bytes_never_raise(pieces):
    relay = relay_for()
    play(relay, pieces)
    assert relay.fault is not None
