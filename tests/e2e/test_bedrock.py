"""Bedrock behind a running gateway: signed with the credentials of the process; without any, the next one answers."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.conftest import PRICE, QUICK
from tests.fakes.gateway import Gateway
from tests.fakes.provider import FakeProvider, Reply, openai_answer
from tests.proxy.bedrock_wire import CLAUDE, STREAM, delta, exception, started

pytestmark = pytest.mark.slow

TITAN = "amazon.titan-embed-text-v2:0"
HI = [{"role": "user", "content": "hello"}]
EVENT_STREAM = {"content-type": "application/vnd.amazon.eventstream"}
NO_CREDENTIALS = {
    "AWS_CONFIG_FILE": "/nonexistent",
    "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
    "AWS_EC2_METADATA_DISABLED": "true",
}
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLEEXAMPLE00", "AWS_SECRET_ACCESS_KEY": "never-shown-secret-of-aws"}


class Stage:
    def __init__(self, folder, **credentials: str) -> None:
        self.aws, self.second = FakeProvider(), FakeProvider()
        self.gateway = Gateway(folder, **NO_CREDENTIALS, **credentials).migrate()
        second = {"name": "o", "kind": "openai", "base_url": f"{self.second.url}/v1", "api_key": "sk-o", **QUICK}
        aws = {"name": "aws", "kind": "bedrock", "base_url": self.aws.url, "region": "eu-west-1", **QUICK}
        claude, titan, spare = (
            {"provider": name, "model": model} for name, model in (("aws", CLAUDE), ("aws", TITAN), ("o", "gpt-4o"))
        )
        self.gateway.apply(
            {
                "providers": [aws, second],
                "models": [
                    {"name": "claude", "targets": [claude]},
                    {"name": "safe", "targets": [claude, spare]},
                    {"name": "vectors", "targets": [titan]},
                ],
                "prices": [target | PRICE for target in (claude, titan, spare)],
                "tenants": [{"slug": "acme", "name": "Acme"}],
            }
        )
        self.gateway.serve()
        self.key = self.gateway.create_key("acme")["secret"]

    def post(self, path: str, **body):
        return self.gateway.post(path, self.key, body)

    def stop(self) -> None:
        self.gateway.stop()
        self.aws.stop()
        self.second.stop()


@pytest.fixture(scope="module")
def signed(tmp_path_factory) -> Iterator[Stage]:
    stage = Stage(tmp_path_factory.mktemp("signed"), **CREDENTIALS)
    yield stage
    stage.stop()


def test_a_stream_is_signed_and_told_in_the_clients_words(signed):
    signed.aws.queue(Reply(pieces=[STREAM[:50], STREAM[50:]], headers=EVENT_STREAM))
    answer = signed.post("/v1/chat", model="claude", messages=HI, stream=True)
    last = json.loads(answer.text.split("event: done\ndata: ")[1])
    assert (last["finish_reason"], last["input_tokens"], last["output_tokens"]) == ("stop", 25, 9)
    assert "Grüße" in answer.text
    sent = signed.aws.requests[-1]
    assert sent.path == "/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream"
    assert "/eu-west-1/bedrock/aws4_request" in sent.headers["authorization"]


def test_an_exception_after_content_is_an_error_event_and_a_failed_request(signed):
    broken = started() + delta(0, text="half") + exception("modelStreamErrorException", "no more")
    signed.aws.queue(Reply(pieces=[broken], headers=EVENT_STREAM))
    answer = signed.post("/v1/chat/completions", model="claude", messages=HI, stream=True)
    assert "half" in answer.text
    assert '"error"' in answer.text
    assert "[DONE]" not in answer.text
    event = signed.gateway.audit_event(signed.key, answer.headers["x-request-id"])
    assert (event["status"], event["http_status"], event["usage_source"]) == ("failed", 200, "estimated")


def test_vectors_of_one_text(signed):
    signed.aws.queue(Reply(body=b'{"embedding": [0.5, -1.0], "inputTextTokenCount": 4}'))
    answer = signed.post("/v1/embeddings", model="vectors", input="hello").json()
    assert answer["data"][0]["embedding"] == [0.5, -1.0]
    assert answer["usage"]["prompt_tokens"] == 4
    assert signed.aws.requests[-1].json == {"inputText": "hello"}
    refused = signed.post("/v1/embeddings", model="vectors", input=["a", "b"])
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "input")


def test_the_secret_of_the_process_is_never_shown(signed):
    signed.aws.queue(Reply(status=403, body=json.dumps({"message": CREDENTIALS["AWS_ACCESS_KEY_ID"]}).encode()))
    answer = signed.post("/v1/chat/completions", model="claude", messages=HI)
    assert answer.status_code == 502
    assert not any(value in answer.text for value in CREDENTIALS.values())


def test_without_credentials_the_next_provider_answers_and_without_one_it_is_502(tmp_path):
    stage = Stage(tmp_path)
    try:
        stage.second.always = openai_answer("from the second")
        answer = stage.post("/v1/chat", model="safe", messages=HI).json()
        assert (answer["content"], answer["provider"], answer["attempts"]) == ("from the second", "o", 2)
        refused = stage.post("/v1/chat/completions", model="claude", messages=HI)
        assert (refused.status_code, refused.json()["error"]["code"]) == (502, "upstream_error")
        event = stage.gateway.audit_event(stage.key, refused.headers["x-request-id"])
        assert [attempt["error_code"] for attempt in event["attempts"]] == ["credential"]
        assert stage.aws.requests == []
    finally:
        stage.stop()
