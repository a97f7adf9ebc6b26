"""The Responses API where some providers lack it: what comes back to them unchanged, and what they are spared."""

from __future__ import annotations

import json
from typing import Any

import httpx
import openai
import pytest

from tests.e2e.conftest import Stage
from tests.e2e.test_openai_responses import ASK, TOOL
from tests.e2e.test_openai_sdk import client
from tests.fakes.provider import Reply, anthropic_answer
from tests.fakes.responses import message_item, responses_answer, responses_stream

pytestmark = pytest.mark.slow

SIGNED = {"type": "thinking", "thinking": "Oslo, then.", "signature": "c2lnbmVk"}
HIDDEN = {"type": "redacted_thinking", "data": "aGlkZGVu"}
USE = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo"}}


def history_after_thinking(stage: Stage) -> Any:
    """What a client sends back after Claude thought and called a tool."""
    stage.anthropic.queue(anthropic_answer(SIGNED, HIDDEN, USE, stop="tool_use"))
    first = client(stage).responses.create(model="claude", input=ASK, tools=[TOOL])
    assert [item.type for item in first.output] == ["reasoning", "reasoning", "function_call"]
    output = {"type": "function_call_output", "call_id": "toolu_1", "output": "5 C"}
    return [{"role": "user", "content": ASK}, *(item.to_dict() for item in first.output), output]


def test_signed_and_hidden_thinking_come_back_to_their_provider_unchanged(stage: Stage) -> None:
    history = history_after_thinking(stage)
    client(stage).responses.create(model="claude", input=history, tools=[TOOL])
    assert stage.anthropic.requests[-1].json["messages"][1]["content"] == [SIGNED, HIDDEN, USE]


def test_a_conversation_may_go_on_at_openai_without_what_it_cannot_read(stage: Stage) -> None:
    stage.openai.always = responses_answer(message_item("ok"))
    history = history_after_thinking(stage)
    assert client(stage).responses.create(model="gpt", input=history, tools=[TOOL]).output_text == "ok"
    sent = stage.openai.requests[-1].json["input"]
    assert [item.get("type", "message") for item in sent] == ["message", "function_call", "function_call_output"]


def test_what_only_openai_can_do_goes_to_openai_alone(stage: Stage) -> None:
    stage.openai.always = responses_answer(message_item("ok"))
    asked: Any = {"input": ASK, "previous_response_id": "resp_1", "tools": [{"type": "web_search"}]}
    assert client(stage).responses.create(model="either", **asked).output_text == "ok"
    assert stage.anthropic.requests == []
    assert stage.openai.requests[-1].json == {**asked, "model": "gpt-4o"}
    with pytest.raises(openai.BadRequestError) as caught:
        client(stage).responses.create(model="claude", **asked)
    assert caught.value.param == "previous_response_id"
    assert stage.anthropic.requests == []


def test_a_stream_that_fails_before_its_first_content_is_answered_by_another(stage: Stage) -> None:
    stage.anthropic.always = Reply(status=500, body=b"{}")
    stage.openai.always = responses_stream(message_item("one ", "two"))
    with client(stage).responses.stream(model="either", input=ASK) as stream:
        assert stream.get_final_response().output_text == "one two"


def test_a_failure_told_inside_a_stream_is_an_error_of_http_before_content(stage: Stage) -> None:
    whole = responses_stream(message_item("one"))
    assert whole.pieces is not None
    failed = {"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": None}
    broken = b"event: error\ndata: " + json.dumps(failed).encode() + b"\n\n"
    stage.openai.always = Reply(pieces=[*whole.pieces[:3], broken], headers=whole.headers)
    with pytest.raises(openai.RateLimitError) as caught:
        client(stage, max_retries=0).responses.create(model="gpt", input=ASK, stream=True)
    assert caught.value.code == "provider_rate_limited"


def test_background_is_refused_by_name(stage: Stage) -> None:
    for model in ("gpt", "claude"):
        with pytest.raises(openai.BadRequestError) as caught:
            client(stage).responses.create(model=model, input=ASK, background=True)
        assert caught.value.param == "background"
    assert stage.openai.requests == stage.anthropic.requests == []


def test_a_websocket_is_told_to_come_back_by_post_and_other_methods_are_refused(stage: Stage) -> None:
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    with httpx.Client(base_url=stage.gateway.url, trust_env=False) as caller:
        answer = caller.get("/v1/responses", headers={"Authorization": f"Bearer {stage.key}", **upgrade})
        plain = caller.get("/v1/responses", headers={"Authorization": f"Bearer {stage.key}"})
    assert (answer.status_code, answer.headers["upgrade"]) == (426, "HTTP/1.1")
    assert answer.json()["error"]["code"] == "method_not_allowed"
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
    assert (plain.status_code, plain.headers["allow"]) == (405, "POST")
