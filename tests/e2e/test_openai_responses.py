"""The official OpenAI client on the Responses API: handed through to a provider that has it, else translated."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from tests.e2e.conftest import Stage
from tests.e2e.test_openai_sdk import client
from tests.fakes.provider import Reply, anthropic_answer, anthropic_stream
from tests.fakes.responses import call_item, message_item, responses_answer, responses_stream

pytestmark = pytest.mark.slow

ASK = "How is the weather?"
TOOL: Any = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": False,
}

either_provider = pytest.mark.parametrize("model", ["gpt", "claude"])


@either_provider
def test_a_response_is_answered_with_usage(stage: Stage, model: str) -> None:
    stage.openai.always = responses_answer(message_item("ok"))
    answer = client(stage).responses.create(model=model, input=ASK, instructions="Be brief.")
    assert answer.output_text == "ok"
    assert answer.status == "completed"
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (10, 5)
    provider = stage.openai if model == "gpt" else stage.anthropic
    assert "Be brief." in json.dumps(provider.requests[-1].json)


@either_provider
def test_a_streamed_response_arrives_piece_by_piece_and_ends_with_the_whole(stage: Stage, model: str) -> None:
    stage.openai.always = responses_stream(message_item("one ", "two"))
    stage.anthropic.always = anthropic_stream(["one ", "two"])
    with client(stage).responses.stream(model=model, input=ASK) as stream:
        pieces = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert pieces == ["one ", "two"]
    assert final.output_text == "one two"
    assert final.usage is not None
    assert final.usage.total_tokens == 15


@either_provider
def test_a_tool_call_of_a_response_and_its_output_go_round(stage: Stage, model: str) -> None:
    stage.openai.queue(responses_answer(call_item("get_weather", '{"city": "Oslo"}')))
    stage.openai.always = responses_answer(message_item("ok"))
    use = {"type": "tool_use", "id": "call_1", "name": "get_weather", "input": {"city": "Oslo"}}
    stage.anthropic.queue(anthropic_answer(use, stop="tool_use"))
    first = client(stage).responses.create(model=model, input=ASK, tools=[TOOL])
    call = next(item for item in first.output if item.type == "function_call")
    assert json.loads(call.arguments) == {"city": "Oslo"}
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "5 C"}
    history: Any = [{"role": "user", "content": ASK}, *(item.model_dump() for item in first.output), output]
    again = client(stage).responses.create(model=model, input=history, tools=[TOOL])
    assert again.output_text == "ok"
    provider = stage.openai if model == "gpt" else stage.anthropic
    assert "5 C" in json.dumps(provider.requests[-1].json)


@either_provider
def test_a_response_cut_off_is_an_error_and_never_a_whole_answer(stage: Stage, model: str) -> None:
    whole = responses_stream(message_item("one ", "two "))
    assert whole.pieces is not None
    stage.openai.always = Reply(pieces=whole.pieces[:6], headers=whole.headers, cut=True)
    stage.anthropic.always = anthropic_stream(["one ", "two "], cut=True)
    with (
        pytest.raises(openai.APIError),
        client(stage, max_retries=0).responses.stream(model=model, input=ASK) as stream,
    ):
        stream.until_done()
