"""Whole answers of Gemini in canonical form."""

import json

import pytest

from proxy.canonical import GEMINI_SIGNED, ChatRequest, Foreign, Text, Thinking, Tool, ToolCall, Usage
from proxy.context import Call
from proxy.dialects.anthropic_rendering import message
from proxy.dialects.openai_rendering import completion
from proxy.errors import UpstreamFault
from proxy.gemini_format.shapes import GEMINI
from tests.proxy.gemini_wire import asked, counts, document, function_call, response_of
from tests.proxy.wire import facts

IMAGE = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
CODE = {"executableCode": {"language": "PYTHON", "code": "print(1)"}}


def fault_of(content) -> UpstreamFault:
    with pytest.raises(UpstreamFault) as caught:
        response_of(content)
    return caught.value


def test_an_answer_of_text():
    answer = response_of(document({"text": "Grüße "}, {"text": "🌍"}, usageMetadata=counts(5, 2, totalTokenCount=7)))
    assert answer.parts == [Text("Grüße "), Text("🌍")]
    assert (answer.id, answer.model) == ("r-1", "gemini-2.5-flash")
    assert (answer.finish_reason, answer.native_finish) == ("stop", "STOP")
    assert answer.usage == Usage(input_tokens=5, output_tokens=2)


def test_thoughts_and_signatures():
    thought = {"text": "hm", "thought": True, "thoughtSignature": "c2ln"}
    answer = response_of(
        document({"text": "a", "thought": True}, thought, {"text": "b", "thoughtSignature": "dGV4dA=="}, {"text": ""})
    )
    assert answer.parts == [
        Thinking("a"),
        Thinking("hm", GEMINI_SIGNED + "c2ln"),
        Text("b"),
        Thinking(signature=GEMINI_SIGNED + "dGV4dA=="),
    ]


def test_calls_have_distinct_ids_objects_as_arguments_and_their_own_signature():
    calls = [
        function_call("a", {"city": "Ålesund", "days": 2}, id="call_1") | {"thoughtSignature": "c2ln"},
        function_call("b", None),
        {"functionCall": {"name": "b"}},
        function_call("a", {}, id="call_1"),
    ]
    answer = response_of(document(*calls))
    first, *others = answer.parts
    assert first == ToolCall("call_1", "a", '{"city":"Ålesund","days":2}', "c2ln")
    assert [(call.name, call.arguments, call.signature) for call in others] == [
        ("b", "{}", None),
        ("b", "{}", None),
        ("a", "{}", None),
    ]
    assert len({call.id for call in answer.parts}) == 4
    assert answer.finish_reason == "tool_calls"


def test_a_call_of_a_renamed_tool_has_the_clients_name():
    tools = [Tool("a b"), Tool("c")]
    written = asked(tools=tools)["tools"][0]["functionDeclarations"][0]["name"]
    request = ChatRequest(messages=[], tools=tools)
    names = [part.name for part in response_of(document(function_call(written), function_call("c")), request).parts]
    assert names == ["a b", "c"]


def test_a_call_without_a_name_is_a_breach_of_protocol():
    assert fault_of(document(function_call(""))).kind == "protocol"


def test_parts_only_gemini_has_are_kept_apart_from_the_text():
    tool_call = {"toolCall": {"toolType": "FILE_SEARCH", "id": "1"}, "thoughtSignature": "c2ln"}
    answer = response_of(document(CODE, {"text": "done"}, IMAGE, tool_call, groundingMetadata={"a": 1}))
    assert answer.parts == [
        Foreign(GEMINI, "executableCode", CODE),
        Text("done"),
        Foreign(GEMINI, "inlineData", IMAGE),
        Foreign(GEMINI, "toolCall", tool_call),
    ]


def test_clients_of_other_formats_get_the_rest():
    answer = response_of(document(CODE, {"text": "done"}, IMAGE, {"text": "!", "thoughtSignature": "c2ln"}))
    call = Call(dialect="openai", body={}, model="m")
    told = json.loads(completion(call, answer, facts()))["choices"][0]["message"]
    assert told["content"] == "done!"
    blocks = json.loads(message(answer, facts()))["content"]
    assert [block["type"] for block in blocks] == ["text", "text", "thinking"]
    assert blocks[2]["signature"] == GEMINI_SIGNED + "c2ln"


# ---------------------------------------------------------------- why it ended


@pytest.mark.parametrize(
    ("native", "finish"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        *((reason, "content_filter") for reason in ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT")),
        *((reason, "content_filter") for reason in ("SPII", "LANGUAGE", "IMAGE_SAFETY", "MODEL_ARMOR")),
        *((reason, "stop") for reason in ("OTHER", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "NEW_ONE")),
    ],
)
def test_finish_reasons(native, finish):
    answer = response_of(document(finish=native))
    assert (answer.finish_reason, answer.native_finish) == (finish, native)


@pytest.mark.parametrize(
    ("native", "finish"),
    [("STOP", "tool_calls"), (None, "tool_calls"), ("MAX_TOKENS", "length"), ("SAFETY", "content_filter")],
)
def test_with_calls_stop_means_that_tools_are_to_run(native, finish):
    assert response_of(document(function_call("f"), finish=native)).finish_reason == finish


@pytest.mark.parametrize(("number", "native"), [(1, "STOP"), (2, "MAX_TOKENS"), (3, "SAFETY"), (77, "77"), (0, None)])
def test_reasons_as_numbers(number, native):
    answer = document({"text": "a"})
    answer["candidates"][0]["finishReason"] = number
    assert response_of(answer).native_finish == native


@pytest.mark.parametrize(
    "content", [{}, None, {"parts": None}, {"parts": "x"}, {"parts": [None, {}, {"thought": True}]}, "x"]
)
def test_a_candidate_without_content_is_an_empty_answer(content):
    answer = response_of({"candidates": [{"content": content, "finishReason": "SAFETY"}]})
    assert (answer.parts, answer.finish_reason, answer.usage) == ([], "content_filter", None)


@pytest.mark.parametrize("candidates", [{}, {"candidates": []}, {"candidates": None}])
@pytest.mark.parametrize("block", ["SAFETY", "OTHER", "PROHIBITED_CONTENT", "JAILBREAK", "NEW_ONE"])
def test_a_blocked_prompt_is_an_answer_without_text(candidates, block):
    answer = response_of(candidates | {"promptFeedback": {"blockReason": block}, "usageMetadata": counts(5, None)})
    assert (answer.parts, answer.finish_reason, answer.native_finish) == ([], "content_filter", block)
    assert answer.usage == Usage(input_tokens=5)


def test_of_several_candidates_the_first_counts():
    one, two = document({"text": "one"})["candidates"][0], document({"text": "two"})["candidates"][0]
    assert response_of({"candidates": [two | {"index": 1}, one]}).parts == [Text("one")]


# ---------------------------------------------------------------- usage


@pytest.mark.parametrize(
    ("source", "usage"),
    [
        (counts(83, 30, thoughtsTokenCount=190, totalTokenCount=303), Usage(83, 220, reasoning_tokens=190)),
        (counts(10, 30, thoughtsTokenCount=20, totalTokenCount=40), Usage(10, 30, reasoning_tokens=20)),
        (counts(10, 5, thoughtsTokenCount=20), Usage(10, 25, reasoning_tokens=20)),
        (counts(10, None, thoughtsTokenCount=20, totalTokenCount=30), Usage(10, 20, reasoning_tokens=20)),
        (counts(568, 5, cachedContentTokenCount=217), Usage(568, 5, cache_read_tokens=217)),
        (counts(8, 5, toolUsePromptTokenCount=70, totalTokenCount=83), Usage(78, 5)),
        (counts(14, None, totalTokenCount=14), Usage(14)),
        (counts(None, 7), Usage(0, 7)),
        (counts(None, 7, thoughtsTokenCount=3, totalTokenCount=15), Usage(5, 10, reasoning_tokens=3)),
        (counts(None, 7, cachedContentTokenCount=4), Usage(4, 7, cache_read_tokens=4)),
        (counts(3, 7, cachedContentTokenCount=4), Usage(3, 7, cache_read_tokens=3)),
        (counts(0, 0), Usage()),
    ],
)
def test_token_counts(source, usage):
    assert response_of(document({"text": "a"}, usageMetadata=source)).usage == usage


@pytest.mark.parametrize(
    "source",
    [
        None,
        {},
        [],
        "x",
        {"totalTokenCount": 9},
        counts(-1, 2),
        counts(5, 10**9),
        counts(5, 2, thoughtsTokenCount="3"),
        {"promptTokenCount": True},
    ],
)
def test_no_counts_and_nonsense_count_as_no_usage(source):
    assert response_of(document({"text": "a"}, usageMetadata=source)).usage is None


# ---------------------------------------------------------------- no answer at all


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>",
        b'{"candidates": [',
        b"\xff",
        b"[" * 100_000,
        b"null",
        b'"x"',
        b"[]",
        b"{}",
        b"[1]",
        {"candidates": [1]},
    ],
)
def test_what_is_no_answer_is_a_breach_of_protocol(content):
    fault = fault_of(content)
    assert (fault.kind, fault.status) == ("protocol", 200)


@pytest.mark.parametrize("wrapped", [True, False])
def test_an_error_in_place_of_an_answer_is_that_error(wrapped):
    error = {"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}
    fault = fault_of([error] if wrapped else error)
    assert (fault.kind, fault.status, fault.message) == ("rate_limit", 200, "slow down")
