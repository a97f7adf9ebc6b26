"""A ConverseStream answer as canonical events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.bedrock_format.decoder import ConverseStreamDecoder
from proxy.canonical import (
    ChatRequest,
    Finished,
    RedactedThinking,
    SignatureDelta,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    Usage,
    UsageSeen,
)
from proxy.errors import UpstreamFault
from proxy.providers.bedrock import BedrockAdapter
from tests.proxy.bedrock_wire import (
    STREAM,
    call_of,
    delta,
    ended,
    event,
    exception,
    metadata,
    started,
    stopped,
    text_frame,
    tool,
    tool_use,
)
from tests.proxy.wire import pieces_of


def decoder(*names: str) -> ConverseStreamDecoder:
    return BedrockAdapter().stream_decoder(call_of(ChatRequest(messages=[], tools=[tool(name) for name in names])))


def decoded(*frames: bytes, names: tuple[str, ...] = ()) -> list[StreamEvent]:
    """Events of a stream that ends well, usage left out."""
    one = decoder(*names)
    found = one.feed(started() + b"".join(frames) + metadata())
    assert one.fault is None, one.fault.message
    assert one.done
    return [item for item in found if not isinstance(item, UsageSeen)]


def fault_of(one: ConverseStreamDecoder) -> UpstreamFault:
    assert one.fault is not None
    assert not one.done
    return one.fault


def test_a_stream_of_text():
    assert decoder().feed(STREAM) == [
        TextDelta("Grüße "),
        TextDelta("🌍"),
        Finished("stop", native_finish="end_turn"),
        UsageSeen(Usage(input_tokens=25, output_tokens=9)),
    ]


def test_tool_calls_are_numbered_from_0_and_their_fragments_handed_on():
    frames = [
        delta(0, text="Let me look."),
        stopped(0),
        tool_use(1, "tooluse_a", "weather", "", '{"city":', ' "Oslo"}'),
        tool_use(2, "tooluse_b", "time"),
    ]
    assert decoded(*frames, ended("tool_use")) == [
        TextDelta("Let me look."),
        ToolCallStart(0, "tooluse_a", "weather"),
        ToolCallDelta(0, '{"city":'),
        ToolCallDelta(0, ' "Oslo"}'),
        ToolCallStart(1, "tooluse_b", "time"),
        ToolCallDelta(1, "{}"),
        Finished("tool_calls", native_finish="tool_use"),
    ]


def test_calls_go_by_the_names_of_the_caller():
    long = "weather_" * 12
    written = next(iter(decoder(long)._names))
    assert len(written) == 64
    found = decoded(tool_use(0, "c", written, "{}"), ended("tool_use"), names=(long,))
    assert found[0] == ToolCallStart(0, "c", long)


def test_thinking_signatures_and_redacted_thinking():
    frames = [
        delta(0, reasoningContent={"text": "hm"}),
        delta(0, reasoningContent={"signature": "sig"}),
        stopped(0),
        delta(1, reasoningContent={"redactedContent": "eHg="}),
        stopped(1),
    ]
    assert decoded(*frames, ended())[:-1] == [ThinkingDelta("hm"), SignatureDelta("sig"), RedactedThinking("eHg=")]


def test_what_aws_runs_itself_is_no_call_of_the_caller():
    frames = [
        tool_use(0, "tooluse_a", "nova_grounding", '{"q":1}', type="server_tool_use"),
        event("contentBlockStart", contentBlockIndex=1, start={"toolResult": {"toolUseId": "tooluse_a"}}),
        delta(1, toolResult=[{"text": "found"}]),
        stopped(1),
        delta(2, citation={"title": "x"}),
        delta(2, text="So it is."),
    ]
    assert decoded(*frames, ended("tool_use")) == [
        TextDelta("So it is."),
        Finished("stop", native_finish="tool_use"),
    ]


def test_a_tool_that_the_caller_offered_is_the_callers_whoever_claims_it():
    found = decoded(tool_use(0, "c", "search", "{}", type="server_tool_use"), ended("tool_use"), names=("search",))
    assert found[0] == ToolCallStart(0, "c", "search")


@pytest.mark.parametrize(
    ("native", "ours"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("guardrail_intervened", "content_filter"),
        ("content_filtered", "content_filter"),
        ("malformed_tool_use", "stop"),
        ("something_new", "stop"),
    ],
)
def test_why_it_stopped(native, ours):
    assert decoded(ended(native)) == [Finished(ours, native_finish=native)]


def test_the_stop_sequence_is_told():
    (finished,) = decoded(ended("stop_sequence", additionalModelResponseFields={"stop_sequence": "END"}))
    assert finished == Finished("stop", native_finish="stop_sequence", stop_sequence="END")


def test_usage_includes_what_was_read_from_and_written_to_the_cache():
    usage = metadata(
        inputTokens=3,
        outputTokens=121,
        cacheReadInputTokens=1712,
        cacheWriteInputTokens=236,
        cacheDetails=[{"ttl": "5m", "inputTokens": 36}, {"ttl": "1h", "inputTokens": 200}],
    )
    assert decoder().feed(started() + ended() + usage)[-1] == UsageSeen(
        Usage(
            input_tokens=1951,
            output_tokens=121,
            cache_read_tokens=1712,
            cache_write_tokens=236,
            cache_write_1h_tokens=200,
        )
    )


def test_the_end_waits_for_the_usage():
    one = decoder()
    one.feed(started() + delta(0, text="a") + ended())
    assert not one.done
    assert one.feed(metadata()) == [UsageSeen(Usage(input_tokens=25, output_tokens=9))]
    assert one.done


def test_a_stream_that_closes_after_its_marker_is_whole_without_usage():
    one = decoder()
    one.feed(started() + delta(0, text="a") + ended() + metadata()[:30])
    assert one.eof() == []
    assert (one.done, one.fault) == (True, None)


@pytest.mark.parametrize("nonsense", [{"inputTokens": -1, "outputTokens": 5}, {"inputTokens": "many"}, {"other": 1}])
def test_usage_that_makes_no_sense_is_none(nonsense):
    one = decoder()
    assert one.feed(started() + ended() + metadata(**nonsense)) == [Finished("stop", native_finish="end_turn")]
    assert one.done


def test_a_stream_that_closes_early_has_failed():
    one = decoder()
    assert one.feed(started() + delta(0, text="a")) == [TextDelta("a")]
    one.eof()
    assert fault_of(one).kind == "protocol"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("throttlingException", "rate_limit"),
        ("modelStreamErrorException", "server"),
        ("internalServerException", "server"),
        ("serviceUnavailableException", "server"),
        ("validationException", "request"),
        ("somethingNewException", "server"),
    ],
)
def test_an_exception_ends_the_stream_by_its_kind(name, kind):
    one = decoder()
    events = one.feed(started() + delta(0, text="a") + exception(name, "no more") + delta(0, text="b") + ended())
    assert events == [TextDelta("a")]
    fault = fault_of(one)
    assert (fault.kind, fault.message, fault.status) == (kind, "no more", 200)


def test_an_error_that_no_one_modelled_tells_its_code_in_the_headers():
    one = decoder()
    headers = {":message-type": "error", ":error-code": "ThrottlingException", ":error-message": "slow down"}
    one.feed(text_frame(headers, b""))
    assert (fault_of(one).kind, fault_of(one).message) == ("rate_limit", "slow down")


@pytest.mark.parametrize("payload", [b"{", b"[]", b'"text"', b"\xff"])
def test_an_event_that_is_no_object_is_a_breach_of_protocol(payload):
    one = decoder()
    one.feed(text_frame({":message-type": "event", ":event-type": "contentBlockDelta"}, payload))
    assert fault_of(one).kind == "protocol"


@pytest.mark.parametrize("use", [{"name": "f"}, {"toolUseId": "c"}, {"toolUseId": "c", "name": ""}])
def test_a_call_without_id_or_name_is_a_breach_of_protocol(use):
    one = decoder()
    one.feed(event("contentBlockStart", contentBlockIndex=0, start={"toolUse": use}))
    assert fault_of(one).kind == "protocol"


def test_a_broken_frame_is_a_breach_of_protocol():
    one = decoder()
    assert one.feed(started() + delta(0, text="a") + b"\x00" * 16) == [TextDelta("a")]
    assert fault_of(one).kind == "protocol"


def test_events_of_a_new_kind_are_passed_over():
    assert decoded(event("somethingNew", x=1), delta(0, text="a"), delta(0, image={}), ended())[0] == TextDelta("a")


@given(st.lists(st.integers(0, 100_000), max_size=40))
def test_any_chunking_gives_the_same_events(cuts):
    frames = [
        started(),
        delta(0, reasoningContent={"text": "hm 🤔"}),
        delta(0, reasoningContent={"signature": "sig"}),
        stopped(0),
        delta(1, text="Grüße"),
        stopped(1),
        tool_use(2, "c", "weather", '{"city":', '"Zürich"}'),
        ended("tool_use"),
        metadata(),
    ]
    data = b"".join(frames)
    at_once, piecewise = decoder(), decoder()
    found = [item for piece in pieces_of(data, cuts) for item in piecewise.feed(piece)]
    assert found == at_once.feed(data)
    assert (piecewise.done, piecewise.fault) == (True, None)
