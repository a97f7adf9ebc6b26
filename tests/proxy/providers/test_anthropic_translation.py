"""Requests of other dialects in Anthropic's words, by its rules."""

import json
import re

import pydantic
import pytest
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from hypothesis import given
from hypothesis import strategies as st

from proxy.anthropic_format.turns import OPENING
from proxy.canonical import (
    Audio,
    ChatRequest,
    File,
    Foreign,
    Image,
    Message,
    ResponseFormat,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from proxy.context import ANTHROPIC, Call, ProviderTarget
from proxy.dialects.anthropic import AnthropicDialect
from proxy.dialects.openai import OpenAIDialect
from proxy.errors import BadRequest
from proxy.providers.anthropic import AnthropicAdapter

CACHED = {"type": "ephemeral"}
SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "array", "items": {"type": "object", "properties": {"default": {"type": "object"}}}},
        "b": {"enum": [{"type": "object"}]},
    },
    "$defs": {"c": {"type": "object", "additionalProperties": True}},
}
CLOSED = {
    "type": "object",
    "properties": {
        "a": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"default": {"type": "object", "additionalProperties": False}},
                "additionalProperties": False,
            },
        },
        "b": {"enum": [{"type": "object"}]},
    },
    "$defs": {"c": {"type": "object", "additionalProperties": False}},
    "additionalProperties": False,
}


def sent(request: ChatRequest, model: str = "claude-sonnet-4-5", **members) -> dict:
    call = Call(dialect="openai", body={}, model="m", canonical=request, **members)
    target = ProviderTarget(provider="p", kind="anthropic", model=model, base_url="https://x")
    return json.loads(AnthropicAdapter().build_request(call, target).body)


def asked(*parts, model: str = "claude-sonnet-4-5", **members) -> dict:
    return sent(ChatRequest(messages=[Message("user", list(parts) or [Text("hi")])], **members), model)


def turns(*messages: Message) -> list[dict]:
    return sent(ChatRequest(messages=list(messages)))["messages"]


def from_openai(*messages: dict, **members) -> list[dict]:
    dialect = OpenAIDialect()
    call = dialect.parse_call({"model": "m", "messages": list(messages)} | members)
    return sent(dialect.canonical(call))["messages"]


# ---------------------------------------------------------------- turns


def test_the_simplest_request():
    assert sent(ChatRequest(messages=[Message("user", [Text("hi")])]), stream=True) == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "stream": True,
    }


@pytest.mark.parametrize("content", ["", None, ...])
def test_tool_history_of_openai_becomes_one_turn_each(content):
    calls = [
        {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}},
        {"id": "call_2", "type": "function", "function": {"name": "time", "arguments": ""}},
    ]
    said = {"role": "assistant", "content": content, "tool_calls": calls}
    history = from_openai(
        {"role": "user", "content": "Weather and time?"},
        {name: value for name, value in said.items() if value is not ...},
        {"role": "tool", "tool_call_id": "call_1", "content": "5 C"},
        {"role": "tool", "tool_call_id": "call_2", "content": ""},
        {"role": "user", "content": "Summarise"},
    )
    assert history[1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Oslo"}},
                {"type": "tool_use", "id": "call_2", "name": "time", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "5 C"}]},
                {"type": "tool_result", "tool_use_id": "call_2"},
                {"type": "text", "text": "Summarise"},
            ],
        },
    ]


def test_results_come_first_though_something_was_said_between_them():
    history = turns(
        Message("user", [Text("go")]),
        Message("assistant", [ToolCall("a", "f"), ToolCall("b", "f")]),
        Message("user", [ToolResult("a")]),
        Message("user", [Text("wait")]),
        Message("user", [ToolResult("b")]),
    )
    assert [block["type"] for block in history[2]["content"]] == ["tool_result", "tool_result", "text"]


def test_turns_alternate_and_blank_ones_are_left_out():
    history = turns(
        Message("user", [Text("a")]),
        Message("assistant", [Text(" \n")]),
        Message("user", [Text(""), Text("b")]),
        Message("assistant", [Text("c")]),
        Message("assistant", [Text("d")]),
    )
    assert [(turn["role"], [block["text"] for block in turn["content"]]) for turn in history] == [
        ("user", ["a", "b"]),
        ("assistant", ["c", "d"]),
    ]


def test_the_first_turn_is_the_users_and_a_prefill_does_not_end_in_white_space():
    opening = {"role": "user", "content": [{"type": "text", "text": OPENING}]}
    assert turns(Message("assistant", [Text(" {  \n")])) == [
        opening,
        {"role": "assistant", "content": [{"type": "text", "text": " {"}]},
    ]
    assert sent(ChatRequest(messages=[], system=[Text("Write a poem.")]))["messages"] == [opening]


def test_thinking_goes_back_only_when_it_was_signed():
    parts = [Thinking(text="hm", signature="sig"), Thinking(text="unsigned"), Thinking(redacted="xx"), Text("a")]
    history = turns(Message("user", [Text("q")]), Message("assistant", parts))
    assert history[1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "xx"},
        {"type": "text", "text": "a"},
    ]


def test_arguments_that_are_no_object_stay_readable():
    history = turns(
        Message("user", [Text("q")]), Message("assistant", [ToolCall("c", "f", '{"cut'), ToolCall("d", "f", "[1]")])
    )
    assert [block["input"] for block in history[1]["content"]] == [{"_raw": '{"cut'}, {"_raw": "[1]"}]


def test_ids_and_names_are_written_in_allowed_letters_the_same_everywhere():
    body = sent(
        ChatRequest(
            messages=[
                Message("user", [Text("q")]),
                Message("assistant", [ToolCall("functions.f:0", "a.b"), ToolCall("functions:f.0", "ok")]),
                Message("user", [ToolResult("functions.f:0"), ToolResult("functions:f.0")]),
            ],
            tools=[Tool("a.b"), Tool("a:b"), Tool("ok"), Tool("x" * 200)],
            tool_choice=ToolChoice("tool", "a.b"),
        )
    )
    names = [tool["name"] for tool in body["tools"]]
    uses, results = body["messages"][1]["content"], body["messages"][2]["content"]
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", name) for name in names)
    assert len(set(names)) == 4
    assert (names[2], uses[0]["name"], body["tool_choice"]["name"]) == ("ok", names[0], names[0])
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]+", use["id"]) for use in uses)
    assert [result["tool_use_id"] for result in results] == [use["id"] for use in uses]
    assert uses[0]["id"] != uses[1]["id"]


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (Text("a", CACHED), {"type": "text", "text": "a", "cache_control": CACHED}),
        (
            Image(data="iV", detail="high"),
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iV"}},
        ),
        (
            Image(url="https://x/y.png", cache_control=CACHED),
            {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}, "cache_control": CACHED},
        ),
        (
            File(data="JV", name="a.pdf"),
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "JV"},
                "title": "a.pdf",
            },
        ),
        (
            File(data="w6k=", media_type="text/csv"),
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "é"}},
        ),
        (
            File(data="w6k=", name="notes.md"),
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "é"},
                "title": "notes.md",
            },
        ),
        (
            File(text="words"),
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}},
        ),
        (
            File(url="https://x/y.pdf"),
            {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}},
        ),
    ],
)
def test_parts_become_blocks(part, block):
    assert asked(part)["messages"][0]["content"] == [block]


def test_a_result_keeps_its_error_its_mark_and_its_images():
    result = ToolResult("c", [Text("no"), Image(data="iV", media_type="image/gif")], True, "f", CACHED)
    assert asked(result)["messages"][0]["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "c",
            "is_error": True,
            "cache_control": CACHED,
            "content": [
                {"type": "text", "text": "no"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "iV"}},
            ],
        }
    ]


@pytest.mark.parametrize(
    ("part", "named"),
    [
        (Audio("UklG", "wav"), "audio"),
        (Foreign("openai", "custom_thing", {}), "custom_thing"),
        (File(file_id="file-1"), "file by another provider's id"),
        (Image(), "image by another provider's file id"),
        (File(data="UEs=", media_type="application/zip"), "application/zip"),
        (File(data="/w==", media_type="text/plain"), "UTF-8"),
        (File(data="!", media_type="text/plain"), "UTF-8"),
    ],
)
def test_what_anthropic_cannot_be_sent_is_refused_by_name(part, named):
    with pytest.raises(BadRequest, match=re.escape(named)) as caught:
        asked(part)
    assert caught.value.param == "messages"


# ---------------------------------------------------------------- everything else


def test_the_limit_is_the_clients_else_the_gateways():
    request = ChatRequest(messages=[])
    assert sent(request, output_cap=77)["max_tokens"] == 77
    assert sent(ChatRequest(messages=[], max_tokens=5), output_cap=77)["max_tokens"] == 5


def test_system_texts_stay_blocks_and_blank_ones_are_left_out():
    assert asked(system=[Text("a", CACHED), Text(" "), Text("b")])["system"] == [
        {"type": "text", "text": "a", "cache_control": CACHED},
        {"type": "text", "text": "b"},
    ]


def test_tools():
    tools = [
        Tool("f", "d", {"properties": {"a": {}}, "required": ["a"]}, False, CACHED),
        Tool("g"),
        Tool("h", parameters=SCHEMA, strict=True),
    ]
    assert asked(tools=tools)["tools"] == [
        {
            "name": "f",
            "description": "d",
            "input_schema": {"type": "object", "properties": {"a": {}}, "required": ["a"]},
            "cache_control": CACHED,
        },
        {"name": "g", "input_schema": {"type": "object", "properties": {}}},
        {"name": "h", "input_schema": CLOSED, "strict": True},
    ]
    assert "strict" not in asked(tools=tools, model="claude-sonnet-4-20250514")["tools"][2]


@pytest.mark.parametrize(
    ("choice", "parallel", "written"),
    [
        (None, None, None),
        (ToolChoice("auto"), None, {"type": "auto"}),
        (ToolChoice("required"), True, {"type": "any"}),
        (ToolChoice("tool", "f"), False, {"type": "tool", "name": "f", "disable_parallel_tool_use": True}),
        (None, False, {"type": "auto", "disable_parallel_tool_use": True}),
        (ToolChoice("none"), False, {"type": "none"}),
    ],
)
def test_tool_choice(choice, parallel, written):
    body = asked(tools=[Tool("f")], tool_choice=choice, parallel_tool_calls=parallel)
    assert body.get("tool_choice") == written


def test_a_tool_of_another_provider_is_refused_by_name():
    with pytest.raises(BadRequest, match="code_interpreter"):
        asked(foreign_tools=[Foreign("openai", "code_interpreter", {})])


def test_stop_sequences():
    assert asked(stop=["END", "\nUser:"])["stop_sequences"] == ["END", "\nUser:"]
    with pytest.raises(BadRequest) as caught:
        asked(stop=["END", "\n"])
    assert caught.value.param == "stop"


def test_the_user_is_sent_as_an_opaque_id():
    once, again, other = (asked(user=name)["metadata"]["user_id"] for name in ("a@b.example", "a@b.example", "c"))
    assert once == again != other
    assert re.fullmatch("[0-9a-f]{64}", once)


def test_what_cannot_be_said_and_does_no_harm_is_left_out():
    body = asked(seed=5, frequency_penalty=1.0, presence_penalty=1.0, logprobs=True, top_logprobs=3)
    assert body.keys() == {"model", "max_tokens", "messages"}


@pytest.mark.parametrize(
    ("model", "sampling"),
    [
        ("claude-3-haiku-20240307", {"temperature": 1, "top_p": 0.9, "top_k": 5}),
        ("claude-sonnet-4-5", {"temperature": 1, "top_k": 5}),
        ("my-claude", {"temperature": 1, "top_k": 5}),
        ("claude-opus-4-7", {}),
    ],
)
def test_sampling_parameters_are_those_that_the_model_takes(model, sampling):
    body = asked(temperature=1.5, top_p=0.9, top_k=5, model=model)
    assert {name: body[name] for name in ("temperature", "top_p", "top_k") if name in body} == sampling


def test_top_p_alone_is_sent():
    assert asked(top_p=0.9)["top_p"] == 0.9


def test_a_schema_is_kept_to_by_the_provider_with_all_objects_closed():
    body = asked(response_format=ResponseFormat("json_schema", "answer", SCHEMA, True))
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": CLOSED}}
    assert "system" not in body


def test_json_is_asked_for_in_words_where_nothing_else_does_it():
    body = asked(response_format=ResponseFormat("json_object"), system=[Text("Be brief.")])
    assert "output_config" not in body
    assert [("JSON" in block["text"]) for block in body["system"]] == [False, True]
    old = asked(response_format=ResponseFormat("json_schema", schema=SCHEMA), model="claude-3-7-sonnet-20250219")
    assert json.dumps(SCHEMA, separators=(",", ":")) in old["system"][0]["text"]
    assert "system" not in asked(response_format=ResponseFormat("text"))


@pytest.mark.parametrize(
    ("model", "members", "thinking", "effort"),
    [
        ("claude-sonnet-4-5", {"reasoning_effort": "low"}, {"type": "enabled", "budget_tokens": 2048}, None),
        ("claude-sonnet-4-5", {"reasoning_effort": "high"}, {"type": "enabled", "budget_tokens": 10_000}, None),
        ("claude-sonnet-4-5", {"thinking_budget": 3000}, {"type": "enabled", "budget_tokens": 3000}, None),
        ("claude-sonnet-4-5", {"reasoning_effort": "none"}, None, None),
        ("claude-sonnet-4-5", {"reasoning_effort": "high", "max_tokens": 2000}, None, None),
        ("claude-3-5-haiku-latest", {"reasoning_effort": "high"}, None, None),
        ("my-claude", {"reasoning_effort": "high"}, None, None),
        ("claude-sonnet-4-6", {"reasoning_effort": "minimal"}, {"type": "adaptive"}, "low"),
        ("claude-opus-4-6", {"reasoning_effort": "xhigh"}, {"type": "adaptive"}, "high"),
        ("claude-opus-4-7", {"reasoning_effort": "xhigh"}, {"type": "adaptive"}, "xhigh"),
        ("claude-opus-4-7", {"thinking_budget": 3000}, {"type": "adaptive"}, None),
        ("claude-opus-4-7", {"reasoning_effort": "none"}, None, None),
        ("claude-opus-4-7", {}, None, None),
    ],
)
def test_thinking_is_asked_for_as_the_model_wants_it(model, members, thinking, effort):
    body = asked(model=model, **({"max_tokens": 20_000} | members))
    assert (body.get("thinking"), body.get("output_config", {}).get("effort")) == (thinking, effort)
    if thinking and "budget_tokens" in thinking:
        assert thinking["budget_tokens"] < body["max_tokens"]


def test_a_model_that_thinks_gets_no_sampling_parameters():
    body = asked(thinking_budget=2048, max_tokens=9000, temperature=0.2, top_p=0.5, top_k=5)
    assert body.keys() == {"model", "max_tokens", "messages", "thinking"}


@pytest.mark.parametrize(
    ("parts", "thinks"),
    [
        ([ToolCall("c", "f")], False),
        ([Text(" "), Thinking(text="unsigned"), ToolCall("c", "f")], False),
        ([Thinking(text="hm", signature="sig"), ToolCall("c", "f")], True),
    ],
)
def test_with_a_budget_only_calls_that_were_thought_about_are_gone_on_with(parts, thinks):
    messages = [Message("user", [Text("q")]), Message("assistant", parts), Message("user", [ToolResult("c")])]
    body = sent(ChatRequest(messages=messages, thinking_budget=2048, max_tokens=9000))
    assert ("thinking" in body) == thinks


def test_with_a_budget_no_tool_can_be_forced():
    body = asked(tools=[Tool("f")], tool_choice=ToolChoice("required"), thinking_budget=2048, max_tokens=9000)
    assert (body["tool_choice"], "thinking" in body) == ({"type": "any"}, False)


# ---------------------------------------------------------------- properties

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
    body = sent(ChatRequest(messages=messages, tools=tools, reasoning_effort=effort, max_tokens=5000), model)
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
    assert sent(dialect.canonical(call)) == body
