"""An OpenAI-style stream handed on to a client of the same format."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canonical import Usage
from proxy.context import OPENAI, Call
from proxy.openai_format.relay import OpenAIRelay
from proxy.sse import MAX_BYTES
from tests.proxy.wire import (
    chunk,
    documents,
    facts,
    finishes_of,
    pieces_of,
    play,
    sse,
    text_of,
    tool_calls_of,
    usage_chunk,
    without_random_parts,
)

ROLE = chunk({"role": "assistant", "content": ""})
STREAM = (ROLE, chunk({"content": "Grüße "}), chunk({"content": "🌍"}), chunk(finish="stop"))


def relay_for(*, asked: bool = False) -> OpenAIRelay:
    return OpenAIRelay(Call(dialect=OPENAI, body={}, model="m", stream=True, include_usage=asked))


def relayed(stream: bytes, *, asked: bool = False) -> tuple[OpenAIRelay, bytes]:
    """A stream that ends well, with what the client got of it."""
    relay = relay_for(asked=asked)
    out = play(relay, [stream])
    assert relay.fault is None, relay.fault.message
    assert relay.done
    return relay, out + relay.end(facts(relay.usage))


def opened(call_id: str, name: str, arguments: str = "", index: int | None = 0) -> dict:
    fragment = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return fragment if index is None else {"index": index} | fragment


def more(arguments: str, index: int | None = 0) -> dict:
    fragment = {"function": {"arguments": arguments}}
    return fragment if index is None else {"index": index} | fragment


def test_usual_events_pass_byte_for_byte():
    odd = b'data: {"x" : [1.50],"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
    relay = relay_for()
    assert relay.feed(odd) == odd
    assert (relay.started, relay.produced_chars) == (True, 1)


def test_the_closing_frames_wait_for_the_end():
    relay = relay_for(asked=True)
    stream = sse(*STREAM, usage_chunk(9, 2), "DONE")
    before = play(relay, [stream])
    assert text_of(before) == "Grüße 🌍"
    assert finishes_of(before) == []
    assert before + relay.end(facts(relay.usage)) == stream


def test_usage_is_read_and_kept_from_a_client_that_did_not_ask():
    announced = [event | {"usage": None} for event in STREAM]
    relay, out = relayed(sse(*announced, usage_chunk(9, 2), "DONE"))
    assert relay.usage == Usage(input_tokens=9, output_tokens=2)
    assert relay.usage_final
    assert b"usage" not in out
    assert len(documents(out)) == len(STREAM) + 1


def test_spaces_in_the_announcement_of_usage_change_nothing():
    text = '"usage"'
    spaced = json.dumps({"object": "chat.completion.chunk", "usage": None} | chunk({"content": text}))
    first = json.dumps({"usage": None} | chunk({"content": "b"}))
    out = relay_for().feed(f"data: {spaced}\n\ndata: {first}\n\n".encode())
    assert [document for document in documents(out) if "usage" in document] == []
    assert text_of(out) == '"usage"b'


def test_usage_that_rides_on_content_or_on_the_finish_comes_once_and_last():
    on_each = [event | {"usage": {"prompt_tokens": 5, "completion_tokens": n}} for n, event in enumerate(STREAM)]
    relay, out = relayed(sse(*on_each, "DONE"), asked=True)
    events = documents(out)
    assert relay.usage == Usage(input_tokens=5, output_tokens=3)
    assert [event["usage"] for event in events[:-1] if "usage" in event] == [
        {"prompt_tokens": 5, "completion_tokens": 3}
    ]
    assert (events[-2]["choices"], events[-2]["id"], events[-1]) == ([], "chatcmpl-1", "DONE")


def test_a_client_that_asked_gets_usage_also_from_a_provider_that_sent_none():
    relay, out = relayed(sse(*STREAM, "DONE"), asked=True)
    assert relay.usage is None
    assert documents(out)[-2]["usage"]["total_tokens"] == 7


@pytest.mark.parametrize("usage", [{"prompt_tokens": -1, "completion_tokens": 2}, {"prompt_tokens": "ten"}, "free", 7])
def test_usage_that_makes_no_sense_counts_as_none(usage):
    relay, out = relayed(sse(*STREAM, chunk(choices=[], usage=usage), "DONE"), asked=True)
    assert relay.usage is None
    assert documents(out)[-2]["usage"]["prompt_tokens"] == 3


def test_partial_usage_of_a_broken_stream_is_not_final():
    relay = relay_for()
    relay.feed(sse(chunk({"content": "a"}, usage={"prompt_tokens": 5, "completion_tokens": 1})))
    assert relay.usage == Usage(input_tokens=5, output_tokens=1)
    assert not relay.usage_final


@pytest.mark.parametrize(
    "fragments",
    [
        pytest.param([[opened("a", "read", '{"p":1}')], [opened("b", "list", '{"d":2}')]], id="every call has index 0"),
        pytest.param(
            [
                [opened("a", "read"), opened("b", "list", index=1)],
                [more('{"d":', 1)],
                [more('{"p":1}', 0)],
                [more("2}", 1)],
            ],
            id="interleaved",
        ),
        pytest.param(
            [[opened("a", "read"), more('{"p"')], [more(":1}"), opened("b", "list", '{"d":2}', 1)]],
            id="two entries of one call in one chunk",
        ),
        pytest.param(
            [[opened("a", "read", '{"p"')], [opened("a", "read", ":1}")], [opened("b", "list", '{"d":2}', 1)]],
            id="id and name on every fragment",
        ),
        pytest.param(
            [[opened("a", "read", '{"p"')], [more(":1}") | {"id": "zzz"}], [opened("b", "list", '{"d":2}', 1)]],
            id="a new id on every fragment",
        ),
        pytest.param(
            [[opened("a", "read", '{"p"', None)], [more(":1}", None)], [opened("b", "list", '{"d":2}', None)]],
            id="no index",
        ),
        pytest.param([[opened("a", "read", '{"p":1}', 1)], [opened("b", "list", '{"d":2}', 2)]], id="numbered from 1"),
        pytest.param(
            [
                [{"index": 0, "id": "a", "function": {"name": "read", "arguments": {"p": 1}}}],
                [opened("b", "list", '{"d":2}', 1)],
            ],
            id="arguments as an object, no type",
        ),
    ],
)
def test_tool_calls_are_numbered_and_named_as_the_sdk_needs_them(fragments):
    events = [chunk({"tool_calls": entries}) for entries in fragments]
    _, out = relayed(sse(ROLE, *events, chunk(finish="tool_calls"), "DONE"))
    calls = tool_calls_of(out)
    assert [(call["id"], call["name"], json.loads(call["arguments"])) for call in calls] == [
        ("a", "read", {"p": 1}),
        ("b", "list", {"d": 2}),
    ]


def test_calls_without_ids_get_distinct_ones():
    nameless = {"index": 0, "function": {"name": "roll", "arguments": "{}"}}
    _, out = relayed(
        sse(chunk({"tool_calls": [nameless]}), chunk({"tool_calls": [nameless]}), chunk(finish="stop"), "DONE")
    )
    first, second = tool_calls_of(out)
    assert first["id"] != second["id"]
    assert (first["arguments"], second["arguments"]) == ("{}", "{}")


def test_one_id_for_two_calls_is_told_apart():
    events = [chunk({"tool_calls": [opened("a", "f", "{}")]}), chunk({"tool_calls": [opened("a", "g", "{}", 1)]})]
    first, second = tool_calls_of(relayed(sse(*events, chunk(finish="tool_calls"), "DONE"))[1])
    assert (first["id"], first["name"], second["name"]) == ("a", "f", "g")
    assert second["id"] != "a"


def test_arguments_as_an_object_become_text():
    call = opened("a", "f") | {"function": {"name": "f", "arguments": {"p": 1}}}
    _, out = relayed(sse(chunk({"tool_calls": [call]}), chunk(finish="tool_calls"), "DONE"))
    assert [call["arguments"] for call in tool_calls_of(out)] == ['{"p":1}']


def test_a_choice_without_index_is_the_first():
    _, out = relayed(sse(chunk(choices=[{"delta": {"content": "a"}}]), chunk(finish="stop"), "DONE"))
    assert text_of(out) == "a"


def test_more_choices_than_can_be_asked_for_are_a_fault():
    relay = relay_for()
    for index in range(200):
        relay.feed(sse(chunk(choices=[{"index": index, "delta": {"content": "a"}, "finish_reason": None}])))
    assert relay.fault is not None


def test_orderly_tool_calls_pass_byte_for_byte():
    stream = sse(chunk({"tool_calls": [opened("a", "f")]}), chunk({"tool_calls": [more("{}")]}))
    assert relay_for().feed(stream) == stream


def test_a_fragment_of_a_call_that_was_never_opened_is_a_fault():
    relay = relay_for()
    relay.feed(sse(chunk({"content": "a"}), chunk({"tool_calls": [more("{}")]})))
    assert relay.fault is not None
    assert relay.fault.kind == "protocol"


def test_a_second_finish_reason_and_content_after_the_first_are_left_out():
    relay, out = relayed(sse(*STREAM, chunk({"content": "late"}), chunk(finish="length"), chunk(), "DONE"))
    assert text_of(out) == "Grüße 🌍"
    assert finishes_of(out) == ["stop"]
    assert relay.finish_reason == "stop"


def test_a_missing_finish_reason_is_made_up_when_the_end_marker_came():
    assert finishes_of(relayed(sse(chunk({"content": "a"}), "DONE"))[1]) == ["stop"]
    call = sse(chunk({"tool_calls": [opened("a", "f", "{}")]}), "DONE")
    assert finishes_of(relayed(call)[1]) == ["tool_calls"]


def test_every_choice_is_finished_once():
    def of(index: int, delta: dict, finish: str | None = None) -> dict:
        return {"index": index, "delta": delta, "finish_reason": finish}

    both = chunk(choices=[of(0, {"content": "a"}), of(1, {"content": "b"})])
    half = chunk(choices=[of(0, {}, "stop"), of(1, {"content": "c"})])
    _, out = relayed(sse(both, half, chunk(choices=[of(1, {}, "length")]), "DONE"))
    assert text_of(out) == "a"
    assert sorted(finishes_of(out)) == ["length", "stop"]
    assert [d["choices"][0]["delta"]["content"] for d in documents(out)[:3]] == ["a", "b", "c"]


def test_a_stream_without_end_marker_is_whole_once_it_has_its_finish_reason():
    relay, out = relayed(sse(*STREAM))
    assert documents(out)[-1] == "DONE"
    assert relay.usage is None


@pytest.mark.parametrize("cut", range(0, 400, 7))
def test_a_stream_cut_before_its_finish_reason_never_ends_well(cut):
    relay = relay_for()
    out = play(relay, [sse(*STREAM[:-1])[:cut]])
    assert not relay.done
    assert relay.fault is not None
    assert (relay.fault.kind, relay.fault.failover) == ("protocol", True)
    assert finishes_of(out) == []


@pytest.mark.parametrize("nothing", [b"", b"data: [DONE]\n\n", b"<html>hello</html>", b": ping\n\n", b'{"error": {}}'])
def test_a_stream_without_an_answer_is_a_fault_before_content(nothing):
    relay = relay_for()
    assert play(relay, [nothing]) == b""
    assert relay.fault is not None
    assert not relay.started


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"error": {"message": "down", "code": 502}}, "server"),
        ({"error": {"message": "slow down", "code": "429"}}, "rate_limit"),
        ({"error": {"message": "no", "type": "invalid_request_error"}}, "request"),
        ({"error": "gone"}, "protocol"),
        ({"object": "error", "message": "bad", "code": 400}, "request"),
        (b'event: error\ndata: {"message": "overloaded", "type": "overloaded_error"}\n\n', "server"),
        (chunk(finish="error"), "server"),
    ],
)
def test_an_error_in_the_stream_is_a_fault_of_its_own_kind(event, kind):
    relay = relay_for()
    out = relay.feed(sse(chunk({"content": "part"}), event, chunk({"content": "never"}), "DONE"))
    assert relay.fault is not None
    assert relay.fault.kind == kind
    assert text_of(out) == "part"
    failed = out + relay.fail("It broke.", "upstream_error", "api_error", "req_1")
    assert documents(failed)[-1] == {
        "error": {
            "message": "It broke.",
            "type": "api_error",
            "param": None,
            "code": "upstream_error",
            "details": None,
        },
        "request_id": "req_1",
    }


def test_nothing_comes_before_the_first_content_and_nothing_is_lost_by_that():
    relay = relay_for()
    assert relay.feed(sse(chunk(choices=[], prompt_filter_results=[], object=""), ROLE)) == b""
    assert not relay.started
    out = relay.feed(sse(chunk({"content": "a"})))
    assert [document["choices"] for document in documents(out)][:2] == [[], ROLE["choices"]]
    assert {document["object"] for document in documents(out)} == {"chat.completion.chunk"}


@pytest.mark.parametrize(
    "delta",
    [{"reasoning_content": "hm"}, {"reasoning": "hm"}, {"refusal": "no"}, {"content": [{"type": "text", "text": "a"}]}],
)
def test_what_counts_as_content(delta):
    relay = relay_for()
    relay.feed(sse(ROLE))
    before = relay.started
    relay.feed(sse(chunk(delta)))
    assert (before, relay.started) == (False, True)
    assert relay.produced_chars > 0


def test_an_answer_in_one_chunk_is_held_until_it_is_known_to_be_whole():
    relay = relay_for()
    assert relay.feed(sse(chunk({"content": "all"}, "stop"))) == b""
    assert not relay.started
    assert relay.feed(sse("DONE")) == b""
    assert text_of(relay.end(facts())) == "all"


def test_an_endless_beginning_is_given_up():
    relay = relay_for()
    empty = sse(ROLE) * 1000
    for _ in range(MAX_BYTES // len(empty) + 1):
        relay.feed(empty)
    assert relay.fault is not None


def test_an_endless_line_is_given_up_after_the_content_before_it():
    relay = relay_for()
    out = relay.feed(sse(chunk({"content": "a"})) + b"data: " + b"x" * MAX_BYTES)
    assert text_of(out) == "a"
    assert relay.fault is not None


def test_half_a_surrogate_pair_passes_as_it_came():
    event = b'data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"\\ud83c"}}]}\n\n'
    assert relay_for().feed(event) == event


def test_an_event_that_is_not_json_is_a_fault():
    relay = relay_for()
    relay.feed(sse(chunk({"content": "a"})) + b'data: {"cut\n\n')
    assert relay.fault is not None
    assert relay.fault.kind == "protocol"


DELTAS = st.sampled_from(
    [
        {"content": "é🌍"},
        {"content": ""},
        {"content": None},
        {"reasoning": "x"},
        {"tool_calls": [opened("a", "f")]},
        {"tool_calls": [opened("b", "g", "{}")]},
        {"tool_calls": [more("1")]},
        {"tool_calls": [more("2", 1), opened("c", "h", "", None)]},
        {"tool_calls": "nonsense"},
        {"content": 7},
    ]
)
EVENTS = st.lists(
    st.one_of(
        st.builds(chunk, DELTAS, st.sampled_from([None, None, None, "stop", ""])),
        st.just(usage_chunk(3, 4)),
        st.just("DONE"),
        st.sampled_from(
            [b": ping\n\n", b"data: 7\n\n", b"data:\r\n\r\n", {"choices": [None]}, {"choices": 3}, {"x": 1}]
        ),
    ),
    max_size=12,
)


@given(EVENTS, st.booleans(), st.lists(st.integers(0, 5000), max_size=10))
def test_any_cuts_give_the_client_the_same_bytes(events, asked, cuts):
    stream = sse(*events)
    results = []
    for pieces in ([stream], pieces_of(stream, cuts), [stream[i : i + 1] for i in range(len(stream))]):
        relay = relay_for(asked=asked)
        out = play(relay, pieces)
        out += relay.end(facts()) if relay.fault is None else b""
        results.append((without_random_parts(out), relay.usage, relay.done, relay.started, relay.produced_chars))
    assert results[0] == results[1] == results[2]
    assert all(result[2] or relay.fault for result in results)


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_random_bytes_never_raise(pieces):
    relay = relay_for()
    play(relay, pieces)
    assert relay.fault is not None or relay.done
