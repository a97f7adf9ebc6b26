"""Chat completion requests of clients: what is checked, and their canonical form."""

import pytest

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
from proxy.context import Call
from proxy.dialects.base import STEERING_FIELDS
from proxy.dialects.openai import OpenAIDialect
from proxy.errors import BadRequest

USER = {"role": "user", "content": "hello"}
FUNCTION = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def parsed(**members) -> Call:
    return OpenAIDialect().parse_call({"model": "smart", "messages": [USER]} | members)


def canonical(*messages: dict, **members) -> ChatRequest:
    return OpenAIDialect().canonical(parsed(messages=list(messages) or [USER], **members))


def refused_param(call, *arguments, **members) -> str | None:
    with pytest.raises(BadRequest) as caught:
        call(*arguments, **members)
    assert caught.value.param is not None
    assert caught.value.param in caught.value.message
    return caught.value.param


# ---------------------------------------------------------------- parse_call


def test_what_the_gateway_reads_of_a_call():
    call = parsed(
        max_tokens=5,
        max_completion_tokens=9,
        n=3,
        stream=True,
        stream_options={"include_usage": True},
        user="u",
        metadata={"a": "b"},
        x_vendor=1,
    )
    assert (call.model, call.max_tokens, call.choices, call.stream, call.include_usage) == ("smart", 9, 3, True, True)
    assert (call.user, call.metadata, call.body["x_vendor"]) == ("u", {"a": "b"}, 1)


def test_nulls_count_as_absent():
    names = (
        "max_tokens",
        "n",
        "stop",
        "temperature",
        "stream",
        "stream_options",
        "tools",
        "user",
        "metadata",
        "logit_bias",
    )
    call = parsed(**dict.fromkeys(names))
    assert (call.max_tokens, call.choices, call.stream, call.include_usage, call.user) == (None, 1, False, False, None)


@pytest.mark.parametrize("name", sorted(STEERING_FIELDS))
def test_fields_that_steer_the_call_are_refused(name):
    with pytest.raises(BadRequest) as caught:
        parsed(**{name: "x"})
    assert (caught.value.code, caught.value.param) == ("unknown_parameter", name)


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "n"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "10", [5], {}, 1 << 63])
def test_counts_are_positive_integers(name, value):
    assert refused_param(parsed, **{name: value}) == name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model", None),
        ("model", ""),
        ("model", 7),
        ("model", "m" * 10_000),
        ("model", "a\x00b"),
        ("messages", None),
        ("messages", []),
        ("messages", "x"),
        ("messages", [USER] * 10_001),
        ("temperature", 2.5),
        ("temperature", -1),
        ("temperature", True),
        ("temperature", "1"),
        ("n", 129),
        ("stop", {"a": 1}),
        ("stop", ["x"] * 65),
        ("stop", [1]),
        ("stream", "yes"),
        ("stream_options", True),
        ("tools", {}),
        ("tools", [FUNCTION] * 513),
        ("tools", ["f"]),
        ("functions", 3),
        ("logit_bias", {str(number): 1 for number in range(5000)}),
        ("logit_bias", []),
        ("user", 7),
        ("user", "u" * 513),
        ("user", "a\x00"),
        ("metadata", []),
        ("metadata", {"a": 1}),
        ("metadata", {"a": "x" * 513}),
        ("metadata", {"a\x00": "x"}),
        ("metadata", {str(number): "x" for number in range(65)}),
    ],
)
def test_what_is_malformed_is_named(name, value):
    assert refused_param(parsed, **{name: value}) == name


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([USER, "x"], "messages[1]"),
        ([{"content": "x"}], "messages[0].role"),
        ([USER, {"role": "wizard", "content": "x"}], "messages[1].role"),
        ([{"role": ["user"], "content": "x"}], "messages[0].role"),
    ],
)
def test_a_bad_message_is_named_by_its_place(messages, param):
    assert refused_param(parsed, messages=messages) == param


def test_include_usage_is_a_boolean():
    assert refused_param(parsed, stream_options={"include_usage": 1}) == "stream_options.include_usage"


# ---------------------------------------------------------------- canonical form


def test_a_conversation_with_parallel_tools():
    calls = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": ""}},
    ]
    request = canonical(
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a", "content": "5 C"},
        {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "noon"}]},
        {"role": "user", "content": "Summarise"},
        {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
        {"role": "assistant", "content": None, "refusal": "No."},
        {"role": "user", "content": ""},
    )
    assert request.system == [Text("Be brief."), Text("Be kind.")]
    assert request.messages == [
        Message("user", [Text("go")]),
        Message("assistant", [ToolCall("a", "f", '{"x":1}'), ToolCall("b", "g")]),
        Message("user", [ToolResult("a", [Text("5 C")]), ToolResult("b", [Text("noon")]), Text("Summarise")]),
        Message("assistant", [Text("No.")]),
        Message("user", []),
    ]


def test_messages_of_the_user_without_results_stay_apart():
    request = canonical({"role": "user", "content": "a"}, {"role": "user", "content": "b"})
    assert request.messages == [Message("user", [Text("a")]), Message("user", [Text("b")])]


def test_content_parts():
    control = {"type": "ephemeral"}
    request = canonical(
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "see", "cache_control": control},
                {"type": "text", "text": ""},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
                {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}},
                {"type": "file", "file": {"file_id": "file-1"}},
            ],
        }
    )
    assert request.messages[0].parts == [
        Text("see", control),
        Image(media_type="image/png", data="aGk=", detail="low"),
        Image(url="https://example.com/a.png"),
        Audio("aGk=", "wav"),
        File(media_type="application/pdf", data="aGk=", name="a.pdf"),
        File(file_id="file-1"),
    ]


def test_thinking_and_signatures_come_back_unchanged():
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    blocks = [{"text": "t", "signature": "s"}, {"redacted": "r"}]
    request = canonical(
        {
            "role": "assistant",
            "content": "x",
            "reasoning_content": "t",
            "extra_content": {"tollbar": {"thinking": blocks}},
            "tool_calls": [
                call | {"extra_content": {"google": {"thought_signature": "g"}}},
                call | {"extra_content": {"tollbar": {"signature": "o"}}},
            ],
        },
        {"role": "assistant", "content": "y", "reasoning_content": "plain"},
    )
    first, second = request.messages
    assert first.parts == [
        Thinking("t", "s"),
        Thinking(redacted="r"),
        Text("x"),
        ToolCall("a", "f", "{}", "g"),
        ToolCall("a", "f", "{}", "o"),
    ]
    assert second.parts == [Thinking("plain"), Text("y")]


def test_options():
    schema = {"type": "object"}
    request = canonical(
        max_tokens=50,
        temperature=0,
        top_p=0.5,
        stop="x",
        seed=7,
        frequency_penalty=-1,
        presence_penalty=1.5,
        logprobs=True,
        top_logprobs=3,
        parallel_tool_calls=False,
        reasoning_effort="low",
        user="u",
        tools=[
            {"type": "function", "function": {"name": "f", "description": "d", "parameters": schema, "strict": True}}
        ],
        tool_choice={"type": "function", "function": {"name": "f"}},
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": True}},
    )
    assert (request.max_tokens, request.temperature, request.top_p, request.stop, request.seed) == (
        50,
        0,
        0.5,
        ["x"],
        7,
    )
    assert (request.frequency_penalty, request.presence_penalty) == (-1, 1.5)
    assert (request.logprobs, request.top_logprobs, request.parallel_tool_calls) == (True, 3, False)
    assert (request.reasoning_effort, request.user) == ("low", "u")
    assert request.tools == [Tool("f", "d", schema, strict=True)]
    assert request.tool_choice == ToolChoice("tool", "f")
    assert request.response_format == ResponseFormat("json_schema", "n", schema, strict=True)


def test_legacy_functions():
    request = canonical(
        USER,
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "5"},
        functions=[{"name": "f", "parameters": {"type": "object"}}],
        function_call={"name": "f"},
    )
    call = request.messages[1].parts[0]
    assert request.messages[2].parts == [ToolResult(call.id, [Text("5")], name="f")]
    assert request.tools == [Tool("f", parameters={"type": "object"})]
    assert request.tool_choice == ToolChoice("tool", "f")


def test_tools_only_openai_has_are_foreign_to_others():
    request = canonical(tools=[FUNCTION, {"type": "custom", "custom": {"name": "c"}}])
    assert [tool.name for tool in request.tools] == ["f"]
    assert request.foreign_tools == [Foreign("openai", "custom", {"type": "custom", "custom": {"name": "c"}})]


def part(**members) -> dict:
    return {"role": "user", "content": [{"type": "text", "text": "a"}, members]}


@pytest.mark.parametrize(
    ("message", "param"),
    [
        (part(type="video_url"), "messages[0].content[1].type"),
        (part(type=["text"]), "messages[0].content[1].type"),
        (part(type="text"), "messages[0].content[1].text"),
        (part(type="image_url", image_url={}), "messages[0].content[1].image_url.url"),
        (part(type="image_url", image_url={"url": "file:///etc/passwd"}), "messages[0].content[1].image_url.url"),
        (part(type="image_url", image_url={"url": "data:image/png,raw"}), "messages[0].content[1].image_url.url"),
        (part(type="input_audio", input_audio={"data": "x"}), "messages[0].content[1].input_audio.format"),
        (part(type="file", file={"filename": "a"}), "messages[0].content[1].file"),
        ({"role": "user", "content": {"a": 1}}, "messages[0].content"),
        ({"role": "user", "content": ["a"]}, "messages[0].content[0]"),
        ({"role": "tool", "content": "x"}, "messages[0].tool_call_id"),
        ({"role": "function", "name": "f", "content": "x"}, "messages[0].name"),
        ({"role": "assistant", "tool_calls": {}}, "messages[0].tool_calls"),
        ({"role": "assistant", "tool_calls": [{"id": "a", "type": "custom"}]}, "messages[0].tool_calls[0].type"),
        ({"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}, "messages[0].tool_calls[0].id"),
        ({"role": "assistant", "tool_calls": [{"id": "a", "function": {}}]}, "messages[0].tool_calls[0].function.name"),
    ],
)
def test_a_malformed_message_is_named_by_its_place(message, param):
    assert refused_param(canonical, message) == param


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"n": 2}, "n"),
        ({"top_p": 2}, "top_p"),
        ({"seed": 1.5}, "seed"),
        ({"presence_penalty": 3}, "presence_penalty"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [{"type": "function", "function": {"name": ""}}]}, "tools[0].function.name"),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]},
            "tools[0].function.parameters",
        ),
        ({"tools": [FUNCTION], "tool_choice": "maybe"}, "tool_choice"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
    ],
)
def test_malformed_options_are_named(members, param):
    assert refused_param(canonical, **members) == param
