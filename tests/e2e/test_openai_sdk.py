"""The official OpenAI client, unmodified: only base_url and key differ from talking to the provider."""

from __future__ import annotations

import base64
import json
import threading
import time
from typing import Any

import httpx2
import openai
import pytest

from tests.e2e.conftest import Stage
from tests.fakes.provider import Reply, anthropic_answer, anthropic_stream, openai_answer, openai_stream

pytestmark = pytest.mark.slow

ASK: list[Any] = [{"role": "user", "content": "How is the weather?"}]
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CALL = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 40).decode()


class Counting(httpx2.HTTPTransport):
    count = 0

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.count += 1
        return super().handle_request(request)


def client(stage: Stage, key: str | None = None, transport: Counting | None = None, **options: Any) -> openai.OpenAI:
    made = openai.OpenAI(
        api_key=key or stage.key,
        base_url=stage.gateway.url + "/v1",
        http_client=httpx2.Client(transport=transport or Counting(), trust_env=False),
        **options,
    )
    stage.clients.append(made)
    return made


@pytest.mark.parametrize("model", ["gpt", "claude"])
def test_a_chat_is_answered_with_usage(stage: Stage, model: str) -> None:
    answer = client(stage).chat.completions.create(model=model, messages=ASK, max_tokens=50)
    assert answer.choices[0].message.content == "ok"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (10, 5)


@pytest.mark.parametrize("model", ["gpt", "claude"])
def test_a_stream_arrives_piece_by_piece(stage: Stage, model: str) -> None:
    stage.openai.always = openai_stream([{"role": "assistant", "content": ""}, {"content": "one "}, {"content": "two"}])
    stage.anthropic.always = anthropic_stream(["one ", "two"])
    stream = client(stage).chat.completions.create(
        model=model, messages=ASK, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    texts = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert texts == ["one ", "two"]
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 15


@pytest.mark.parametrize("model", ["gpt", "claude"])
def test_a_tool_call_and_its_result_go_round(stage: Stage, model: str) -> None:
    stage.openai.queue(openai_answer("", tool_calls=[CALL]))
    use = {"type": "tool_use", "id": "call_1", "name": "get_weather", "input": {"city": "Oslo"}}
    stage.anthropic.queue(anthropic_answer(use, stop="tool_use"))
    message = client(stage).chat.completions.create(model=model, messages=ASK, tools=[TOOL]).choices[0].message
    assert message.tool_calls is not None
    call = message.tool_calls[0]
    assert call.type == "function"
    assert json.loads(call.function.arguments) == {"city": "Oslo"}
    history = [*ASK, message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": "5 C"}]
    again = client(stage).chat.completions.create(model=model, messages=history, tools=[TOOL])
    assert again.choices[0].message.content == "ok"
    provider = stage.openai if model == "gpt" else stage.anthropic
    assert "5 C" in json.dumps(provider.requests[-1].json)


def test_a_streamed_tool_call_is_put_together(stage: Stage) -> None:
    start = {**CALL, "index": 0, "function": {"name": "get_weather", "arguments": ""}}
    parts = [{"tool_calls": [{"index": 0, "function": {"arguments": text}}]} for text in ('{"city":', ' "Oslo"}')]
    stage.openai.always = openai_stream([{"role": "assistant", "tool_calls": [start]}, *parts], finish="tool_calls")
    with client(stage).chat.completions.stream(model="gpt", messages=ASK, tools=[TOOL]) as stream:
        message = stream.get_final_completion().choices[0].message
    assert message.tool_calls is not None
    assert json.loads(message.tool_calls[0].function.arguments) == {"city": "Oslo"}


@pytest.mark.parametrize("model", ["gpt", "claude"])
def test_an_inline_image_reaches_the_provider(stage: Stage, model: str) -> None:
    content = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
    ]
    messages: Any = [{"role": "user", "content": content}]
    client(stage).chat.completions.create(model=model, messages=messages)
    provider = stage.openai if model == "gpt" else stage.anthropic
    assert PIXEL in json.dumps(provider.requests[-1].json)


def test_a_wrong_key_is_an_authentication_error(stage: Stage) -> None:
    with pytest.raises(openai.AuthenticationError) as caught:
        client(stage, key="no-such-key-0123456789-abcdef").chat.completions.create(model="gpt", messages=ASK)
    assert caught.value.code == "invalid_api_key"
    assert not stage.openai.requests


def test_an_unknown_model_is_not_found_and_a_forbidden_one_denied(stage: Stage) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        client(stage).chat.completions.create(model="nope", messages=ASK)
    with pytest.raises(openai.PermissionDeniedError) as denied:
        client(stage).chat.completions.create(model="private", messages=ASK)
    assert (missing.value.code, denied.value.code) == ("model_not_found", "model_not_allowed")


def test_a_spent_budget_is_refused_once_and_not_retried(stage: Stage) -> None:
    transport = Counting()
    key = stage.gateway.create_key("poor", "openai-402")["secret"]
    with pytest.raises(openai.APIStatusError) as caught:
        client(stage, key, transport).chat.completions.create(model="gpt", messages=ASK, max_tokens=100)
    assert caught.value.status_code == 402
    assert caught.value.code == "budget_exceeded"
    assert transport.count == 1
    assert not stage.openai.requests


def test_a_limit_is_waited_out_by_retry_after(stage: Stage) -> None:
    key = stage.gateway.create_key("queue", "openai-429")["secret"]
    slow = openai_answer("slow")
    slow.delay = 0.8
    stage.openai.queue(slow)
    first = threading.Thread(
        target=lambda: client(stage, key, max_retries=0).chat.completions.create(model="gpt", messages=ASK)
    )
    first.start()
    while not stage.openai.requests:
        time.sleep(0.01)
    transport = Counting()
    answer = client(stage, key, transport, max_retries=5).chat.completions.create(model="gpt", messages=ASK)
    first.join()
    assert answer.choices[0].message.content == "ok"
    assert transport.count >= 2
    assert len(stage.openai.requests) == 2


def test_a_stream_cut_after_content_is_an_error_and_never_a_whole_answer(stage: Stage) -> None:
    stage.openai.always = openai_stream([{"content": "one "}, {"content": "two "}], cut=True)
    with pytest.raises(openai.APIError):
        list(client(stage, max_retries=0).chat.completions.create(model="gpt", messages=ASK, stream=True))


def test_a_provider_error_is_told_without_its_internals(stage: Stage) -> None:
    stage.openai.always = Reply(status=500, body=b"<html>secret.internal stack trace</html>")
    with pytest.raises(openai.InternalServerError) as caught:
        client(stage, max_retries=0).chat.completions.create(model="gpt", messages=ASK)
    assert caught.value.status_code == 502
    assert caught.value.code == "upstream_error"
    assert "secret.internal" not in str(caught.value.body)
