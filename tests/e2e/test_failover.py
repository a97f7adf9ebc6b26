"""A dead first provider: the second answers, and the record says so."""

from __future__ import annotations

import json

import pytest

from tests.e2e.conftest import Stage
from tests.fakes.provider import Reply, openai_answer, openai_stream

pytestmark = pytest.mark.slow

BODY = {"model": "resilient", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 20}


def test_a_dead_primary_is_answered_by_the_second_at_the_seconds_price(stage: Stage) -> None:
    stage.openai.always = openai_answer("from the second", input_tokens=100, output_tokens=50)
    answer = stage.gateway.post("/v1/chat", stage.key, BODY)
    assert answer.status_code == 200
    said = answer.json()
    assert (said["content"], said["provider"], said["model"]) == ("from the second", "o", "gpt-4o")
    assert (said["attempts"], said["fallback_used"]) == (2, True)
    assert said["cost_usd"] == "0.001050"  # 100 x 3.00 + 50 x 15.00 a million: the second's price
    event = stage.gateway.audit_event(stage.key, said["request_id"])
    assert [(a["provider"], a["outcome"]) for a in event["attempts"]] == [("dead", "failed"), ("o", "success")]
    assert (event["provider"], event["model_served"], event["cost_usd"]) == ("o", "gpt-4o", "0.001050")
    assert event["fallback_used"] is True


def test_a_stream_fails_over_before_its_first_content(stage: Stage) -> None:
    stage.openai.always = openai_stream([{"content": "whole"}])
    answer = stage.gateway.post("/v1/chat/completions", stage.key, {**BODY, "stream": True})
    assert answer.status_code == 200
    assert answer.headers["x-tollbar-provider"] == "o"
    assert answer.headers["x-tollbar-fallback"] == "true"
    assert answer.text.count("data: [DONE]") == 1


def test_when_every_provider_fails_the_answer_is_502_and_nothing_is_charged(stage: Stage) -> None:
    stage.openai.always = Reply(status=503, body=b"{}")
    answer = stage.gateway.post("/v1/chat/completions", stage.key, BODY)
    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == "upstream_error"
    event = stage.gateway.audit_event(stage.key, answer.headers["x-request-id"])
    assert (event["status"], event["http_status"], event["cost_usd"]) == ("failed", 502, "0.000000")


def test_a_request_the_provider_calls_bad_is_the_callers_and_not_tried_elsewhere(stage: Stage) -> None:
    bad = {
        "error": {"message": "max_tokens is too large", "type": "invalid_request_error", "param": None, "code": None}
    }
    stage.openai.always = Reply(status=400, body=json.dumps(bad).encode())
    answer = stage.gateway.post("/v1/chat/completions", stage.key, {**BODY, "model": "gpt"})
    assert answer.status_code == 400
    assert "max_tokens is too large" in answer.json()["error"]["message"]
    assert len(stage.openai.requests) == 1
