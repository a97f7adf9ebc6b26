"""Conversations of other dialects as the contents Gemini takes."""

import pytest

from proxy.canonical import (
    GEMINI_SIGNED,
    Audio,
    File,
    Foreign,
    Image,
    Message,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
)
from proxy.context import Call, ProviderTarget
from proxy.dialects.anthropic import AnthropicDialect
from proxy.dialects.openai import OpenAIDialect
from proxy.errors import BadRequest
from proxy.gemini_format.turns import NO_SIGNATURE, OPENING
from proxy.providers.anthropic import AnthropicAdapter
from tests.proxy.gemini_wire import FLASH_3, FLASH_25, asked, sent, turns

ASK = Message("user", [Text("hi")])


def parts_of(*parts) -> list[dict]:
    return asked(*parts)["contents"][0]["parts"]


def from_dialect(dialect, *messages: dict, model: str = FLASH_25, **members) -> list[dict]:
    call = dialect.parse_call({"model": "m", "messages": list(messages), "max_tokens": 9} | members)
    return sent(dialect.canonical(call), model)["contents"]


def refused(*parts) -> str:
    with pytest.raises(BadRequest) as caught:
        asked(*parts)
    assert caught.value.param == "messages"
    return caught.value.message


# ---------------------------------------------------------------- the order of turns


def test_roles_alternate_and_empty_turns_are_left_out():
    history = turns(
        Message("user", [Text("a")]),
        Message("user", [Text("b")]),
        Message("assistant", []),
        Message("assistant", [Text("")]),
        Message("user", [Text("c")]),
        Message("assistant", [Text("d")]),
        Message("assistant", [Text("e")]),
    )
    assert history == [
        {"role": "user", "parts": [{"text": "a"}, {"text": "b"}, {"text": "c"}]},
        {"role": "model", "parts": [{"text": "d"}, {"text": "e"}]},
    ]


@pytest.mark.parametrize("messages", [[], [Message("user", [])], [Message("assistant", [Text("x")])]])
def test_the_first_turn_is_always_the_users(messages):
    first = turns(*messages)[0]
    assert first == {"role": "user", "parts": [{"text": OPENING}]}


# ---------------------------------------------------------------- calls and their results


def test_a_tool_loop_of_openai_names_each_result_by_its_call():
    calls = [
        {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}},
        {"id": "call_2", "type": "function", "function": {"name": "now", "arguments": ""}},
    ]
    history = from_dialect(
        OpenAIDialect(),
        {"role": "user", "content": "Weather and time?"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "call_2", "content": "noon"},
        {"role": "tool", "tool_call_id": "call_1", "content": "5 degrees"},
        {"role": "user", "content": "And?"},
    )
    assert history[1:] == [
        {
            "role": "model",
            "parts": [
                {"functionCall": {"id": "call_1", "name": "weather", "args": {"city": "Oslo"}}},
                {"functionCall": {"id": "call_2", "name": "now", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "call_2", "name": "now", "response": {"output": "noon"}}},
                {"functionResponse": {"id": "call_1", "name": "weather", "response": {"output": "5 degrees"}}},
                {"text": "And?"},
            ],
        },
    ]


def test_results_come_before_what_the_user_says_and_before_their_own_images():
    image = Image("image/png", "aGk=")
    results = [Text("look"), ToolResult("1", [Text("a"), image, Text("b")]), ToolResult("2", [], is_error=True)]
    history = turns(ASK, Message("assistant", [ToolCall("1", "f"), ToolCall("2", "g")]), Message("user", results))
    assert history[2]["parts"] == [
        {"functionResponse": {"id": "1", "name": "f", "response": {"output": "a\nb"}}},
        {"functionResponse": {"id": "2", "name": "g", "response": {"error": ""}}},
        {"text": "look"},
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
    ]


def test_a_result_without_its_call_needs_a_name():
    response = parts_of(ToolResult("1", [Text("a")], name="f"))[0]["functionResponse"]
    assert response == {"id": "1", "name": "f", "response": {"output": "a"}}
    assert "'lost'" in refused(ToolResult("lost", [Text("a")]))


@pytest.mark.parametrize(
    ("arguments", "args"), [("", {}), (" ", {}), ("{}", {}), ("[1]", {"_raw": "[1]"}), ("{", {"_raw": "{"})]
)
def test_arguments_are_always_an_object(arguments, args):
    history = turns(ASK, Message("assistant", [ToolCall("1", "f", arguments)]))
    assert history[1]["parts"][0]["functionCall"]["args"] == args


def test_a_renamed_tool_has_its_new_name_in_call_and_result():
    history = turns(ASK, Message("assistant", [ToolCall("1", "a b")]), Message("user", [ToolResult("1", [Text("x")])]))
    name = asked(tools=[Tool("a b")])["tools"][0]["functionDeclarations"][0]["name"]
    assert history[1]["parts"][0]["functionCall"]["name"] == name
    assert history[2]["parts"][0]["functionResponse"]["name"] == name


# ---------------------------------------------------------------- signatures


def test_a_signature_of_a_call_goes_back_as_it_came():
    extra = {"tollbar": {"signature": "c2ln"}}
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": "1", "type": "function", "function": function, "extra_content": extra}]
    history = from_dialect(
        OpenAIDialect(),
        {"role": "user", "content": "hi"},
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "1", "content": "x"},
    )
    assert history[1]["parts"][0]["thoughtSignature"] == "c2ln"


def test_thinking_goes_back_where_gemini_signed_it():
    said = [
        Thinking("hm", GEMINI_SIGNED + "c2ln"),
        Thinking("unsigned"),
        Thinking("of Claude", "EqQBClaude"),
        Thinking(redacted="xx"),
        Text("a"),
        Thinking(signature=GEMINI_SIGNED + "dGV4dA=="),
    ]
    assert turns(ASK, Message("assistant", said))[1]["parts"] == [
        {"text": "hm", "thought": True, "thoughtSignature": "c2ln"},
        {"text": "a"},
        {"text": "", "thoughtSignature": "dGV4dA=="},
    ]


def test_claude_is_never_sent_what_gemini_signed():
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": GEMINI_SIGNED + "c2ln"},
        {"type": "thinking", "thinking": "own", "signature": "EqQBClaude"},
        {"type": "text", "text": "a"},
    ]
    dialect = AnthropicDialect()
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": blocks}]
    call = dialect.parse_call({"model": "m", "messages": messages, "max_tokens": 9})
    place = ProviderTarget(provider="p", kind="anthropic", model="claude-x", base_url="https://x")
    own = AnthropicAdapter().build_request(call, place).body
    call = Call(dialect="openai", body={}, model="m", canonical=dialect.canonical(call))
    translated = AnthropicAdapter().build_request(call, place).body
    for body in (own, translated):
        assert b"c2ln" not in body
        assert b"EqQBClaude" in body


def test_newer_models_get_googles_word_for_calls_that_nobody_signed():
    calls = Message("assistant", [ToolCall("1", "f"), ToolCall("2", "g")])
    signed = Message("assistant", [ToolCall("3", "f", signature="c2ln"), ToolCall("4", "g")])

    def signatures(model: str) -> list[str | None]:
        history = turns(ASK, calls, ASK, signed, model=model)
        found = [part for turn in history for part in turn["parts"] if "functionCall" in part]
        return [part.get("thoughtSignature") for part in found]

    assert signatures(FLASH_3) == [NO_SIGNATURE, None, "c2ln", None]
    assert signatures("gemini-flash-latest") == [NO_SIGNATURE, None, "c2ln", None]
    assert signatures(FLASH_25) == [None, None, "c2ln", None]


# ---------------------------------------------------------------- images, files, sound


@pytest.mark.parametrize(
    ("part", "written"),
    [
        (Image("image/jpeg", "aGk=", detail="high"), {"inlineData": {"mimeType": "image/jpeg", "data": "aGk="}}),
        (Image(data="aGk="), {"inlineData": {"mimeType": "image/png", "data": "aGk="}}),
        (
            Image(url="https://e.x/a.JPG?b=c.gif#d"),
            {"fileData": {"fileUri": "https://e.x/a.JPG?b=c.gif#d", "mimeType": "image/jpeg"}},
        ),
        (Image(url="https://e.x/a"), {"fileData": {"fileUri": "https://e.x/a"}}),
        (Image(url="gs://b/a.webp"), {"fileData": {"fileUri": "gs://b/a.webp", "mimeType": "image/webp"}}),
        (Image(url="https://[/a.png"), {"fileData": {"fileUri": "https://[/a.png", "mimeType": "image/png"}}),
        (Audio("aGk=", "WAV"), {"inlineData": {"mimeType": "audio/wav", "data": "aGk="}}),
        (File(data="aGk="), {"inlineData": {"mimeType": "application/pdf", "data": "aGk="}}),
        (File(data="aGk=", name="t.csv"), {"inlineData": {"mimeType": "text/csv", "data": "aGk="}}),
        (File("Text/Plain; charset=utf-8", "aGk="), {"inlineData": {"mimeType": "text/plain", "data": "aGk="}}),
        (File(text="body"), {"text": "body"}),
        (File(text="body", name="n.txt"), {"text": "n.txt\n\nbody"}),
        (
            File("application/pdf", url="https://e.x/a"),
            {"fileData": {"fileUri": "https://e.x/a", "mimeType": "application/pdf"}},
        ),
        (
            File("application/pdf", url="https://e.x/a.txt"),
            {"fileData": {"fileUri": "https://e.x/a.txt", "mimeType": "text/plain"}},
        ),
        (File(file_id="gs://b/a.pdf"), {"fileData": {"fileUri": "gs://b/a.pdf", "mimeType": "application/pdf"}}),
    ],
)
def test_media_as_parts(part, written):
    assert parts_of(part) == [written]


@pytest.mark.parametrize("file_id", ["files/abc-1", "https://generativelanguage.googleapis.com/v1beta/files/abc-1"])
def test_a_file_of_googles_own_is_named_by_its_address(file_id):
    uri = "https://generativelanguage.googleapis.com/v1beta/files/abc-1"
    assert parts_of(File(file_id=file_id)) == [{"fileData": {"fileUri": uri}}]


@pytest.mark.parametrize(
    ("part", "what"),
    [
        (Image(url="http://169.254.169.254/latest"), "an image by an address"),
        (File(url="http://e.x/a.pdf"), "a file by an address"),
        (Image(), "an image by another provider's file id"),
        (File(file_id="file-abc"), "a file by another provider's id"),
        (File(file_id="https://e.x/files/abc"), "a file by another provider's id"),
        (Audio("aGk=", "a/b"), "sound of this format"),
        (Foreign("anthropic", "server_tool_use", {}), "a block of type 'server_tool_use'"),
    ],
)
def test_what_cannot_be_said_is_refused_by_name(part, what):
    assert what in refused(part)
    assert what in refused(ToolResult("1", [part], name="f"))
