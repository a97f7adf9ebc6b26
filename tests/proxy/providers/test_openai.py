"""The OpenAI adapter and its relatives: requests, whole answers, usage."""

import json

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
from proxy.context import OPENAI, TOLLBAR, Call, ProviderReply, ProviderTarget
from proxy.errors import BadRequest, UpstreamFault
from proxy.openai_format.answer import read_usage
from proxy.providers.base import adapter_for

USER = {"role": "user", "content": "hello"}


def target(kind: str = "openai", **changes) -> ProviderTarget:
    return ProviderTarget(
        **(
            {"provider": "main", "kind": kind, "model": "gpt-x", "base_url": "https://llm.example/v1", "secret": "s3"}
            | changes
        )
    )


def own(**members) -> Call:
    body = {"model": "smart", "messages": [USER]} | members
    return Call(dialect=OPENAI, body=body, model="smart", stream=body.get("stream", False))


def sent(call: Call, kind: str = "openai", **changes) -> dict:
    return json.loads(adapter_for(kind).build_request(call, target(kind, **changes)).body)


def translated(kind: str = "openai", *, stream: bool = False, **members) -> dict:
    members.setdefault("messages", [Message("user", [Text("hello")])])
    call = Call(dialect=TOLLBAR, body={}, model="smart", stream=stream, canonical=ChatRequest(**members))
    return sent(call, kind)


# ---------------------------------------------------------------- requests of the same dialect


def test_the_clients_own_body_is_forwarded_with_the_targets_model():
    call = own(temperature=0.5, x_vendor={"a": [1]}, seed=1 << 70)
    assert sent(call) == {
        "model": "gpt-x",
        "messages": [USER],
        "temperature": 0.5,
        "x_vendor": {"a": [1]},
        "seed": 1 << 70,
    }
    assert call.body["model"] == "smart", "the client's body stays as it is"


def test_address_and_headers():
    request = adapter_for("openai").build_request(
        own(), target(base_url="https://llm.example/v1/", headers={"x-team": "a"})
    )
    assert request.url == "https://llm.example/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer s3"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["x-team"] == "a"


def test_a_provider_without_a_key_gets_no_authorization():
    request = adapter_for("openai_compatible").build_request(own(), target(secret=""))
    assert "authorization" not in request.headers


def test_usage_is_always_asked_for_in_a_stream():
    assert sent(own(stream=True))["stream_options"] == {"include_usage": True}
    options = {"include_usage": False, "include_obfuscation": False}
    assert sent(own(stream=True, stream_options=options))["stream_options"] == options | {"include_usage": True}
    assert "stream_options" not in sent(own())


@pytest.mark.parametrize(("kind", "member"), [("openai", "max_completion_tokens"), ("openai_compatible", "max_tokens")])
def test_the_gateways_own_output_cap_goes_in_only_when_the_client_named_none(kind, member):
    call = own()
    call.output_cap = 500
    assert sent(call, kind)[member] == 500
    named = own(max_tokens=7)
    named.output_cap = 500
    assert {name: value for name, value in sent(named, kind).items() if "max" in name} == {"max_tokens": 7}


def test_thinking_that_came_from_elsewhere_is_not_shown_to_openai():
    extra = {"tollbar": {"thinking": [{"text": "t", "signature": "s"}]}, "google": {"thought_signature": "g"}}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": extra}
    assistant = {
        "role": "assistant",
        "content": "a",
        "reasoning_content": "t",
        "extra_content": extra,
        "tool_calls": [call],
    }
    bare = {name: value for name, value in call.items() if name != "extra_content"}
    kept = {"google": {"thought_signature": "g"}}
    assert sent(own(messages=[USER, assistant]))["messages"] == [
        USER,
        {"role": "assistant", "content": "a", "tool_calls": [bare]},
    ]
    assert sent(own(messages=[USER, assistant]), "openai_compatible")["messages"][1] == assistant | {
        "extra_content": kept,
        "tool_calls": [bare | {"extra_content": kept}],
    }


# ---------------------------------------------------------------- requests of other dialects


def test_a_translated_request():
    body = translated(
        system=[Text("Be brief."), Text("Be kind.")],
        max_tokens=50,
        temperature=0.5,
        stop=["x"],
        seed=3,
        user="u",
        top_k=5,
        thinking_budget=1000,
        tools=[Tool("f", description="d", parameters={"type": "object"}), Tool("g")],
        tool_choice=ToolChoice("tool", "f"),
        parallel_tool_calls=False,
        response_format=ResponseFormat("json_schema", name="n", schema={"type": "object"}, strict=True),
        stream=True,
    )
    assert body == {
        "model": "gpt-x",
        "messages": [{"role": "system", "content": "Be brief.\n\nBe kind."}, USER],
        "max_completion_tokens": 50,
        "temperature": 0.5,
        "stop": ["x"],
        "seed": 3,
        "user": "u",
        "tools": [
            {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}},
            {"type": "function", "function": {"name": "g"}},
        ],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "parallel_tool_calls": False,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True},
        },
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_compatible_servers_get_max_tokens():
    assert translated("openai_compatible", max_tokens=50)["max_tokens"] == 50


def test_tool_calls_and_their_results():
    image = Image(media_type="image/png", data="aGk=")
    messages = [
        Message("user", [Text("go")]),
        Message("assistant", [Thinking("hm", "sig"), Text("Let me"), Text(" look."), ToolCall("a", "f", '{"x":1}')]),
        Message("user", [ToolResult("a", [Text("one"), image, Text("two")]), Text("and?")]),
        Message("assistant", [ToolCall("b", "g")]),
        Message("user", [ToolResult("b")]),
    ]
    assert translated(messages=messages)["messages"] == [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "one\ntwo"},
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
                {"type": "text", "text": "and?"},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "b", "content": ""},
    ]


def test_content_of_other_kinds():
    parts = [
        Image(url="https://example.com/a.png", detail="low"),
        Audio("aGk=", "wav"),
        File(media_type="application/pdf", data="aGk=", name="a.pdf"),
        File(file_id="file-1"),
        File(text="plain", name="a.txt"),
    ]
    assert translated(messages=[Message("user", parts)])["messages"][0]["content"] == [
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "text", "text": "a.txt\n\nplain"},
    ]


@pytest.mark.parametrize(
    ("members", "named"),
    [
        ({"messages": [Message("user", [Foreign("anthropic", "search_result", {})])]}, "search_result"),
        ({"messages": [Message("assistant", [Foreign("anthropic", "server_tool_use", {})])]}, "server_tool_use"),
        ({"messages": [Message("user", [File(url="https://example.com/a.pdf")])]}, "file by URL"),
        ({"foreign_tools": [Foreign("anthropic", "bash_20250124", {})]}, "bash_20250124"),
    ],
)
def test_what_cannot_be_said_is_refused_by_name(members, named):
    with pytest.raises(BadRequest, match=named):
        translated(**members)


# ---------------------------------------------------------------- whole answers


def answer(message: dict | None = None, finish: str = "stop", **members) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": "Grüße"} if message is None else message}
    document = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m-1"}
    document["choices"] = [choice | {"finish_reason": finish}]
    document["usage"] = {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14}
    return json.dumps(document | members).encode()


def read(body: bytes) -> ChatResponse:
    response = adapter_for("openai").parse_response(own(), ProviderReply(200, {}, body))
    assert isinstance(response, ChatResponse)
    return response


def handed_on(body: bytes):
    return adapter_for("openai").pass_through(own(), ProviderReply(200, {}, body))


def test_an_answer_is_handed_on_byte_for_byte():
    body = b"\n\n  " + answer(x_vendor=1.50)
    passed = handed_on(body)
    assert passed.body == body
    assert (passed.usage, passed.finish_reason) == (Usage(input_tokens=10, output_tokens=4), "stop")


def test_an_answer_without_usage_is_counted():
    call = {"id": "c", "type": "function", "function": {"name": "ff", "arguments": "{}"}}
    passed = handed_on(answer({"content": "abc", "reasoning_content": "de", "tool_calls": [call]}, usage=None))
    assert (passed.usage, passed.produced_chars) == (None, len("abc" + "de" + "ff" + "{}"))


def test_an_answer_in_canonical_form():
    message = {
        "content": "Grüße",
        "reasoning": "hm",
        "tool_calls": [
            {
                "id": "c",
                "type": "function",
                "function": {"name": "f", "arguments": '{"a":1}'},
                "extra_content": {"google": {"thought_signature": "sig"}},
            },
            {"id": "", "function": {"name": "g", "arguments": {"b": 2}}},
        ],
    }
    response = read(answer(message, "stop"))
    thinking, text, first, second = response.parts
    assert (thinking, text, first) == (Thinking("hm"), Text("Grüße"), ToolCall("c", "f", '{"a":1}', "sig"))
    assert (second.name, second.arguments) == ("g", '{"b":2}')
    assert second.id
    assert (response.finish_reason, response.native_finish) == ("tool_calls", "stop")
    assert (response.id, response.model, response.usage) == (
        "chatcmpl-1",
        "m-1",
        Usage(input_tokens=10, output_tokens=4),
    )


def test_content_in_parts_legacy_calls_refusals_and_filtered_answers():
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "a"}]
    assert read(answer({"content": parts})).parts == [Thinking("hm"), Text("a")]
    legacy = read(answer({"content": None, "function_call": {"name": "f", "arguments": "{}"}}, "function_call"))
    assert [part.name for part in legacy.parts] == ["f"]
    assert legacy.finish_reason == "tool_calls"
    assert read(answer({"content": None, "refusal": "no"})).refusal == "no"
    filtered = json.loads(answer(finish="content_filter"))
    del filtered["choices"][0]["message"]
    response = read(json.dumps(filtered).encode())
    assert (response.parts, response.finish_reason) == ([], "content_filter")


def test_signed_thinking_of_another_gateway_is_kept():
    extra = {"tollbar": {"thinking": [{"text": "t", "signature": "s"}, {"redacted": "r"}]}}
    response = read(answer({"content": "a", "reasoning_content": "t", "extra_content": extra}))
    assert response.parts == [Thinking("t", "s"), Thinking(redacted="r"), Text("a")]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "protocol"),
        (b"<html>hello</html>", "protocol"),
        (answer()[:-9], "protocol"),
        (b"[]", "protocol"),
        (b'{"choices": []}', "protocol"),
        (b'{"choices": "none"}', "protocol"),
        (b'{"error": {"message": "down"}}', "protocol"),
        (b'{"error": {"message": "down", "code": 502}}', "server"),
        (b'{"error": {"message": "slow", "code": "429"}}', "rate_limit"),
        (b'{"error": {"message": "slow", "type": "rate_limit_exceeded"}, "choices": null}', "rate_limit"),
        (b'{"error": {"message": "no", "code": 401}, "choices": 5}', "credential"),
    ],
)
def test_a_200_that_is_no_answer_is_a_fault(body, kind):
    for reader in (read, handed_on):
        with pytest.raises(UpstreamFault) as caught:
            reader(body)
        assert (caught.value.kind, caught.value.status) == (kind, 200)


# ---------------------------------------------------------------- usage


@pytest.mark.parametrize(
    ("source", "usage"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 4}, Usage(10, 4)),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 4,
                "total_tokens": 14,
                "prompt_tokens_details": {"cached_tokens": 6, "cache_write_tokens": 3},
                "completion_tokens_details": {"reasoning_tokens": 2},
            },
            Usage(10, 4, 6, 3, 0, 2),
        ),
        ({"prompt_tokens": 10, "completion_tokens": 4, "prompt_cache_hit_tokens": 5}, Usage(10, 4, 5)),
        ({"prompt_tokens": 66, "completion_tokens": 6, "total_tokens": 100}, Usage(66, 34, reasoning_tokens=28)),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 4,
                "total_tokens": 21,
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            Usage(10, 11, reasoning_tokens=7),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 99}},
            Usage(10, 4, 10),
        ),
        ({"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": None}, Usage(10, 4)),
        ({"prompt_tokens": None, "completion_tokens": None, "total_tokens": None}, None),
        ({"prompt_tokens": -1, "completion_tokens": 4}, None),
        ({"prompt_tokens": 1 << 63, "completion_tokens": 4}, None),
        ({"prompt_tokens": True, "completion_tokens": 4}, None),
        ({"prompt_tokens": 10.5, "completion_tokens": 4}, None),
        ({"prompt_tokens": "ten", "completion_tokens": 4}, None),
        ("free", None),
        (None, None),
    ],
)
def test_usage_has_one_meaning(source, usage):
    assert read_usage(source) == usage
