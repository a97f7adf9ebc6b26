"""Embeddings, legacy completions and token counts through the official clients, with what is recorded of them."""

from __future__ import annotations

import base64
import json
import struct
import time
from typing import Any

import anthropic
import httpx
import openai
import pytest

from tests.e2e import test_anthropic_sdk, test_openai_sdk
from tests.e2e.conftest import Stage
from tests.fakes.provider import Reply, anthropic_answer, anthropic_stream

pytestmark = pytest.mark.slow

ASK: list[Any] = [{"role": "user", "content": "How is the weather?"}]
VECTOR = [0.5, -1.0, 0.25]
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def openai_client(stage: Stage, **options: Any) -> openai.OpenAI:
    return test_openai_sdk.client(stage, max_retries=0, **options)


def anthropic_client(stage: Stage, **options: Any) -> anthropic.Anthropic:
    return test_anthropic_sdk.client(stage, max_retries=0, **options)


def vectors(count: int, *, packed: bool = True) -> Reply:
    told: Any = base64.b64encode(struct.pack("<3f", *VECTOR)).decode() if packed else VECTOR
    data = [{"object": "embedding", "index": index, "embedding": told} for index in range(count)]
    usage = {"prompt_tokens": 1_000_000, "total_tokens": 1_000_000}
    return Reply(body=json.dumps({"object": "list", "data": data, "model": "fake", "usage": usage}).encode())


def text_chunk(text: str, finish: str | None = None, **members: Any) -> dict[str, Any]:
    choice = {"text": text, "index": 0, "logprobs": None, "finish_reason": finish}
    return {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "fake", "choices": [choice], **members}


def text_stream(*chunks: dict[str, Any]) -> Reply:
    pieces = [b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks]
    return Reply(pieces=[*pieces, b"data: [DONE]\n\n"], headers={"content-type": "text/event-stream"})


def event_of(stage: Stage, request_id: str | None) -> dict[str, Any]:
    """The audit event of a request, once the drain has written it."""
    headers = {"authorization": f"Bearer {stage.key}"}
    with httpx.Client(base_url=stage.gateway.url, headers=headers, trust_env=False) as reader:
        for _ in range(200):
            found = reader.get("/v1/audit", params={"request_id": request_id or ""}).json()["data"]
            if found:
                return dict(found[0])
            time.sleep(0.05)
    raise AssertionError("no event was written")


# ---------------------------------------------------------------- embeddings


def test_embeddings_pass_and_only_their_input_is_charged(stage: Stage) -> None:
    stage.openai.queue(vectors(2))
    raw = openai_client(stage).embeddings.with_raw_response.create(model="gpt", input=["a", "b"])
    assert [entry.embedding for entry in raw.parse().data] == [VECTOR, VECTOR]
    (request,) = stage.openai.requests
    assert request.path == "/v1/embeddings"
    assert request.json == {"model": "gpt-4o", "input": ["a", "b"], "encoding_format": "base64"}
    event = event_of(stage, raw.headers["x-request-id"])
    assert (event["endpoint"], event["status"], event["cost_usd"]) == ("/v1/embeddings", "success", "3.000000")
    assert (event["input_tokens"], event["output_tokens"], event["usage_source"]) == (1_000_000, 0, "provider")


def test_a_model_whose_providers_do_not_embed_is_refused(stage: Stage) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        openai_client(stage).embeddings.create(model="claude", input="a")
    assert caught.value.param == "model"
    assert not stage.anthropic.requests


# ---------------------------------------------------------------- legacy completions


def test_a_completion_passes_to_a_provider_of_the_same_words(stage: Stage) -> None:
    stage.openai.queue(Reply(body=json.dumps(text_chunk("upon", "stop", usage=USAGE)).encode()))
    answer = openai_client(stage).completions.create(model="gpt", prompt=[[1, 2]], max_tokens=20, echo=True)
    assert (answer.choices[0].text, answer.choices[0].finish_reason) == ("upon", "stop")
    (request,) = stage.openai.requests
    assert request.path == "/v1/completions"
    assert request.json == {"model": "gpt-4o", "prompt": [[1, 2]], "max_tokens": 20, "echo": True}


def test_its_stream_ends_with_a_finish_reason_and_the_usage_that_was_asked_for(stage: Stage) -> None:
    stage.openai.queue(
        text_stream(
            text_chunk("up"), text_chunk("on"), text_chunk("", "length"), text_chunk("", choices=[], usage=USAGE)
        )
    )
    stream = openai_client(stage).completions.create(
        model="gpt", prompt="Once", stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices) == "upon"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "length"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 15


def test_a_completion_is_one_message_for_a_chat_provider(stage: Stage) -> None:
    answer = openai_client(stage).completions.create(model="claude", prompt="Once", max_tokens=20)
    assert (answer.object, answer.choices[0].text) == ("text_completion", "ok")
    assert answer.usage is not None
    assert answer.usage.total_tokens == 15
    (request,) = stage.anthropic.requests
    assert request.json["max_tokens"] == 20
    assert "Once" in json.dumps(request.json["messages"])
    stage.anthropic.queue(anthropic_stream(["up", "on"]))
    stream = openai_client(stage).completions.create(model="claude", prompt="Once", stream=True)
    assert "".join(chunk.choices[0].text for chunk in stream) == "upon"


def test_what_only_completions_can_say_is_named(stage: Stage) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        openai_client(stage).completions.create(model="claude", prompt="Once", suffix="end")
    assert caught.value.param == "suffix"


# ---------------------------------------------------------------- token counts


def test_anthropics_own_count_is_passed_on_and_costs_nothing(stage: Stage) -> None:
    stage.anthropic.queue(Reply(body=b'{"input_tokens": 14}'))
    raw = anthropic_client(stage).messages.with_raw_response.count_tokens(
        model="claude", messages=ASK, system="Be brief.", extra_headers={"anthropic-beta": "b-1"}
    )
    assert raw.parse().input_tokens == 14
    assert json.loads(raw.text()) == {"input_tokens": 14}
    (request,) = stage.anthropic.requests
    assert request.path == "/v1/messages/count_tokens"
    assert request.json == {"model": "claude-sonnet-4-5", "messages": ASK, "system": "Be brief."}
    assert request.headers["anthropic-beta"] == "b-1"
    event = event_of(stage, raw.headers["request-id"])
    assert (event["endpoint"], event["status"]) == ("/v1/messages/count_tokens", "success")
    assert (event["input_tokens"], event["output_tokens"], event["cost_usd"]) == (0, 0, "0.000000")
    assert [attempt["outcome"] for attempt in event["attempts"]] == ["success"]


def counted(stage: Stage, key: str, model: str) -> httpx.Response:
    body = {"model": model, "messages": [{"role": "user", "content": "x" * 4000}]}
    with httpx.Client(base_url=stage.gateway.url, trust_env=False) as caller:
        return caller.post("/v1/messages/count_tokens", json=body, headers={"x-api-key": key})


def test_without_a_provider_that_counts_the_gateway_estimates_and_says_so(stage: Stage) -> None:
    answer = counted(stage, stage.key, "gpt")
    assert answer.status_code == 200
    assert answer.json()["estimated"] is True
    assert 900 < answer.json()["input_tokens"] < 1200
    assert not stage.openai.requests
    assert "x-tollbar-provider" not in answer.headers
    event = event_of(stage, answer.headers["x-request-id"])
    assert (event["status"], event["cost_usd"]) == ("success", "0.000000")
    assert (event["attempts"], event["provider"]) == ([], None)


@pytest.mark.parametrize("status", [401, 404, 429, 500, 529])
def test_a_provider_that_fails_to_count_leaves_it_to_the_gateway(stage: Stage, status: int) -> None:
    error = {"type": "error", "error": {"type": "api_error", "message": "no"}}
    stage.anthropic.queue(Reply(status=status, body=json.dumps(error).encode()))
    answer = counted(stage, stage.key, "claude")
    assert (answer.status_code, answer.json()["estimated"]) == (200, True)
    assert len(stage.anthropic.requests) == 1


def test_an_answer_that_is_no_count_leaves_it_to_the_gateway(stage: Stage) -> None:
    stage.anthropic.queue(anthropic_answer())
    assert counted(stage, stage.key, "claude").json()["estimated"] is True


def test_what_the_provider_refuses_is_the_callers_to_mend(stage: Stage) -> None:
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": "messages: roles must alternate"}}
    stage.anthropic.queue(Reply(status=400, body=json.dumps(error).encode()))
    with pytest.raises(anthropic.BadRequestError) as caught:
        anthropic_client(stage).messages.count_tokens(model="claude", messages=ASK)
    body: Any = caught.value.body
    assert body["type"] == "error"
    assert body["error"]["message"] == "messages: roles must alternate"


def test_a_malformed_body_is_refused_in_anthropics_envelope(stage: Stage) -> None:
    with pytest.raises(anthropic.BadRequestError) as caught:
        anthropic_client(stage).messages.count_tokens(model="gpt", messages=[])
    body: Any = caught.value.body
    assert (body["type"], body["error"]["type"]) == ("error", "invalid_request_error")


def test_an_empty_budget_stops_calls_but_not_counts(stage: Stage) -> None:
    poor = stage.gateway.create_key("poor")["secret"]
    assert counted(stage, poor, "gpt").status_code == 200
    with pytest.raises(openai.APIStatusError) as caught:
        openai_client(stage, key=poor).embeddings.create(model="gpt", input="a" * 1000)
    assert caught.value.status_code == 402
