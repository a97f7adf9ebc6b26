"""Conversations of other dialects as the turns that Converse takes."""

import base64

import pytest

from proxy.anthropic_format.turns import OPENING
from proxy.bedrock_format.turns import NO_OUTPUT, SEE_DOCUMENT
from proxy.canonical import (
    Audio,
    ChatRequest,
    File,
    Foreign,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from proxy.dialects.openai import OpenAIDialect
from proxy.errors import BadRequest
from tests.proxy.bedrock_wire import CLAUDE, NOVA, OLD_CLAUDE, asked, tool, written

CACHED = {"type": "ephemeral"}
POINT = {"cachePoint": {"type": "default"}}
LLAMA = "meta.llama3-70b-instruct-v1:0"


def turns(*messages: Message, model: str = CLAUDE, **members) -> list[dict]:
    return written(ChatRequest(messages=list(messages), tools=[tool()], **members), model)["messages"]


def content(*parts, model: str = CLAUDE) -> list[dict]:
    return asked(*parts, model=model)["messages"][0]["content"]


@pytest.mark.parametrize("said", ["", None, ...])
def test_tool_history_of_openai_becomes_one_turn_each(said):
    calls = [
        {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}},
        {"id": "call_2", "type": "function", "function": {"name": "time", "arguments": ""}},
    ]
    assistant = {"role": "assistant", "content": said, "tool_calls": calls}
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "Weather and time?"},
            {name: value for name, value in assistant.items() if value is not ...},
            {"role": "tool", "tool_call_id": "call_1", "content": "5 C"},
            {"role": "tool", "tool_call_id": "call_2", "content": ""},
            {"role": "user", "content": "Summarise"},
        ],
        "tools": [{"type": "function", "function": {"name": name}} for name in ("weather", "time")],
    }
    dialect = OpenAIDialect()
    assert written(dialect.canonical(dialect.parse_call(body)))["messages"] == [
        {"role": "user", "content": [{"text": "Weather and time?"}]},
        {
            "role": "assistant",
            "content": [
                {"toolUse": {"toolUseId": "call_1", "name": "weather", "input": {"city": "Oslo"}}},
                {"toolUse": {"toolUseId": "call_2", "name": "time", "input": {}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "call_1", "content": [{"text": "5 C"}]}},
                {"toolResult": {"toolUseId": "call_2", "content": [{"text": NO_OUTPUT}]}},
                {"text": "Summarise"},
            ],
        },
    ]


def test_roles_alternate_and_begin_with_the_user():
    found = turns(
        Message("assistant", [Text("a")]),
        Message("user", [Text("b")]),
        Message("user", [Text("  \n")]),
        Message("user", [Text("c")]),
        Message("assistant", [Text("")]),
    )
    assert found == [
        {"role": "user", "content": [{"text": OPENING}]},
        {"role": "assistant", "content": [{"text": "a"}]},
        {"role": "user", "content": [{"text": "b"}, {"text": "c"}]},
    ]


def test_a_conversation_of_nothing_still_asks_something():
    assert turns() == [{"role": "user", "content": [{"text": OPENING}]}]


def test_results_come_first_with_their_marks_and_a_failed_one_says_so():
    call = Message("assistant", [ToolCall("c", "weather", "{}")])
    failed = ToolResult("c", [Text("boom"), Image("image/png", "eA==")], is_error=True, cache_control=CACHED)
    found = turns(Message("user", [Text("?")]), call, Message("user", [Text("and?"), failed]))[2]["content"]
    image = {"image": {"format": "png", "source": {"bytes": "eA=="}}}
    result = {"toolUseId": "c", "content": [{"text": "boom"}, image], "status": "error"}
    assert found == [{"toolResult": result}, POINT, {"text": "and?"}]


def test_ids_and_names_keep_to_what_aws_takes_and_stay_equal():
    call = ToolCall("call|" + "x" * 80, "mein.werkzeug/" + "n" * 80, "{}")
    found = turns(Message("assistant", [call]), Message("user", [ToolResult(call.id, [Text("ok")])]))
    use, result = found[1]["content"][0]["toolUse"], found[2]["content"][0]["toolResult"]
    assert use["toolUseId"] == result["toolUseId"]
    assert all(0 < len(use[name]) <= 64 and use[name].replace("_", "").isalnum() for name in ("toolUseId", "name"))


@pytest.mark.parametrize(
    ("arguments", "given"), [('{"a":1}', {"a": 1}), ("", {}), ("[1]", {"_raw": "[1]"}), ("{", {"_raw": "{"})]
)
def test_input_is_always_an_object(arguments, given):
    found = turns(Message("assistant", [ToolCall("c", "f", arguments)]))
    assert found[1]["content"][0]["toolUse"]["input"] == given


def test_signed_thinking_goes_back_and_unsigned_does_not():
    parts = [Thinking("a", signature="sig"), Thinking(redacted="eHg="), Thinking("b"), Text("so")]
    said = Message("assistant", parts)
    assert turns(said)[1]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "a", "signature": "sig"}}},
        {"reasoningContent": {"redactedContent": "eHg="}},
        {"text": "so"},
    ]
    assert turns(said, model=LLAMA)[1]["content"] == [{"text": "so"}]


def test_white_space_at_the_end_of_a_prefill_goes():
    assert turns(Message("user", [Text("hi")]), Message("assistant", [Text("I say: ")]))[1]["content"] == [
        {"text": "I say:"}
    ]


def test_what_is_to_be_cached_gets_a_mark_behind_it():
    parts = [Text("long", CACHED), Image("image/png", "eA==", cache_control={"type": "ephemeral", "ttl": "1h"})]
    found = content(*parts)
    assert [found[1], found[3]] == [POINT, {"cachePoint": {"type": "default", "ttl": "1h"}}]
    assert content(*parts, model=NOVA)[1] == POINT


@pytest.mark.parametrize("model", [OLD_CLAUDE, LLAMA])
def test_a_model_without_cache_gets_no_marks(model):
    assert content(Text("long", CACHED), model=model) == [{"text": "long"}]


@pytest.mark.parametrize(
    ("media_type", "kind"), [("image/png", "png"), ("image/JPEG", "jpeg"), ("image/jpg", "jpeg"), (None, "png")]
)
def test_images_are_sent_inline(media_type, kind):
    assert content(Image(media_type, "eA=="))[0] == {"image": {"format": kind, "source": {"bytes": "eA=="}}}


def test_sounds_are_sent_inline():
    assert content(Audio("eA==", "wav"))[0] == {"audio": {"format": "wav", "source": {"bytes": "eA=="}}}


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        (File("application/pdf", "eA=="), "pdf"),
        (File(None, "eA==", name="table.CSV"), "csv"),
        (File(None, "eA=="), "pdf"),
        (File("application/octet-stream", "eA==", name="letter.docx"), "docx"),
        (File("text/markdown; charset=utf-8", "eA=="), "md"),
        (File("text/x-python", "eA==", name="a.py"), "txt"),
        (File("text/plain", "eA==", name="a.csv"), "csv"),
        (File("application/json", "e30="), "txt"),
    ],
)
def test_formats_of_documents(file, kind):
    assert content(file, Text("?"))[0]["document"]["format"] == kind


def test_documents_have_names_that_aws_takes_and_that_differ():
    files = [
        File(text="a", name=name) for name in ("Ünser_Bericht  (1).v2.txt", "../../etc/passwd", "passwd", None, "§§")
    ]
    found = [block["document"] for block in content(*files, Text("?")) if "document" in block]
    assert [document["name"] for document in found] == [
        "nser Bericht (1) v2 txt",
        "passwd",
        "passwd (2)",
        "document",
        "document (2)",
    ]
    assert found[0]["source"] == {"bytes": base64.b64encode(b"a").decode()}


def test_a_document_never_stands_alone():
    assert content(File(text="a"))[1] == {"text": SEE_DOCUMENT}
    assert len(content(File(text="a"), Text("?"))) == 2


@pytest.mark.parametrize("choice", [None, ToolChoice("none")])
def test_earlier_calls_are_told_as_text_when_no_tool_may_be_called(choice):
    history = [
        Message("user", [Text("?")]),
        Message("assistant", [ToolCall("c", "weather", '{"city":"Oslo"}')]),
        Message("user", [ToolResult("c", [Text("5 C")]), ToolResult("d", [], is_error=True), Text("So?")]),
    ]
    tools = [tool()] if choice else []
    body = written(ChatRequest(messages=history, tools=tools, tool_choice=choice))
    assert "toolConfig" not in body
    assert body["messages"][1:] == [
        {"role": "assistant", "content": [{"text": '[Called the tool weather with {"city":"Oslo"}]'}]},
        {
            "role": "user",
            "content": [
                {"text": "[The tool weather gave:]"},
                {"text": "5 C"},
                {"text": "[The tool d failed:]"},
                {"text": NO_OUTPUT},
                {"text": "So?"},
            ],
        },
    ]


@pytest.mark.parametrize(
    ("part", "named"),
    [
        (Image(url="https://x/y.png"), "image by URL"),
        (Image("image/tiff", "eA=="), "image/tiff"),
        (File(url="s3://bucket/secret"), "file by URL"),
        (File(file_id="file-1"), "another provider's id"),
        (File("application/zip", "eA=="), "application/zip"),
        (File("application/pdf", ""), "empty file"),
        (Audio("eA==", "midi"), "midi"),
        (Foreign("anthropic", "search_result", {}), "search_result"),
        (ToolResult("c", [Foreign("anthropic", "web_page", {})]), "web_page"),
    ],
)
def test_what_cannot_be_said_is_refused_by_name(part, named):
    with pytest.raises(BadRequest, match=named) as refusal:
        content(part)
    assert refusal.value.param == "messages"
