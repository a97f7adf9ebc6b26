"""Requests of other dialects in Anthropic's words: everything but the conversation."""

import json
import re

import pytest

from proxy.canonical import (
    ChatRequest,
    Foreign,
    Message,
    ResponseFormat,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from proxy.errors import BadRequest
from tests.proxy.anthropic_wire import translated

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


def asked(*parts, model: str = "claude-sonnet-4-5", **members) -> dict:
    return translated(ChatRequest(messages=[Message("user", list(parts) or [Text("hi")])], **members), model)


def test_the_limit_is_the_clients_else_the_gateways():
    request = ChatRequest(messages=[])
    assert translated(request, output_cap=77)["max_tokens"] == 77
    assert translated(ChatRequest(messages=[], max_tokens=5), output_cap=77)["max_tokens"] == 5


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


def test_top_p_alone_is_translated():
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
    body = translated(ChatRequest(messages=messages, thinking_budget=2048, max_tokens=9000))
    assert ("thinking" in body) == thinks
    more = ChatRequest(messages=[*messages, Message("user", [Text("go on")])], thinking_budget=2048, max_tokens=9000)
    assert ("thinking" in translated(more)) == thinks, "results and what is said with them may come apart"


def test_with_a_budget_no_tool_can_be_forced():
    body = asked(tools=[Tool("f")], tool_choice=ToolChoice("required"), thinking_budget=2048, max_tokens=9000)
    assert (body["tool_choice"], "thinking" in body) == ({"type": "any"}, False)
