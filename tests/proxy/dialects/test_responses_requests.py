"""Requests of OpenAI's Responses API: what is checked, and their canonical form."""

import pytest

from proxy.canonical import (
    Audio,
    ChatRequest,
    File,
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
from proxy.context import RESPONSES, Call
from proxy.dialects.base import STEERING_FIELDS
from proxy.dialects.responses import ResponsesDialect
from proxy.errors import BadRequest, Inexpressible
from proxy.openai_format.responses_shapes import sealed_signature, sealed_thinking

USER = {"role": "user", "content": "hello"}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a":1}'}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "done"}
FUNCTION = {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}


def parsed(**members) -> Call:
    return ResponsesDialect().parse_call({"model": "smart", "input": "hello"} | members)


def canonical(*items: dict, **members) -> ChatRequest:
    return ResponsesDialect().canonical(parsed(input=list(items) or "hello", **members))


def said(*parts: dict) -> list:
    return canonical({"role": "user", "content": list(parts)}).messages[0].parts


def refused(call, *arguments, **members) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        call(*arguments, **members)
    assert caught.value.param is not None
    assert caught.value.param in caught.value.message
    return caught.value


# ---------------------------------------------------------------- parse_call


def test_what_the_gateway_reads_of_a_call():
    call = parsed(max_output_tokens=9, stream=True, user="u", metadata={"a": "b"}, x_vendor=1)
    assert (call.dialect, call.model, call.max_tokens, call.stream) == (RESPONSES, "smart", 9, True)
    assert (call.user, call.metadata, call.body["x_vendor"], call.background) == ("u", {"a": "b"}, 1, False)


def test_a_background_call_is_noted_for_the_pipeline_to_refuse():
    assert parsed(background=True).background


@pytest.mark.parametrize("name", sorted(STEERING_FIELDS))
def test_fields_that_would_steer_the_call_are_refused(name):
    error = refused(parsed, **{name: "x"})
    assert (error.code, error.param) == ("unknown_parameter", name)


@pytest.mark.parametrize("name", ["previous_response_id", "conversation", "prompt"])
def test_input_may_be_left_out_where_something_stored_goes_on(name):
    assert parsed(input=None, **{name: "x"}).body[name] == "x"


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"model": None}, "model"),
        ({"input": None}, "input"),
        ({"input": []}, "input"),
        ({"input": {}}, "input"),
        ({"input": 7}, "input"),
        ({"input": [USER] * 10_001}, "input"),
        ({"input": [USER, "x"]}, "input[1]"),
        ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
        ({"input": [{"type": "message", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": ["user"], "content": "x"}]}, "input[0].role"),
        ({"input": [{"type": 7}]}, "input[0].type"),
        ({"instructions": ["x"]}, "instructions"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"max_output_tokens": "9"}, "max_output_tokens"),
        ({"temperature": 3}, "temperature"),
        ({"tools": {}}, "tools"),
        ({"tools": ["f"]}, "tools"),
        ({"tools": [FUNCTION] * 513}, "tools"),
        ({"stream": "yes"}, "stream"),
        ({"background": 1}, "background"),
        ({"user": 7}, "user"),
        ({"metadata": {"a": 1}}, "metadata"),
    ],
)
def test_a_malformed_member_is_refused_by_name(members, param):
    assert refused(parsed, **members).param == param


# ---------------------------------------------------------------- canonical form


def test_a_text_is_a_message_of_the_user():
    assert canonical().messages == [Message("user", [Text("hello")])]


def test_every_setting_is_carried_over():
    request = canonical(
        instructions="Be brief.",
        max_output_tokens=9,
        temperature=0.5,
        top_p=0.9,
        tools=[FUNCTION, {"type": "function", "name": "g", "parameters": None}],
        tool_choice="required",
        parallel_tool_calls=False,
        reasoning={"effort": "low", "summary": "auto"},
        user="u",
    )
    assert request == ChatRequest(
        messages=[Message("user", [Text("hello")])],
        system=[Text("Be brief.")],
        max_tokens=9,
        temperature=0.5,
        top_p=0.9,
        tools=[Tool("f", "d", {"type": "object"}, strict=True), Tool("g")],
        tool_choice=ToolChoice("required"),
        parallel_tool_calls=False,
        reasoning_effort="low",
        user="u",
    )


def test_messages_of_the_system_follow_the_instructions():
    request = canonical(
        USER,
        {"role": "developer", "content": [{"type": "input_text", "text": "two"}]},
        {"type": "message", "role": "system", "content": "three"},
        instructions="one",
    )
    assert request.system == [Text("one"), Text("two"), Text("three")]


def test_what_the_user_sends_of_every_type():
    assert said(
        {"type": "input_text", "text": "a"},
        {"type": "input_text", "text": ""},
        {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "original"},
        {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "auto", "file_id": None},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="},
        {"type": "input_file", "file_data": "aGk="},
        {"type": "input_file", "file_url": "https://example.com/a.pdf"},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
    ) == [
        Text("a"),
        Image(media_type="image/png", data="aGk=", detail="high"),
        Image(url="https://example.com/a.png", detail="auto"),
        File(name="a.pdf", media_type="application/pdf", data="aGk="),
        File(data="aGk="),
        File(url="https://example.com/a.pdf"),
        Audio("aGk=", "wav"),
    ]


def test_items_of_one_answer_are_one_turn_and_results_join_what_follows():
    request = canonical(
        USER,
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I call."}]},
        CALL,
        CALL | {"call_id": "c2", "arguments": ""},
        RESULT,
        RESULT | {"call_id": "c2", "output": [{"type": "input_text", "text": "two"}]},
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
        {"role": "assistant", "content": "really"},
    )
    assert request.messages == [
        Message("user", [Text("hello")]),
        Message(
            "assistant", [Thinking(text="hm"), Text("I call."), ToolCall("c1", "f", '{"a":1}'), ToolCall("c2", "f")]
        ),
        Message("user", [ToolResult("c1", [Text("done")]), ToolResult("c2", [Text("two")]), Text("go on")]),
        Message("assistant", [Text("no")]),
        Message("assistant", [Text("really")]),
    ]


def test_what_is_said_between_a_call_and_its_result_stays_in_the_turn():
    request = canonical(USER, CALL, {"role": "assistant", "content": "wait"}, RESULT)
    assert [message.role for message in request.messages] == ["user", "assistant", "user"]


def test_signatures_come_back_from_encrypted_content():
    signed = Thinking(text="hm", signature="sig")
    redacted = Thinking(redacted="blob")
    call = ToolCall("c1", "f", '{"a":1}', signature="for the call")
    reasoning = {"type": "reasoning", "summary": []}
    request = canonical(
        USER,
        reasoning | {"summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": sealed_thinking(signed)},
        reasoning | {"encrypted_content": sealed_thinking(redacted)},
        reasoning | {"encrypted_content": sealed_signature(call)},
        CALL,
    )
    assert request.messages[1].parts == [signed, redacted, call]


def test_openais_own_reasoning_says_to_others_only_what_can_be_read():
    reasoning = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAB"}
    raw = reasoning | {"content": [{"type": "reasoning_text", "text": "hm"}]}
    empty = reasoning | {"encrypted_content": sealed_thinking(Thinking())}
    request = canonical(USER, reasoning, raw, empty, {"role": "assistant", "content": "ok"})
    assert request.messages[1].parts == [Thinking(text="hm"), Text("ok")]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (None, None),
        ({"verbosity": "low"}, None),
        ({"format": {"type": "text"}}, ResponseFormat("text")),
        ({"format": {"type": "json_object"}}, ResponseFormat("json_object")),
        (
            {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}},
            ResponseFormat("json_schema", name="n", schema={"type": "object"}, strict=True),
        ),
    ],
)
def test_the_form_of_the_text_is_a_response_format(wanted, found):
    assert canonical(text=wanted).response_format == found


def test_a_tool_may_be_named():
    assert canonical(tools=[FUNCTION], tool_choice={"type": "function", "name": "f"}).tool_choice == ToolChoice(
        "tool", "f"
    )


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": {"id": "conv_1"}}, "conversation"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"tools": [FUNCTION, {"type": "web_search"}]}, "tools[1].type"),
        ({"tools": [{"type": "custom", "name": "f"}]}, "tools[0].type"),
        ({"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}}, "tool_choice.type"),
        ({"input": [USER, {"type": "item_reference", "id": "msg_1"}]}, "input[1].type"),
        ({"input": [USER, {"id": "msg_1"}]}, "input[1].type"),
        ({"input": [{"type": "web_search_call", "id": "ws_1"}]}, "input[0].type"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "file-1"}]}]},
            "input[0].content[0].file_id",
        ),
        (
            {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "file-1"}]}]},
            "input[0].content[0].file_id",
        ),
    ],
)
def test_what_only_openai_can_do_is_told_apart_from_what_is_malformed(members, param):
    error = refused(ResponsesDialect().canonical, parsed(**members))
    assert isinstance(error, Inexpressible)
    assert error.param == param


def content(entry) -> dict:
    return {"input": [{"role": "user", "content": [entry]}]}


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"input": [{"role": "user", "content": 7}]}, "input[0].content"),
        (content("x"), "input[0].content[0]"),
        (content({"type": "video"}), "input[0].content[0].type"),
        (content({"type": ["input_text"]}), "input[0].content[0].type"),
        (content({"type": "input_text"}), "input[0].content[0].text"),
        (content({"type": "input_image"}), "input[0].content[0]"),
        (content({"type": "input_image", "image_url": "file:///etc/passwd"}), "input[0].content[0].image_url"),
        (content({"type": "input_image", "image_url": "data:image/png,raw"}), "input[0].content[0].image_url"),
        (content({"type": "input_image", "image_url": "https://a", "detail": []}), "input[0].content[0].detail"),
        (content({"type": "input_image", "image_url": "https://a", "detail": "x"}), "input[0].content[0].detail"),
        (content({"type": "input_file"}), "input[0].content[0]"),
        (content({"type": "input_file", "file_url": "ftp://a"}), "input[0].content[0].file_url"),
        (content({"type": "input_audio"}), "input[0].content[0].input_audio"),
        (
            {"input": [{"role": "system", "content": [{"type": "input_image", "image_url": "https://a"}]}]},
            "input[0].content",
        ),
        ({"input": [CALL | {"call_id": ""}]}, "input[0].call_id"),
        ({"input": [CALL | {"name": None}]}, "input[0].name"),
        ({"input": [CALL | {"arguments": {}}]}, "input[0].arguments"),
        ({"input": [RESULT | {"call_id": 7}]}, "input[0].call_id"),
        ({"input": [RESULT | {"output": None}]}, "input[0].output"),
        ({"input": [{"type": "reasoning", "summary": "hm"}]}, "input[0].summary"),
        ({"input": [{"type": "reasoning", "summary": [{}]}]}, "input[0].summary[0].text"),
        ({"input": [{"type": "reasoning", "encrypted_content": 7}]}, "input[0].encrypted_content"),
        ({"input": [{"type": "reasoning", "encrypted_content": "tollbar.x"}]}, "input[0].encrypted_content"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tools": [FUNCTION | {"parameters": []}]}, "tools[0].parameters"),
        ({"tools": [FUNCTION | {"description": 7}]}, "tools[0].description"),
        ({"tools": [FUNCTION | {"strict": "yes"}]}, "tools[0].strict"),
        ({"tool_choice": "any"}, "tool_choice"),
        ({"tool_choice": {"type": "function"}}, "tool_choice.name"),
        ({"top_p": 2}, "top_p"),
        ({"parallel_tool_calls": "no"}, "parallel_tool_calls"),
        ({"reasoning": "low"}, "reasoning"),
        ({"reasoning": {"effort": 7}}, "reasoning.effort"),
        ({"text": "json"}, "text"),
        ({"text": {"format": "json"}}, "text.format.type"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"text": {"format": {"type": "json_schema", "name": "n"}}}, "text.format.schema"),
        ({"text": {"format": {"type": "json_schema", "schema": {}}}}, "text.format.name"),
        ({"text": {"format": {"type": "json_schema", "name": "n", "schema": []}}}, "text.format.schema"),
    ],
)
def test_what_is_malformed_is_refused_by_name(members, param):
    error = refused(ResponsesDialect().canonical, parsed(**members))
    assert not isinstance(error, Inexpressible)
    assert error.param == param
