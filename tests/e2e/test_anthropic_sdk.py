"""The official Anthropic client, unmodified: only base_url and key differ from talking to the provider."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx2
import pytest

from tests.e2e.conftest import Stage
from tests.e2e.test_openai_sdk import CALL, PIXEL, Counting
from tests.fakes.provider import Reply, anthropic_answer, anthropic_stream, openai_answer, openai_stream

pytestmark = pytest.mark.slow

ASK: list[Any] = [{"role": "user", "content": "How is the weather?"}]
TOOL: Any = {
    "name": "get_weather",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def client(
    stage: Stage, key: str | None = None, transport: Counting | None = None, **options: Any
) -> anthropic.Anthropic:
    made = anthropic.Anthropic(
        api_key=key or stage.key,
        base_url=stage.gateway.url,
        http_client=httpx2.Client(transport=transport or Counting(), trust_env=False),
        **options,
    )
    stage.clients.append(made)
    return made


@pytest.mark.parametrize("model", ["claude", "gpt"])
def test_a_message_is_answered_with_usage(stage: Stage, model: str) -> None:
    message = client(stage).messages.create(model=model, messages=ASK, max_tokens=50, system="Be brief.")
    assert [block.text for block in message.content if block.type == "text"] == ["ok"]
    assert message.stop_reason == "end_turn"
    assert (message.usage.input_tokens, message.usage.output_tokens) == (10, 5)


@pytest.mark.parametrize("model", ["claude", "gpt"])
def test_a_stream_ends_with_the_final_message(stage: Stage, model: str) -> None:
    stage.anthropic.always = anthropic_stream(["one ", "two"])
    stage.openai.always = openai_stream([{"role": "assistant", "content": ""}, {"content": "one "}, {"content": "two"}])
    with client(stage).messages.stream(model=model, messages=ASK, max_tokens=50) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == "one two"
    assert final.stop_reason == "end_turn"
    assert final.usage.output_tokens == 5


@pytest.mark.parametrize("model", ["claude", "gpt"])
def test_a_tool_call_and_its_result_go_round(stage: Stage, model: str) -> None:
    use = {"type": "tool_use", "id": "call_1", "name": "get_weather", "input": {"city": "Oslo"}}
    stage.anthropic.queue(anthropic_answer({"type": "text", "text": "Let me look."}, use, stop="tool_use"))
    stage.openai.queue(openai_answer("Let me look.", tool_calls=[CALL]))
    message = client(stage).messages.create(model=model, messages=ASK, tools=[TOOL], max_tokens=50)
    assert [block.type for block in message.content] == ["text", "tool_use"]
    assert message.stop_reason == "tool_use"
    called = message.content[1]
    assert called.type == "tool_use"
    assert called.input == {"city": "Oslo"}
    content = [block.model_dump(include={"type", "text", "id", "name", "input"}) for block in message.content]
    history: Any = [
        *ASK,
        {"role": "assistant", "content": [{k: v for k, v in block.items() if v is not None} for block in content]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": called.id, "content": "5 C"}]},
    ]
    again = client(stage).messages.create(model=model, messages=history, tools=[TOOL], max_tokens=50)
    assert again.content[0].type == "text"
    provider = stage.anthropic if model == "claude" else stage.openai
    assert "5 C" in json.dumps(provider.requests[-1].json)


def test_a_streamed_tool_call_from_an_openai_provider_becomes_a_tool_use_block(stage: Stage) -> None:
    start = {**CALL, "index": 0, "function": {"name": "get_weather", "arguments": ""}}
    parts = [{"tool_calls": [{"index": 0, "function": {"arguments": text}}]} for text in ('{"city":', ' "Oslo"}')]
    stage.openai.always = openai_stream([{"role": "assistant", "tool_calls": [start]}, *parts], finish="tool_calls")
    with client(stage).messages.stream(model="gpt", messages=ASK, tools=[TOOL], max_tokens=50) as stream:
        final = stream.get_final_message()
    assert final.stop_reason == "tool_use"
    assert final.content[0].type == "tool_use"
    assert final.content[0].input == {"city": "Oslo"}


@pytest.mark.parametrize("model", ["claude", "gpt"])
def test_an_inline_image_reaches_the_provider(stage: Stage, model: str) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    messages: Any = [{"role": "user", "content": [image, {"type": "text", "text": "What is this?"}]}]
    client(stage).messages.create(model=model, messages=messages, max_tokens=50)
    provider = stage.anthropic if model == "claude" else stage.openai
    assert PIXEL in json.dumps(provider.requests[-1].json)


def test_errors_are_of_anthropics_types(stage: Stage) -> None:
    with pytest.raises(anthropic.AuthenticationError):
        client(stage, key="no-such-key-0123456789-abcdef").messages.create(model="gpt", messages=ASK, max_tokens=5)
    with pytest.raises(anthropic.NotFoundError):
        client(stage).messages.create(model="nope", messages=ASK, max_tokens=5)
    with pytest.raises(anthropic.PermissionDeniedError):
        client(stage).messages.create(model="private", messages=ASK, max_tokens=5)


def test_a_spent_budget_is_refused_once_and_not_retried(stage: Stage) -> None:
    transport = Counting()
    key = stage.gateway.create_key("poor", "anthropic-402")["secret"]
    with pytest.raises(anthropic.APIStatusError) as caught:
        client(stage, key, transport).messages.create(model="gpt", messages=ASK, max_tokens=100)
    assert caught.value.status_code == 402
    assert transport.count == 1
    assert not stage.openai.requests


def test_a_provider_429_is_waited_out_by_retry_after(stage: Stage) -> None:
    stage.anthropic.queue(Reply(status=429, body=b"{}", headers={"retry-after": "1"}))
    transport = Counting()
    message = client(stage, transport=transport, max_retries=3).messages.create(
        model="claude", messages=ASK, max_tokens=5
    )
    assert message.content[0].type == "text"
    assert transport.count == 2


def test_a_stream_cut_after_content_is_an_error(stage: Stage) -> None:
    stage.anthropic.always = anthropic_stream(["one ", "two ", "three"], cut=True)
    with (
        pytest.raises((anthropic.APIError, httpx2.HTTPError)),
        client(stage, max_retries=0).messages.stream(model="claude", messages=ASK, max_tokens=5) as stream,
    ):
        stream.get_final_message()
