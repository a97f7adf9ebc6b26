"""Every provider's stream, written by hand in its format: however it is cut and framed, the same is heard."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canonical import ChatRequest, Message, Text
from proxy.context import OPENAI, Call
from proxy.providers.base import adapters
from tests.examples import examples
from tests.fakes.formats.catalogue import OF_DIALECT, OF_KIND
from tests.proxy.properties.answers import CUTS, STYLES, answers, decoded, events_of, heard, read
from tests.proxy.wire import facts, pieces_of, play, without_random_parts

#: Every kind and the native APIs of it that stream.
RELAYED = sorted(
    (kind, dialect) for kind, adapter in adapters().items() for dialect in adapter.dialects & {*OF_DIALECT}
)


def a_call(dialect: str = "chat", *, include_usage: bool = True) -> Call:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "input": "hi",
        "prompt": "hi",
        "max_tokens": 9,
    }
    request = ChatRequest(messages=[Message("user", [Text("hi")])])
    return Call(
        dialect=dialect, body=body, model="m", stream=True, include_usage=include_usage, max_tokens=9, canonical=request
    )


def test_every_kind_of_provider_has_a_format_to_be_tested_with():
    assert set(adapters()) - set(OF_KIND) == set()


@pytest.mark.parametrize("kind", sorted(set(adapters()) & set(OF_KIND)))
@examples(40)
@given(data=st.data(), style=STYLES, cuts=CUTS)
def test_any_cuts_give_the_same_events_and_they_say_what_the_whole_answer_says(kind, data, style, cuts):
    adapter, written = adapters()[kind], OF_KIND[kind]
    answer = data.draw(answers(written.says))
    stream = written.stream(answer, style)
    results = []
    for pieces in ([stream], pieces_of(stream, cuts), [stream[i : i + 1] for i in range(len(stream))]):
        decoder = adapter.stream_decoder(a_call())
        results.append(decoded(decoder, pieces))
        assert decoder.fault is None
        assert decoder.done
    assert results[0] == results[1] == results[2]
    assert heard(results[0]) == heard(read(adapter, a_call(), written.whole(answer)))


@pytest.mark.parametrize("kind", sorted(set(adapters()) & set(OF_KIND)))
@examples(40)
@given(data=st.data())
def test_nothing_that_the_provider_said_is_missing(kind, data):
    written = OF_KIND[kind]
    answer = data.draw(answers(written.says))
    events = read(adapters()[kind], a_call(), written.whole(answer))
    assert _comparable(events) == _comparable(events_of(answer))


def _comparable(events):
    """Signatures of thinking may be marked with whose they are; usage of a class that was not told is 0 anyway."""
    told = heard(events)
    for part in told.said:
        if part[0] == "thinking" and part[2]:
            part[2] = part[2].removeprefix("gemini:")
    return told


@pytest.mark.parametrize(("kind", "dialect"), RELAYED)
@examples(40)
@given(data=st.data(), style=STYLES, cuts=CUTS, include_usage=st.booleans())
def test_any_cuts_give_a_client_of_the_same_format_the_same_bytes(kind, dialect, data, style, cuts, include_usage):
    written = OF_DIALECT[dialect]
    answer = data.draw(answers(written.says))
    stream = written.stream(answer, style)
    results = []
    for pieces in ([stream], pieces_of(stream, cuts), [stream[i : i + 1] for i in range(len(stream))]):
        relay = adapters()[kind].stream_pass_through(a_call(dialect, include_usage=include_usage))
        out = play(relay, pieces)
        assert relay.fault is None
        assert relay.done
        out += relay.end(facts(relay.usage))
        told = (relay.usage, relay.usage_final, relay.started, relay.produced_chars, relay.finish_reason)
        results.append((without_random_parts(out), told))
    assert results[0] == results[1] == results[2]
    assert results[0][1][:2] == (answer.usage, True)


@pytest.mark.parametrize(
    ("kind", "dialect"), [pair for pair in RELAYED if OF_DIALECT[pair[1]] is OF_KIND[pair[0]] or pair[1] == pair[0]]
)
@examples(40)
@given(data=st.data(), style=STYLES)
def test_a_client_of_the_same_format_hears_what_the_provider_said(kind, dialect, data, style):
    adapter, written = adapters()[kind], OF_DIALECT[dialect]
    stream = written.stream(data.draw(answers(written.says)), style)
    relay = adapter.stream_pass_through(a_call(dialect))
    out = play(relay, [stream]) + relay.end(facts(relay.usage))
    again = decoded(adapter.stream_decoder(a_call()), [out])
    assert heard(again) == heard(decoded(adapter.stream_decoder(a_call()), [stream]))


def test_the_native_apis_of_every_kind_are_among_those_tested():
    streaming = {dialect for adapter in adapters().values() for dialect in adapter.dialects}
    assert OPENAI in streaming
    assert streaming - set(OF_DIALECT) <= {"embeddings", "count_tokens"}, "another API needs a written format"
