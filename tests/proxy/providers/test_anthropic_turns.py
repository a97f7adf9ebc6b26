"""Conversations of other dialects as the turns Anthropic takes."""

import re

import pytest

from proxy.anthropic_format.turns import OPENING
from proxy.canonical import (
    Audio,
    ChatRequest,
    File,
    Foreign,
    Image,
    Message,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from proxy.dialects.openai import OpenAIDialect
from proxy.errors import BadRequest
from tests.proxy.anthropic_wire import translated

CACHED = {"type": "ephemeral"}


def asked(*parts, model: str = "claude-sonnet-4-5", **members) -> dict:
    return translated(ChatRequest(messages=[Message("user", list(parts) or [Text("hi")])], **members), model)


def turns(*messages: Message) -> list[dict]:
    return translated(ChatRequest(messages=list(messages)))["messages"]


def from_openai(*messages: dict, **members) -> list[dict]:
    dialect = OpenAIDialect()
    call = dialect.parse_call({"model": "m", "messages": list(messages)} | members)
    return translated(dialect.canonical(call))["messages"]


def test_the_simplest_request():
    assert translated(ChatRequest(messages=[Message("user", [Text("hi")])]), stream=True) == {
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
    assert translated(ChatRequest(messages=[], system=[Text("Write a poem.")]))["messages"] == [opening]


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
    body = translated(
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
