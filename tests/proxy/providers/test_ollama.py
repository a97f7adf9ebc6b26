"""Requests to Ollama, its errors and its whole answers."""

import json
import re

import pytest

from proxy.canonical import (
    Audio,
    ChatRequest,
    ChatResponse,
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
    Usage,
)
from proxy.context import Call, ProviderReply, ProviderTarget
from proxy.errors import BadRequest, UpstreamFault
from proxy.providers.base import adapter_for
from proxy.providers.ollama import OllamaAdapter

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


def target(base_url: str = "http://127.0.0.1:11434", **members) -> ProviderTarget:
    return ProviderTarget(provider="local", kind="ollama", model="llama3", base_url=base_url, **members)


def call_of(request: ChatRequest, **members) -> Call:
    return Call(dialect="openai", body={}, model="m", canonical=request, **members)


def sent(request: ChatRequest, **members) -> dict:
    return json.loads(OllamaAdapter().build_request(call_of(request, **members), target()).body)


def asked(*parts, **members) -> dict:
    return sent(ChatRequest(messages=[Message("user", list(parts) or [Text("hi")])], **members))


def reply(document, status: int = 200) -> ProviderReply:
    return ProviderReply(status, {}, document if isinstance(document, bytes) else json.dumps(document).encode())


def answer(message: dict, **members) -> dict:
    said = {"role": "assistant", "content": ""} | message
    return {"model": "llama3", "created_at": "2025-01-01T00:00:00Z", "message": said, "done": True} | members


def response_of(document) -> ChatResponse:
    response = OllamaAdapter().parse_response(call_of(ChatRequest(messages=[])), reply(document))
    assert isinstance(response, ChatResponse)
    return response


def test_it_is_found_by_its_kind_and_speaks_no_clients_dialect():
    adapter = adapter_for("ollama")
    assert (adapter.dialects, adapter.default_base_url) == (frozenset(), "http://127.0.0.1:11434")


# ---------------------------------------------------------------- requests


@pytest.mark.parametrize("base_url", ["http://x:1", "http://x:1/", "http://x:1/v1", "http://x:1/api"])
def test_the_address(base_url):
    request = OllamaAdapter().build_request(call_of(ChatRequest(messages=[])), target(base_url))
    assert request.url == "http://x:1/api/chat"


def test_a_secret_is_sent_only_when_there_is_one():
    call = call_of(ChatRequest(messages=[]))
    assert OllamaAdapter().build_request(call, target()).headers == {"content-type": "application/json"}
    headers = OllamaAdapter().build_request(call, target(secret="s3", headers={"x-team": "a"})).headers
    assert (headers["authorization"], headers["x-team"]) == ("Bearer s3", "a")


@pytest.mark.parametrize("stream", [True, False])
def test_the_simplest_request_says_whether_to_stream(stream):
    assert sent(ChatRequest(messages=[Message("user", [Text("hi")])]), stream=stream) == {
        "model": "llama3",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": stream,
    }


def test_options():
    body = asked(
        max_tokens=9,
        temperature=0.5,
        top_p=0.9,
        top_k=40,
        seed=7,
        stop=["END"],
        frequency_penalty=0.1,
        presence_penalty=0.2,
        user="u",
    )
    assert body["options"] == {
        "num_predict": 9,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 40,
        "seed": 7,
        "stop": ["END"],
        "frequency_penalty": 0.1,
        "presence_penalty": 0.2,
    }
    assert body.keys() == {"model", "messages", "stream", "options"}


def test_the_gateways_own_limit_is_sent_when_the_client_named_none():
    assert sent(ChatRequest(messages=[]), output_cap=77)["options"] == {"num_predict": 77}


def test_a_conversation_with_tools():
    messages = [
        Message("user", [Text("Weather?"), Image(data="iV"), Text("Here.")]),
        Message("assistant", [Thinking(text="hm"), Text("Let me look."), ToolCall("c1", "weather", '{"city":"Oslo"}')]),
        Message("user", [ToolResult("c1", [Text("5 C"), Image(data="R0")]), Text("Summarise")]),
        Message("assistant", [ToolCall("c2", "time"), ToolCall("c3", "time", "[1]")]),
        Message("user", [ToolResult("c2"), ToolResult("x", [Text("?")], name="other")]),
    ]
    assert sent(ChatRequest(messages=messages, system=[Text("Be brief."), Text("Rhyme.")]))["messages"] == [
        {"role": "system", "content": "Be brief.\n\nRhyme."},
        {"role": "user", "content": "Weather?\nHere.", "images": ["iV"]},
        {
            "role": "assistant",
            "content": "Let me look.",
            "thinking": "hm",
            "tool_calls": [{"id": "c1", "function": {"name": "weather", "arguments": {"city": "Oslo"}}}],
        },
        {"role": "tool", "content": "5 C", "tool_name": "weather", "tool_call_id": "c1"},
        {"role": "user", "content": "Summarise", "images": ["R0"]},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": "c2", "function": {"name": "time", "arguments": {}}},
                {"id": "c3", "function": {"name": "time", "arguments": {"_raw": "[1]"}}},
            ],
        },
        {"role": "tool", "content": "", "tool_name": "time", "tool_call_id": "c2"},
        {"role": "tool", "content": "?", "tool_name": "other", "tool_call_id": "x"},
    ]


def test_a_text_file_is_said_with_its_name():
    assert asked(File(text="words", name="a.txt"), File(text="more"))["messages"] == [
        {"role": "user", "content": "a.txt\n\nwords\nmore"}
    ]


@pytest.mark.parametrize(
    ("part", "named"),
    [
        (Image(url="https://x/y.png"), "an image that is not inline"),
        (File(data="JV", media_type="application/pdf"), "'file'"),
        (Audio("UklG", "wav"), "'audio'"),
        (Foreign("anthropic", "server_tool_use", {}), "'server_tool_use'"),
        (ToolResult("c", [Image(url="https://x")]), "an image that is not inline"),
    ],
)
def test_what_ollama_cannot_be_sent_is_refused_by_name(part, named):
    with pytest.raises(BadRequest, match=re.escape(named)) as caught:
        asked(part)
    assert caught.value.param == "messages"


@pytest.mark.parametrize("part", [Image(data="iV"), ToolResult("c"), Foreign("anthropic", "image", {})])
def test_what_no_assistant_can_have_said_is_refused_by_name(part):
    with pytest.raises(BadRequest, match=r"block of type '(image|toolresult)'"):
        sent(ChatRequest(messages=[Message("assistant", [part])]))


def test_a_tool_of_another_provider_is_refused_by_name():
    with pytest.raises(BadRequest, match="web_search") as caught:
        asked(foreign_tools=[Foreign("anthropic", "web_search", {})])
    assert caught.value.param == "tools"


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (None, ["f", "g"]),
        (ToolChoice("auto"), ["f", "g"]),
        (ToolChoice("required"), ["f", "g"]),
        (ToolChoice("tool", "g"), ["g"]),
        (ToolChoice("none"), None),
    ],
)
def test_the_tools_offered_follow_the_choice(choice, names):
    body = asked(tools=[Tool("f", "d", SCHEMA), Tool("g")], tool_choice=choice)
    assert (names is None) == ("tools" not in body)
    assert [tool["function"]["name"] for tool in body.get("tools", [])] == (names or [])


def test_tools_have_openais_form():
    assert asked(tools=[Tool("f", "d", SCHEMA, True), Tool("g")])["tools"] == [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}},
        {"type": "function", "function": {"name": "g", "parameters": {"type": "object", "properties": {}}}},
    ]


@pytest.mark.parametrize(
    ("wanted", "written"),
    [
        (ResponseFormat("text"), None),
        (ResponseFormat("json_object"), "json"),
        (ResponseFormat("json_schema", schema=SCHEMA), SCHEMA),
        (ResponseFormat("json_schema"), "json"),
    ],
)
def test_the_format_of_the_answer(wanted, written):
    assert asked(response_format=wanted).get("format") == written


@pytest.mark.parametrize(
    ("members", "think"),
    [
        ({}, None),
        ({"reasoning_effort": "none"}, False),
        ({"reasoning_effort": "minimal"}, "low"),
        ({"reasoning_effort": "medium"}, "medium"),
        ({"reasoning_effort": "xhigh"}, "high"),
        ({"reasoning_effort": "odd"}, None),
        ({"thinking_budget": 2048}, True),
    ],
)
def test_thinking(members, think):
    body = asked(**members)
    assert (body.get("think"), "think" in body) == (think, think is not None)


# ---------------------------------------------------------------- answers


def test_an_answer_in_canonical_form():
    call = {"id": "call_2k7", "function": {"index": 0, "name": "f", "arguments": {"a": "é"}}}
    message = {"content": "Let me look.", "thinking": "hm", "tool_calls": [call]}
    document = answer(message, done_reason="stop", prompt_eval_count=310, eval_count=145)
    assert response_of(document) == ChatResponse(
        model="llama3",
        parts=[Thinking(text="hm"), Text("Let me look."), ToolCall("call_2k7", "f", '{"a":"é"}')],
        finish_reason="tool_calls",
        native_finish="stop",
        usage=Usage(input_tokens=310, output_tokens=145),
    )


def test_calls_without_ids_get_distinct_ones_that_never_come_again():
    nameless = {"function": {"name": "f", "arguments": {}}}
    document = answer({"tool_calls": [nameless, nameless]})
    ids = [part.id for _ in range(2) for part in response_of(document).parts]
    assert len(set(ids)) == 4
    assert all(re.fullmatch("[a-zA-Z0-9_-]+", call_id) for call_id in ids)


@pytest.mark.parametrize(
    ("reason", "finish"), [("stop", "stop"), ("length", "length"), ("load", "stop"), (None, "stop")]
)
def test_how_it_finished(reason, finish):
    response = response_of(answer({"content": "a"}, **({"done_reason": reason} if reason else {})))
    assert (response.finish_reason, response.native_finish) == (finish, reason)


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ({"prompt_eval_count": 3, "eval_count": 4}, Usage(input_tokens=3, output_tokens=4)),
        ({"eval_count": 4}, Usage(output_tokens=4)),
        ({"prompt_eval_count": 3}, Usage(input_tokens=3)),
        ({}, None),
        ({"prompt_eval_count": -3, "eval_count": 4}, None),
        ({"prompt_eval_count": 3, "eval_count": "4"}, None),
        ({"prompt_eval_count": 3, "eval_count": 1 << 60}, None),
    ],
)
def test_usage_of_which_either_count_may_be_missing(counts, usage):
    assert response_of(answer({"content": "a"}, **counts)).usage == usage


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>hello</html>",
        b'{"model":"llama3","mess',
        b"[]",
        {},
        {"message": "text", "done": True},
        answer({"content": "half"}, done=False),
        answer({"tool_calls": [{"function": {"arguments": {}}}]}),
        answer({"tool_calls": ["f"]}),
        b"[" * 100_000,
    ],
)
def test_what_is_no_answer_is_a_fault(body):
    with pytest.raises(UpstreamFault) as caught:
        response_of(body)
    assert (caught.value.kind, caught.value.status) == ("protocol", 200)


def test_an_error_with_status_200_is_a_failure_of_the_provider():
    with pytest.raises(UpstreamFault, match="out of memory") as caught:
        response_of({"error": "out of memory"})
    assert caught.value.kind == "server"


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (404, {"error": "model 'x' not found"}, "not_found", "model 'x' not found"),
        (400, {"error": 'model "x" not found, try pulling it first'}, "not_found", None),
        (400, {"error": '"llama3" does not support tools'}, "request", '"llama3" does not support tools'),
        (401, {"error": "unauthorized"}, "credential", "unauthorized"),
        (500, {"error": "llama runner process has terminated"}, "server", None),
        (503, {"error": "server busy, please try again"}, "server", None),
        (502, {"error": {"message": "a proxy's"}}, "server", "a proxy's"),
        (502, b"<html>Bad Gateway</html>", "server", ""),
        (502, b"plain words", "server", "plain words"),
        (500, b"", "server", ""),
        (500, [1], "server", ""),
    ],
)
def test_errors(status, body, kind, message):
    fault = OllamaAdapter().parse_error(reply(body, status))
    assert (fault.kind, fault.status) == (kind, status)
    if message is not None:
        assert fault.message == message


def test_a_prompt_that_is_too_long_has_a_code_of_its_own():
    fault = OllamaAdapter().parse_error(reply({"error": "the input length exceeds the context length"}, 400))
    assert (fault.kind, fault.code) == ("request", "context_length_exceeded")
