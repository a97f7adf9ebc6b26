"""Messages requests of clients: what is checked, and their canonical form."""

import pytest

from proxy.canonical import (
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
from proxy.context import ANTHROPIC, Call
from proxy.dialects.anthropic import AnthropicDialect
from proxy.dialects.base import STEERING_FIELDS
from proxy.errors import BadRequest

USER = {"role": "user", "content": "hello"}
TOOL = {"name": "f", "input_schema": {"type": "object"}}
CACHED = {"type": "ephemeral"}


def parsed(**members) -> Call:
    body = {"model": "smart", "max_tokens": 9, "messages": [USER]} | members
    return AnthropicDialect().parse_call({name: value for name, value in body.items() if value != "absent"})


def canonical(*messages: dict, **members) -> ChatRequest:
    return AnthropicDialect().canonical(parsed(messages=list(messages) or [USER], **members))


def parts_of(*blocks: dict) -> list:
    return canonical({"role": "user", "content": list(blocks)}).messages[0].parts


def refused_param(call, *arguments, **members) -> str | None:
    with pytest.raises(BadRequest) as caught:
        call(*arguments, **members)
    assert caught.value.param is not None
    assert caught.value.param in caught.value.message
    return caught.value.param


# ---------------------------------------------------------------- parse_call


def test_what_the_gateway_reads_of_a_call():
    call = parsed(stream=True, metadata={"user_id": "u-1", "other": 7}, context_management={"edits": []})
    assert (call.dialect, call.model, call.stream, call.max_tokens, call.user) == (ANTHROPIC, "smart", True, 9, "u-1")
    assert call.metadata is None
    assert call.body["context_management"] == {"edits": []}


@pytest.mark.parametrize("name", sorted(STEERING_FIELDS))
def test_fields_that_steer_are_refused(name):
    with pytest.raises(BadRequest) as caught:
        parsed(**{name: "http://elsewhere"})
    assert (caught.value.code, caught.value.param) == ("unknown_parameter", name)


@pytest.mark.parametrize("value", ["absent", None, 0, -1, 1.5, True, "10", [5], 1 << 63])
def test_max_tokens_is_a_positive_integer_and_always_there(value):
    assert refused_param(parsed, max_tokens=value) == "max_tokens"


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"model": "absent"}, "model"),
        ({"messages": []}, "messages"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"messages": [USER, {"role": "tool", "content": "x"}]}, "messages[1].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": {"type": "text"}}]}, "messages[0].content"),
        ({"system": {"text": "x"}}, "system"),
        ({"temperature": 2.1}, "temperature"),
        ({"stream": "yes"}, "stream"),
        ({"stop_sequences": "x"}, "stop_sequences"),
        ({"stop_sequences": ["x"] * 65}, "stop_sequences"),
        ({"stop_sequences": [7]}, "stop_sequences"),
        ({"metadata": "x"}, "metadata"),
        ({"metadata": {"user_id": 7}}, "user_id"),
        ({"metadata": {"user_id": "a\x00"}}, "user_id"),
        ({"tools": [TOOL] * 513}, "tools"),
        ({"tools": ["f"]}, "tools"),
    ],
)
def test_what_does_not_validate_is_named(members, param):
    assert refused_param(parsed, **members) == param


# ---------------------------------------------------------------- canonical


def test_the_simple_members():
    request = canonical(system="Be brief.", temperature=0.5, top_p=0.9, top_k=40, stop_sequences=["END"])
    assert request.system == [Text("Be brief.")]
    assert (request.max_tokens, request.temperature, request.top_p, request.top_k) == (9, 0.5, 0.9, 40)
    assert request.stop == ["END"]
    assert request.messages == [Message("user", [Text("hello")])]


def test_system_blocks_keep_their_cache_marks_and_system_turns_join_them():
    request = canonical(
        USER,
        {"role": "system", "content": [{"type": "text", "text": "From now on, rhyme."}]},
        system=[{"type": "text", "text": "Long.", "cache_control": CACHED}, {"type": "text", "text": ""}],
    )
    assert request.system == [Text("Long.", CACHED), Text("From now on, rhyme.")]
    assert len(request.messages) == 1


def test_system_may_hold_text_only():
    block = {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}
    assert refused_param(canonical, system=[block]) == "system"


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"type": "text", "text": "a", "cache_control": CACHED}, Text("a", CACHED)),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0"}},
            Image(media_type="image/gif", data="R0"),
        ),
        (
            {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}, "cache_control": CACHED},
            Image(url="https://x/y.png", cache_control=CACHED),
        ),
        (
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "JV"},
                "title": "t",
            },
            File(media_type="application/pdf", data="JV", name="t"),
        ),
        (
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}},
            File(media_type="text/plain", text="words"),
        ),
        (
            {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}},
            File(media_type="application/pdf", url="https://x/y.pdf"),
        ),
        ({"type": "thinking", "thinking": "hm", "signature": "sig"}, Thinking(text="hm", signature="sig")),
        ({"type": "thinking", "thinking": "hm", "signature": ""}, Thinking(text="hm")),
        ({"type": "redacted_thinking", "data": "xx"}, Thinking(redacted="xx")),
        ({"type": "tool_use", "id": "c1", "name": "f", "input": {"a": "é"}}, ToolCall("c1", "f", '{"a":"é"}')),
        ({"type": "tool_use", "id": "c1", "name": "f"}, ToolCall("c1", "f", "{}")),
        (
            {
                "type": "tool_use",
                "id": "c1",
                "name": "f",
                "input": {},
                "extra_content": {"tollbar": {"signature": "s"}},
            },
            ToolCall("c1", "f", "{}", "s"),
        ),
        ({"type": "tool_result", "tool_use_id": "c1"}, ToolResult("c1")),
        ({"type": "tool_result", "tool_use_id": "c1", "content": "5 C"}, ToolResult("c1", [Text("5 C")])),
        (
            {
                "type": "tool_result",
                "tool_use_id": "c1",
                "is_error": True,
                "cache_control": CACHED,
                "content": [
                    {"type": "text", "text": "no"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iV"}},
                ],
            },
            ToolResult("c1", [Text("no"), Image(media_type="image/png", data="iV")], True, None, CACHED),
        ),
    ],
)
def test_blocks_become_parts(block, part):
    assert parts_of(block) == [part]


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        ({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, "server_tool_use"),
        ({"type": "web_search_tool_result", "tool_use_id": "s", "content": []}, "web_search_tool_result"),
        ({"type": "search_result", "source": "x", "title": "t", "content": []}, "search_result"),
        ({"type": "something_new", "n": 1}, "something_new"),
        ({"type": "image", "source": {"type": "file", "file_id": "f"}}, "image of source file"),
        ({"type": "document", "source": {"type": "file", "file_id": "f"}}, "document of source file"),
    ],
)
def test_what_only_anthropic_knows_is_kept_whole(block, kind):
    assert parts_of(block) == [Foreign(ANTHROPIC, kind, block)]


def test_a_document_of_blocks_is_laid_out_and_its_context_kept():
    source = {"type": "content", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}
    assert parts_of({"type": "document", "source": source, "context": "From a book."}) == [
        Text("From a book."),
        Text("one"),
        Text("two"),
    ]


def test_results_carry_the_name_of_their_tool():
    request = canonical(
        USER,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1"}]},
    )
    assert request.messages[2].parts == [ToolResult("c1", name="f")]


@pytest.mark.parametrize(
    ("block", "param"),
    [
        ("hi", ".type"),
        ({"text": "x"}, ".type"),
        ({"type": "text"}, ".text"),
        ({"type": "image"}, ".source"),
        ({"type": "image", "source": {"type": "base64", "data": "x"}}, ".source.media_type"),
        ({"type": "thinking", "signature": "x"}, ".thinking"),
        ({"type": "tool_use", "id": "", "name": "f"}, ".id"),
        ({"type": "tool_use", "id": "a", "name": "f", "input": "{}"}, ".input"),
        ({"type": "tool_result", "content": "x"}, ".tool_use_id"),
        ({"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text"}]}, ".content[0].text"),
    ],
)
def test_a_malformed_block_is_named(block, param):
    assert refused_param(parts_of, block) == f"messages[0].content[0]{param}"


def test_tools_of_the_client_and_of_the_server_are_told_apart():
    search = {"type": "web_search_20250305", "name": "web_search"}
    custom = {"type": "custom", "name": "g", "description": "d", "input_schema": {"type": "object"}}
    request = canonical(tools=[TOOL | {"cache_control": CACHED, "strict": True}, search, custom])
    assert request.tools == [
        Tool("f", parameters={"type": "object"}, strict=True, cache_control=CACHED),
        Tool("g", "d", {"type": "object"}),
    ]
    assert request.foreign_tools == [Foreign(ANTHROPIC, "web_search_20250305", search)]


@pytest.mark.parametrize(
    ("choice", "read", "parallel"),
    [
        ({"type": "auto"}, ToolChoice("auto"), None),
        ({"type": "any", "disable_parallel_tool_use": True}, ToolChoice("required"), False),
        ({"type": "tool", "name": "f", "disable_parallel_tool_use": False}, ToolChoice("tool", "f"), None),
        ({"type": "none"}, ToolChoice("none"), None),
    ],
)
def test_tool_choice(choice, read, parallel):
    request = canonical(tools=[TOOL], tool_choice=choice)
    assert (request.tool_choice, request.parallel_tool_calls) == (read, parallel)


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"tool_choice": "auto"}, "tool_choice.type"),
        ({"tool_choice": {"type": "required"}}, "tool_choice.type"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice.name"),
        ({"tools": [{"input_schema": {}}]}, "tools[0].name"),
        ({"tools": [{"name": "f"}]}, "tools[0].input_schema"),
        ({"thinking": "on"}, "thinking"),
        ({"thinking": {"type": "enabled", "budget_tokens": 0}}, "budget_tokens"),
        ({"output_config": []}, "output_config"),
        ({"output_config": {"format": {"type": "xml"}}}, "output_config.format"),
        ({"output_format": "json"}, "output_config.format"),
        ({"top_p": 2}, "top_p"),
        ({"top_k": -1}, "top_k"),
    ],
)
def test_what_is_malformed_for_a_translation_is_named(members, param):
    assert refused_param(canonical, **members) == param


@pytest.mark.parametrize(
    ("members", "budget", "effort"),
    [
        ({"thinking": {"type": "enabled", "budget_tokens": 2048}}, 2048, None),
        ({"thinking": {"type": "adaptive"}}, None, None),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}, None, "high"),
        ({"output_config": {"effort": "low"}}, None, "low"),
        ({"thinking": {"type": "disabled"}, "output_config": {"effort": "low"}}, None, None),
        ({"output_config": {"effort": "enormous"}}, None, None),
    ],
)
def test_thinking(members, budget, effort):
    request = canonical(**members)
    assert (request.thinking_budget, request.reasoning_effort) == (budget, effort)


@pytest.mark.parametrize("place", [{"output_config": {"format": ...}}, {"output_format": ...}])
def test_a_schema_for_the_answer(place):
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    wanted = {"type": "json_schema", "schema": schema}
    members = {name: wanted if value is ... else {"format": wanted} for name, value in place.items()}
    assert canonical(**members).response_format == ResponseFormat("json_schema", schema=schema)
