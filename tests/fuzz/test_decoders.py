"""Providers that send nonsense in the middle of sense: decoders and relays never raise, and always come to an end."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canonical import ChatResponse, Text, Thinking, ToolCall, ToolCallDelta, Usage
from proxy.context import Answer, Call, ProviderReply
from proxy.errors import GatewayError, UpstreamFault
from proxy.providers.base import adapters
from proxy.relay import TranslatingRelay
from tests.examples import examples
from tests.fakes.formats.catalogue import OF_DIALECT, OF_KIND
from tests.fakes.formats.style import Format, Style
from tests.fuzz.mutations import CUTS, ODD, mutated
from tests.fuzz.work import within
from tests.proxy.properties.answers import decoded
from tests.proxy.properties.clients import CLIENTS
from tests.proxy.properties.test_answers_come_back import DIALECTS
from tests.proxy.properties.test_streams import RELAYED, a_call
from tests.proxy.wire import documents, facts, pieces_of, play, without_random_parts

KINDS = pytest.mark.parametrize("kind", sorted(adapters()))
USAGE = Usage(input_tokens=20, output_tokens=9, cache_read_tokens=5)
SAID = ChatResponse(
    parts=[
        Thinking(text="hm", signature="c2ln"),
        Text("Grüße 🌍"),
        ToolCall("call_0", "f", '{"a": [1, "é"]}'),
        ToolCall("call_1", "g", "{}"),
    ],
    finish_reason="tool_calls",
    usage=USAGE,
)
REFUSED = ChatResponse(parts=[Text("no")], finish_reason="content_filter", usage=USAGE)


def valid_streams(written: Format) -> st.SearchStrategy[bytes]:
    wanted = st.sampled_from([SAID, REFUSED])
    return st.builds(written.stream, wanted, st.builds(Style, step=st.sampled_from([2, 1000])))


def is_whole_fault(fault: UpstreamFault | None) -> bool:
    """One that can be told to a client."""
    return fault is not None and isinstance(fault.to_gateway_error(), GatewayError)


@KINDS
@examples(50)
@given(data=st.data(), cuts=CUTS)
def test_a_decoder_of_anything_ends_well_or_in_a_fault(kind, data, cuts):
    stream = data.draw(valid_streams(OF_KIND[kind]).flatmap(mutated))
    outcomes = []
    for pieces in ([stream], pieces_of(stream, cuts)):
        decoder = adapters()[kind].stream_decoder(a_call())
        events = within(20_000 + 100 * (len(stream) + len(pieces)), partial(decoded, decoder, pieces))
        assert decoder.done or is_whole_fault(decoder.fault)
        assert len(events) <= len(stream)
        told = decoder.fault.kind if decoder.fault else None
        outcomes.append((without_random_parts(msgspec.json.encode(events)), decoder.done, told))
    assert outcomes[0] == outcomes[1]


@KINDS
@examples(30)
@given(data=st.data())
def test_whatever_a_decoder_makes_of_it_every_client_gets_well_formed_frames(kind, data):
    stream = data.draw(valid_streams(OF_KIND[kind]).flatmap(mutated))
    for name, dialect in DIALECTS.items():
        call = dialect.parse_call(CLIENTS[name].asking([]) | {"stream": True})
        call.include_usage = True
        call.canonical = dialect.canonical(call)
        relay = TranslatingRelay(adapters()[kind].stream_decoder(call), dialect.stream_renderer(call, "req_1", "m"))
        out = play(relay, [stream])
        if not relay.done:
            assert is_whole_fault(relay.fault)
        elif _calls_are_sound(kind, stream):
            CLIENTS[name].added_up(out + relay.end(facts(relay.usage)))
        else:
            assert documents(out + relay.end(facts(relay.usage)))


def _calls_are_sound(kind: str, stream: bytes) -> bool:
    """Arguments go out in fragments, as the model writes them: nothing can be done about those that are no JSON."""
    calls: dict[int, str] = {}
    for event in decoded(adapters()[kind].stream_decoder(a_call()), [stream]):
        if isinstance(event, ToolCallDelta):
            calls[event.index] = calls.get(event.index, "") + event.arguments
    try:
        return all(isinstance(json.loads(arguments), dict) for arguments in calls.values())
    except ValueError:
        return False


@pytest.mark.parametrize(("kind", "dialect"), RELAYED)
@examples(30)
@given(data=st.data(), cuts=CUTS)
def test_a_relay_of_anything_ends_well_or_in_a_fault(kind, dialect, data, cuts):
    stream = data.draw(valid_streams(OF_DIALECT[dialect]).flatmap(mutated))
    outcomes = []
    for pieces in ([stream], pieces_of(stream, cuts)):
        relay = adapters()[kind].stream_pass_through(a_call(dialect))
        out = within(20_000 + 200 * (len(stream) + len(pieces)), partial(play, relay, pieces))
        if relay.fault is None:
            assert relay.done
            out += relay.end(facts(relay.usage))
        told = relay.fault.kind if is_whole_fault(relay.fault) and relay.fault else None
        outcomes.append((without_random_parts(out), relay.done, told, relay.usage, relay.produced_chars))
    assert outcomes[0] == outcomes[1]


@KINDS
@examples(60)
@given(data=st.data())
def test_a_whole_answer_of_anything_is_read_or_is_a_fault(kind, data):
    written, adapter = OF_KIND[kind], adapters()[kind]
    body = data.draw(mutated(written.whole(data.draw(st.sampled_from([SAID, REFUSED])))))
    response = _or_fault(lambda: adapter.parse_response(a_call(), ProviderReply(200, {}, body)))
    if response is not None:
        about = facts(response.usage, finish_reason=response.finish_reason)
        for name, dialect in DIALECTS.items():
            call = dialect.parse_call(CLIENTS[name].asking([]))
            msgspec.json.decode(dialect.render_response(call, response, about))


@pytest.mark.parametrize(("kind", "dialect"), RELAYED)
@examples(40)
@given(data=st.data())
def test_an_answer_of_anything_passes_or_is_a_fault(kind, dialect, data):
    body = data.draw(mutated(OF_DIALECT[dialect].whole(data.draw(st.sampled_from([SAID, REFUSED])))))
    answer = _or_fault(lambda: adapters()[kind].pass_through(a_call(dialect), ProviderReply(200, {}, body)))
    if answer is not None:
        assert isinstance(answer, Answer)
        assert answer.body == body


ERRORS = [
    b'{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded","param":"a"}}',
    b'{"type":"error","error":{"type":"overloaded_error","message":"busy"},"request_id":"r"}',
    b'[{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"3s"}]}}]',
    b'{"__type":"ThrottlingException","message":"slow"}',
    b"<html><body>Bad gateway</body></html>",
]
HEADERS = st.dictionaries(
    st.sampled_from(["retry-after", "retry-after-ms", "content-type", "x-amzn-errortype", "x-should-retry"]),
    st.sampled_from(["1", "-1", "nan", "1e400", "Wed, 21 Oct 2015 07:28:00 GMT", "ThrottlingException:x", ""]),
)


@KINDS
@examples(60)
@given(data=st.data(), status=st.integers(300, 599), headers=HEADERS)
def test_an_error_of_anything_is_a_fault(kind, data, status, headers):
    soup = st.lists(st.sampled_from(ODD) | st.binary(max_size=9), max_size=20).map(b"".join)
    body = data.draw(st.sampled_from(ERRORS).flatmap(mutated) | soup)
    fault = adapters()[kind].parse_error(ProviderReply(status, headers, body))
    assert is_whole_fault(fault)
    assert len(fault.message) <= 4000
    assert fault.retry_after_ms is None or 0 <= fault.retry_after_ms <= 86_400_000


def _or_fault(run: Any) -> Any:
    """What `run` gives, None when it raises the one error that is documented."""
    found = raised = None
    try:
        found = run()
    except UpstreamFault as fault:
        raised = fault
    assert found is not None or is_whole_fault(raised)
    return found


def test_every_adapter_is_fuzzed():
    assert set(adapters()) <= set(OF_KIND)
    assert isinstance(a_call(), Call)
