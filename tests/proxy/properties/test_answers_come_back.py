"""Whatever a provider says: a client of any dialect is told all its format has words for, and can send it back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canonical import ChatResponse, Text, Thinking, ToolCall, Usage
from proxy.context import AnswerFacts, Call
from proxy.dialects.anthropic import AnthropicDialect
from proxy.dialects.base import Dialect
from proxy.dialects.chat import TollbarDialect
from proxy.dialects.openai import OpenAIDialect
from proxy.dialects.responses import ResponsesDialect
from proxy.providers.base import adapters
from tests.examples import examples
from tests.proxy.properties.answers import answers, decoded, events_of, heard, read
from tests.proxy.properties.clients import CLIENTS
from tests.proxy.wire import facts

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (OpenAIDialect(), AnthropicDialect(), ResponsesDialect(), TollbarDialect())
}

_PARTS = ("text", "thinking", "signature", "redacted", "calls", "call_signature")
_COUNTS = ("cache_read", "cache_write", "reasoning")
#: What each format has words for. Only in two of them do thinking, text and calls keep their order.
SAYS = {
    "openai": frozenset((*_PARTS, *_COUNTS, "refusal")),
    "anthropic": frozenset((*_PARTS, *_COUNTS, "mixed", "stop_sequence", "cache_write_1h")),
    "responses": frozenset((*_PARTS, *_COUNTS, "mixed")),
    "chat": frozenset(("text", "calls", "call_signature", *_COUNTS)),
}
NAMED = pytest.mark.parametrize("name", sorted(DIALECTS))


def told_to(name: str, answer: ChatResponse, *, stream: bool) -> dict[str, Any]:
    """The answer as a client of the dialect has it in the end."""
    dialect = DIALECTS[name]
    call = dialect.parse_call(CLIENTS[name].asking([]) | {"stream": stream})
    call.include_usage = True
    about = facts_of(answer)
    if not stream:
        document: dict[str, Any] = msgspec.json.decode(dialect.render_response(call, answer, about))
        return document
    renderer = dialect.stream_renderer(call, "req_1", "m")
    return CLIENTS[name].added_up(renderer.render(events_of(answer)) + renderer.end(about))


def facts_of(answer: ChatResponse) -> AnswerFacts:
    return facts(answer.usage, finish_reason=answer.finish_reason)


@NAMED
@pytest.mark.parametrize("stream", [False, True])
@examples(40)
@given(data=st.data())
def test_what_a_client_sends_back_is_what_the_provider_said(name, stream, data):
    answer = data.draw(answers(SAYS[name] - {"refusal"}))
    document = told_to(name, answer, stream=stream)
    assert CLIENTS[name].usage(document) == answer.usage
    body = CLIENTS[name].asking(CLIENTS[name].history(document))
    request = DIALECTS[name].canonical(DIALECTS[name].parse_call(body))
    parts = [part for message in request.messages if message.role == "assistant" for part in message.parts]
    again = ChatResponse(parts=parts, finish_reason=answer.finish_reason, usage=answer.usage)
    again.stop_sequence = answer.stop_sequence
    assert heard(events_of(again)) == heard(events_of(answer))


@pytest.mark.parametrize("name", ["openai", "anthropic"])
@examples(40)
@given(data=st.data())
def test_a_whole_answer_is_read_as_it_was_written(name, data):
    """No provider of Anthropic's format signs calls."""
    answer = data.draw(answers(SAYS[name] - ({"call_signature"} if name == "anthropic" else set())))
    body = DIALECTS[name].render_response(Call(dialect=name, body={}, model="m"), answer, facts_of(answer))
    events = read(adapters()[name], Call(dialect="chat", body={}, model="m"), body)
    assert heard(events) == heard(events_of(answer))


@pytest.mark.parametrize("name", ["openai", "anthropic"])
@examples(40)
@given(data=st.data())
def test_a_stream_is_heard_as_it_was_written(name, data):
    """Signatures that only the gateway puts there are for its clients, and no provider's way."""
    own = {"signature", "redacted"} if name == "openai" else {"call_signature"}
    answer = data.draw(answers(SAYS[name] - own))
    call = Call(dialect=name, body={}, model="m", include_usage=True)
    renderer = DIALECTS[name].stream_renderer(call, "req_1", "m")
    raw = renderer.render(events_of(answer)) + renderer.end(facts_of(answer))
    decoder = adapters()[name].stream_decoder(Call(dialect="chat", body={}, model="m"))
    assert heard(decoded(decoder, [raw])) == heard(events_of(answer))


@NAMED
@pytest.mark.parametrize("stream", [False, True])
def test_every_class_of_usage_that_a_format_has_is_told(name, stream):
    usage = Usage(100, 50, 20, 30, 10 if name == "anthropic" else 0, 5)
    parts = [Thinking(text="hm", signature="s"), Text("a"), ToolCall("call_1", "f", "{}")]
    answer = ChatResponse(parts=parts, finish_reason="tool_calls", usage=usage)
    assert CLIENTS[name].usage(told_to(name, answer, stream=stream)) == usage
