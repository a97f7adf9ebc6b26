"""Whatever is said, Anthropic gets a request by its rules, and its own clients lose nothing."""

import pydantic
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from hypothesis import given
from hypothesis import strategies as st

from proxy.canonical import ChatRequest, File, Image, Message, Text, Thinking, Tool, ToolCall, ToolResult
from proxy.context import ANTHROPIC
from proxy.dialects.anthropic import AnthropicDialect
from tests.proxy.anthropic_wire import translated

CACHED = {"type": "ephemeral"}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
CLOSED = SCHEMA | {"additionalProperties": False}

TEXTS = st.sampled_from(["", " ", "a", "é🌍\n"])
RESULTS = st.builds(ToolResult, st.sampled_from(["c1", "x.y"]), st.lists(st.builds(Text, TEXTS), max_size=2))
USER_PARTS = st.one_of(st.builds(Text, TEXTS), st.just(Image(data="iV")), st.just(File(text="x")), RESULTS)
ASSISTANT_PARTS = st.one_of(
    st.builds(Text, TEXTS),
    st.builds(Thinking, TEXTS, st.sampled_from([None, "sig"])),
    st.builds(
        ToolCall, st.sampled_from(["c1", "x.y"]), st.sampled_from(["f", "g.h"]), st.sampled_from(["", "{}", "["])
    ),
)
MESSAGES = st.lists(
    st.one_of(
        st.builds(Message, st.just("user"), st.lists(USER_PARTS, max_size=3)),
        st.builds(Message, st.just("assistant"), st.lists(ASSISTANT_PARTS, max_size=3)),
    ),
    max_size=6,
)
BODY = pydantic.TypeAdapter(MessageCreateParamsNonStreaming)


@given(
    MESSAGES, st.sampled_from(["claude-sonnet-4-5", "claude-opus-4-7", "my-claude"]), st.sampled_from([None, "high"])
)
def test_any_conversation_is_written_by_the_rules(messages, model, effort):
    tools = [Tool("f"), Tool("g.h", "d", SCHEMA, True)]
    body = translated(ChatRequest(messages=messages, tools=tools, reasoning_effort=effort, max_tokens=5000), model)
    _check_all(BODY.validate_python(body))
    history = body["messages"]
    assert [turn["role"] for turn in history] == ["user", "assistant"] * (len(history) // 2) + ["user"] * (
        len(history) % 2
    )
    for turn in history:
        kinds = [block["type"] == "tool_result" for block in turn["content"]]
        assert kinds
        assert kinds == sorted(kinds, reverse=True)
        assert all(block["text"].strip() for block in turn["content"] if block["type"] == "text")


def _check_all(value) -> None:
    """pydantic checks what is iterable only while it is read."""
    for inner in value.values() if isinstance(value, dict) else value:
        if not isinstance(inner, str) and hasattr(inner, "__iter__"):
            _check_all(inner)


OWN_BLOCKS = st.sampled_from(
    [
        {"type": "text", "text": "é🌍", "cache_control": CACHED},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iV"}},
        {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}, "cache_control": CACHED},
        {"type": "image", "source": {"type": "file", "file_id": "f"}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JV"}, "title": "t"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}},
        {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}},
        {"type": "search_result", "source": "x", "title": "t", "content": [{"type": "text", "text": "y"}]},
    ]
)
OWN_ANSWERS = st.sampled_from(
    [
        {"type": "text", "text": "a"},
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "xx"},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": [1.5, None, "é"]}},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
    ]
)
OWN_RESULTS = st.builds(
    lambda content, members: {"type": "tool_result", "tool_use_id": "toolu_1"} | members | content,
    st.one_of(st.just({}), st.builds(lambda blocks: {"content": blocks}, st.lists(OWN_BLOCKS, min_size=1, max_size=2))),
    st.sampled_from([{}, {"is_error": True}, {"cache_control": CACHED}]),
)


@given(
    st.lists(OWN_RESULTS, max_size=2),
    st.lists(OWN_BLOCKS, min_size=1, max_size=3),
    st.lists(OWN_ANSWERS, min_size=1, max_size=4),
)
def test_what_an_anthropic_client_says_survives_the_canonical_form(results, blocks, answers):
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9000,
        "system": [{"type": "text", "text": "s", "cache_control": CACHED}],
        "messages": [
            {"role": "user", "content": blocks},
            {"role": "assistant", "content": answers},
            {"role": "user", "content": [*results, *blocks]},
        ],
        "tools": [
            {"type": "web_search_20250305", "name": "web_search"},
            {"name": "f", "description": "d", "input_schema": {"type": "object", "properties": {}}},
        ],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "stop_sequences": ["END"],
        "temperature": 0.5,
        "top_k": 5,
        "output_config": {"format": {"type": "json_schema", "schema": CLOSED}},
    }
    dialect = AnthropicDialect()
    call = dialect.parse_call(body)
    assert call.dialect == ANTHROPIC
    assert translated(dialect.canonical(call)) == body
