"""Providers that never stop: what is kept of a stream stays small, or the stream is given up."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from proxy.canonical import ChatResponse, Text, Thinking, ToolCall
from proxy.eventstream import EventStreamParser
from proxy.openai_format.decoder import OpenAIStreamDecoder
from proxy.providers.base import adapters
from proxy.relay import TranslatingRelay
from proxy.sse import MAX_BYTES, LineParser, SseParser
from tests.fakes.formats.catalogue import OF_DIALECT, OF_KIND
from tests.fakes.formats.style import Format, Style, compact
from tests.fuzz.work import measured
from tests.proxy.properties.test_answers_come_back import DIALECTS
from tests.proxy.properties.test_streams import RELAYED, a_call
from tests.proxy.wire import chunk

MIB = 1 << 20
PIECE = 64 << 10
#: What may be kept at once: a line of MAX_BYTES some times over, in pieces, joined and decoded.
BOUND = 5 * MAX_BYTES
#: Data lines of an event have their overhead; Gemini's lists are read whole, up to 8 MiB.
BOUNDS = {"data lines of one event": 16 * MAX_BYTES, "a list without end": 24 * MAX_BYTES}
FLOOD = 7 * MIB

ENDLESS: dict[str, bytes] = {
    "a line without end": b"x" * PIECE,
    "a data line without end": b"data: " + b"x" * PIECE,
    "comments": b": keep-alive %s\n\n" % (b"x" * 90) * 600,
    "blank lines": b"\n" * PIECE,
    "spaces": b" " * PIECE,
    "data lines of one event": b"data: xyz\n" * 6000,
    "zeros": bytes(PIECE),
    "a list without end": b"[[]," * 16_000,
}


def _one_of_each(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Kinds that share a decoder, or a relay, are tried once."""
    found: dict[type, tuple[str, str]] = {}
    for kind, dialect in pairs:
        adapter, call = adapters()[kind], a_call(dialect)
        found.setdefault(
            type(adapter.stream_pass_through(call) if dialect else adapter.stream_decoder(call)), (kind, dialect)
        )
    return sorted(found.values())


DECODED = [kind for kind, _ in _one_of_each([(kind, "") for kind in sorted(adapters())])]
RELAYS = _one_of_each(RELAYED)


def _flow(reader: Any, pieces: Iterator[bytes]) -> None:
    """Feed as the pipeline does; what comes out is gone at once."""
    for piece in pieces:
        if reader.fault is not None or getattr(reader, "done", False):
            return
        reader.feed(piece)


def _peak(reader: Any, what: str) -> int:
    with measured() as peak:
        _flow(reader, itertools.repeat(ENDLESS[what], FLOOD // len(ENDLESS[what])))
    return peak.bytes


@pytest.mark.parametrize("what", ENDLESS)
@pytest.mark.parametrize("parser", [SseParser, LineParser, EventStreamParser])
def test_a_parser_keeps_a_line_and_no_more(parser, what):
    assert _peak(parser(), what) < BOUNDS.get(what, BOUND)


@pytest.mark.parametrize("what", ENDLESS)
@pytest.mark.parametrize("kind", DECODED)
def test_a_decoder_keeps_a_line_and_no_more(kind, what):
    assert _peak(adapters()[kind].stream_decoder(a_call()), what) < BOUNDS.get(what, BOUND)


@pytest.mark.parametrize("what", ENDLESS)
@pytest.mark.parametrize(("kind", "dialect"), RELAYS)
def test_a_relay_keeps_a_line_and_no_more(kind, dialect, what):
    assert _peak(adapters()[kind].stream_pass_through(a_call(dialect)), what) < BOUNDS.get(what, BOUND)


# ---------------------------------------------------------------- streams that are sound, and do not end

#: What is said without end; each a few MiB.
TALKS: dict[str, ChatResponse] = {
    "text": ChatResponse(parts=[Text("abcdef" * MIB)]),
    "thinking": ChatResponse(parts=[Thinking(text="abcdef" * MIB)]),
    "calls": ChatResponse(parts=[ToolCall(f"call_{n}", "f", "{}") for n in range(6000)]),
    "calls with arguments": ChatResponse(
        parts=[ToolCall(f"call_{n}", "f", json.dumps({"a": "x" * 4000})) for n in range(1500)]
    ),
    "arguments": ChatResponse(parts=[ToolCall("call_0", "f", json.dumps({"a": "x" * 6 * MIB}))]),
    "blocks": ChatResponse(parts=[part for _ in range(4000) for part in (Text("a"), Thinking(text="b"))]),
}
NEEDS = {"text": "text", "thinking": "thinking", "calls": "calls", "calls with arguments": "calls", "blocks": "mixed"}


def _talk(written: Format, talk: str) -> list[bytes]:
    """The stream in pieces, less its end."""
    stream = written.stream(TALKS[talk], Style(step=2000))
    whole = len(stream) - len(stream) // 50
    return [stream[at : min(at + PIECE, whole)] for at in range(0, whole, PIECE)]


def _said(pairs: list[tuple[Any, Format]]) -> list[Any]:
    """Every format with all that it can say."""
    return [(which, talk) for which, written in pairs for talk in TALKS if NEEDS.get(talk, "calls") in written.says]


def _peak_of(reader: Any, written: Format, talk: str) -> int:
    pieces = _talk(written, talk)
    with measured() as peak:
        _flow(reader, iter(pieces))
    return peak.bytes


@pytest.mark.parametrize(("kind", "talk"), _said([(kind, OF_KIND[kind]) for kind in DECODED]))
def test_a_decoder_forgets_what_it_told(kind, talk):
    assert _peak_of(adapters()[kind].stream_decoder(a_call()), OF_KIND[kind], talk) < BOUND / 2


@pytest.mark.parametrize(("dialect", "talk"), _said([(dialect, OF_DIALECT[dialect]) for _, dialect in RELAYS]))
def test_a_relay_forgets_what_it_handed_on(dialect, talk):
    (kind,) = [kind for kind, of in RELAYS if of == dialect]
    relay = adapters()[kind].stream_pass_through(a_call(dialect))
    assert _peak_of(relay, OF_DIALECT[dialect], talk) < BOUND / 2


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_a_translated_stream_that_does_not_end_is_given_up(name, monkeypatch):
    """Renderers may have to keep what they told."""
    monkeypatch.setattr("proxy.relay.MAX_TOLD", MIB)
    call = a_call()
    relay = TranslatingRelay(OpenAIStreamDecoder(), DIALECTS[name].stream_renderer(call, "req_1", "m"))
    _flow(relay, iter(_talk(OF_KIND["openai"], "arguments")))
    assert relay.fault is not None
    assert relay.produced_chars < MIB + PIECE


@pytest.mark.parametrize("dialect", ["openai", "completions"])
def test_choices_without_end_are_given_up(dialect):
    events = (compact(chunk(choices=[{"index": n, "delta": {"content": "a"}, "text": "a"}])) for n in range(100_000))
    relay = adapters()["openai"].stream_pass_through(a_call(dialect))
    with measured() as peak:
        _flow(relay, (f"data: {event}\n\n".encode() for event in events))
    assert relay.fault is not None
    assert peak.bytes < MIB


def test_calls_without_end_are_given_up():
    decoder = OpenAIStreamDecoder()
    _flow(decoder, iter(_talk(OF_KIND["openai"], "calls")))
    assert decoder.fault is not None
