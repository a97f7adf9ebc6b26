"""A client's request, in canonical form and written again in the client's own format, is still the same request."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from proxy.anthropic_format.request import messages_body
from proxy.anthropic_format.turns import OPENING
from proxy.canonical import GEMINI_SIGNED, ChatRequest, Text, Thinking, ToolCall
from proxy.dialects.anthropic import AnthropicDialect
from proxy.dialects.base import Dialect
from proxy.dialects.chat import MEMBERS, TollbarDialect
from proxy.dialects.openai import OpenAIDialect
from proxy.errors import BadRequest
from proxy.openai_format.request import chat_body
from tests.examples import examples
from tests.proxy.properties.answers import ARGUMENTS, NAMES, TEXTS
from tests.proxy.properties.requests import DATA, SCHEMAS, chat_requests

JSON = dict[str, Any]

# ---------------------------------------------------------------- bodies as clients of OpenAI's format write them

_TEXT_PARTS = st.builds(lambda text: {"type": "text", "text": text}, TEXTS)
_MEDIA_PARTS = st.one_of(
    st.builds(
        lambda data, detail: {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"} | detail},
        DATA,
        st.sampled_from([{}, {"detail": "low"}]),
    ),
    st.just({"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}),
    st.builds(lambda data: {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}, DATA),
    st.builds(
        lambda data, name: {
            "type": "file",
            "file": {"filename": name, "file_data": f"data:application/pdf;base64,{data}"},
        },
        DATA,
        TEXTS,
    ),
    st.just({"type": "file", "file": {"file_id": "file-1"}}),
)
_USERS = st.builds(
    lambda content: {"role": "user", "content": content},
    TEXTS | st.lists(_TEXT_PARTS | _MEDIA_PARTS, min_size=1, max_size=3),
)


@st.composite
def _called(draw: Any) -> list[JSON]:
    """Calls and all their results."""
    calls = [
        {"id": f"call_{n}", "type": "function", "function": {"name": draw(NAMES), "arguments": draw(ARGUMENTS)}}
        for n in range(draw(st.integers(1, 3)))
    ]
    said = {"role": "assistant", "content": draw(st.none() | TEXTS), "tool_calls": calls}
    return [said, *({"role": "tool", "tool_call_id": call["id"], "content": draw(TEXTS)} for call in calls)]


_ASSISTANTS = st.builds(lambda text: {"role": "assistant", "content": text}, TEXTS)
_CONVERSATIONS = st.lists(
    _USERS.map(lambda entry: [entry]) | _ASSISTANTS.map(lambda entry: [entry]) | _called(), min_size=1, max_size=4
).map(lambda groups: [message for group in groups for message in group])
_FUNCTIONS = st.builds(
    lambda name, members: {"type": "function", "function": {"name": name} | members},
    NAMES,
    st.fixed_dictionaries({}, optional={"description": TEXTS, "parameters": SCHEMAS, "strict": st.booleans()}),
)


def _json_schema(schema: JSON, members: JSON) -> JSON:
    return {"type": "json_schema", "json_schema": {"name": "a", "schema": schema} | members}


_MEMBERS: JSON = {
    "max_tokens": st.integers(1, 32_000),
    "temperature": st.floats(0, 2),
    "top_p": st.floats(0, 1),
    "stop": st.lists(TEXTS, min_size=1, max_size=3),
    "seed": st.integers(-(2**63), 2**63 - 1),
    "frequency_penalty": st.floats(-2, 2),
    "presence_penalty": st.floats(-2, 2),
    "logprobs": st.booleans(),
    "top_logprobs": st.integers(0, 20),
    "parallel_tool_calls": st.booleans(),
    "reasoning_effort": st.sampled_from(["minimal", "low", "medium", "high"]),
    "user": TEXTS.filter(lambda text: "\x00" not in text),
    "tool_choice": st.sampled_from(["none", "auto", "required", {"type": "function", "function": {"name": "f"}}]),
    "response_format": st.one_of(
        st.sampled_from([{"type": "text"}, {"type": "json_object"}]),
        st.builds(_json_schema, SCHEMAS, st.sampled_from([{}, {"strict": True}, {"description": "d"}])),
    ),
}
_BODIES = st.builds(
    lambda system, messages, tools, members: {
        "model": "m",
        "messages": [*({"role": "system", "content": text} for text in system), *messages],
        "tools": tools,
        **members,
    },
    st.lists(TEXTS, max_size=1),
    _CONVERSATIONS,
    st.lists(_FUNCTIONS, min_size=1, max_size=2),
    st.fixed_dictionaries({}, optional=_MEMBERS),
)


def _read(dialect: Dialect, body: JSON) -> ChatRequest:
    request: ChatRequest = dialect.canonical(dialect.parse_call(body))
    return request


def _written(request: ChatRequest) -> JSON:
    limit = {} if request.max_tokens is None else {"max_tokens": request.max_tokens}
    body: JSON = msgspec.json.decode(msgspec.json.encode(chat_body(request, "m") | limit))
    return body


@examples(150)
@given(_BODIES)
def test_what_an_openai_client_asks(body):
    request = _read(OpenAIDialect(), body)
    assert _read(OpenAIDialect(), _written(request)) == request


@examples(100)
@given(_BODIES)
def test_what_a_client_of_our_own_format_asks(body):
    request = _read(TollbarDialect(), {name: value for name, value in body.items() if name in MEMBERS})
    assert _read(TollbarDialect(), _written(request)) == request


@examples(150)
@given(chat_requests(), st.sampled_from(["claude-sonnet-4-5", "claude-opus-4-7", "mine"]))
def test_what_an_anthropic_client_asks(request, model):
    """Of any request that can be said in this format. The user's name is a hash each time. That a model may think as it
    likes is left to the model elsewhere, unless an effort is named."""
    request.user = None
    if request.reasoning_effort is None:
        request.thinking_budget = None
    try:
        body = messages_body(request, model, None)
    except BadRequest:
        return
    read = _read(AnthropicDialect(), msgspec.json.decode(msgspec.json.encode(body)))
    assert messages_body(read, model, None) == body
    assert _read(AnthropicDialect(), body) == read
    opening = [OPENING] if read.messages[0].parts == [Text(OPENING)] else []
    assert _said(read) == opening + _said(request)


def _said(request: ChatRequest) -> list[Any]:
    """Every text, call and thought in order, but for what is nobody's or Gemini's alone: none gets lost on the way."""
    said: list[Any] = []
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, Text) and part.text.strip():
                said.append(part.text.rstrip())
            elif isinstance(part, Thinking) and part.redacted:
                said.append(part.redacted)
            elif isinstance(part, Thinking) and part.signature and not part.signature.startswith(GEMINI_SIGNED):
                said.append((part.text, part.signature))
            elif isinstance(part, ToolCall):
                said.append("call")
    return said
