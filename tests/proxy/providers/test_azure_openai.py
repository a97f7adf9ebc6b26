"""Azure OpenAI: addresses, credentials, errors and the content filter's own chunks."""

import json

import pytest

from proxy.canonical import ChatRequest, Finished, Message, Text
from proxy.context import (
    COMPLETIONS,
    EMBED,
    EMBEDDINGS,
    OPENAI,
    RESPONSES,
    TOLLBAR,
    Call,
    ProviderReply,
    ProviderTarget,
)
from proxy.openai_format.decoder import OpenAIStreamDecoder
from proxy.openai_format.relay import OpenAIRelay
from proxy.providers.azure_openai import AzureOpenAIAdapter
from proxy.providers.base import adapter_for
from tests.proxy.wire import chunk, documents, facts, play, sse, text_of

ORIGIN = "https://res.openai.azure.com"
USER = {"role": "user", "content": "hello"}


def target(**changes) -> ProviderTarget:
    known = {"provider": "az", "kind": "azure_openai", "model": "my gpt/4", "base_url": ORIGIN, "secret": "s3"}
    return ProviderTarget(**(known | changes))


def call(dialect: str = OPENAI, **members) -> Call:
    body = {"model": "smart", "messages": [USER], "input": "a", "prompt": "a"} | members
    return Call(dialect=dialect, body=body, model="smart", max_tokens=5, stream=body.get("stream", False))


def address(dialect: str = OPENAI, **changes) -> str:
    return AzureOpenAIAdapter().build_request(call(dialect), target(**changes)).url


def test_it_is_found_by_its_kind_and_must_be_told_where_it_is():
    adapter = adapter_for("azure_openai")
    assert adapter.default_base_url is None
    assert {OPENAI, COMPLETIONS, EMBEDDINGS, RESPONSES} <= adapter.dialects
    assert EMBED in adapter.operations


@pytest.mark.parametrize(
    ("dialect", "path"), [(OPENAI, "chat/completions"), (COMPLETIONS, "completions"), (EMBEDDINGS, "embeddings")]
)
@pytest.mark.parametrize("base_url", [ORIGIN, f"{ORIGIN}/"])
def test_a_resources_apis_are_below_its_deployments(dialect, path, base_url):
    url = address(dialect, base_url=base_url, api_version="2025-04-01-preview")
    assert url == f"{ORIGIN}/openai/deployments/my%20gpt%2F4/{path}?api-version=2025-04-01-preview"


def test_without_a_version_the_latest_stable_one_is_asked_for():
    assert address().endswith("?api-version=2024-10-21")


@pytest.mark.parametrize("base_url", [f"{ORIGIN}/openai", f"{ORIGIN}/openai/v1", f"{ORIGIN}/openai/v1/"])
@pytest.mark.parametrize(
    ("dialect", "path"), [(OPENAI, "chat/completions"), (EMBEDDINGS, "embeddings"), (RESPONSES, "responses")]
)
def test_the_newer_address_has_no_version(base_url, dialect, path):
    assert address(dialect, base_url=base_url, api_version="2024-10-21") == f"{ORIGIN}/openai/v1/{path}"


@pytest.mark.parametrize("base_url", [ORIGIN, f"{ORIGIN}/openai/v1"])
def test_a_version_without_a_date_belongs_to_the_newer_address(base_url):
    url = address(base_url=base_url, api_version="preview")
    assert url == f"{ORIGIN}/openai/v1/chat/completions?api-version=preview"


def test_responses_are_always_asked_for_at_the_newer_address():
    assert address(RESPONSES, api_version="2024-10-21") == f"{ORIGIN}/openai/v1/responses"


def test_the_deployment_is_the_model_and_the_key_has_a_header_of_its_own():
    request = AzureOpenAIAdapter().build_request(call(), target(headers={"x-team": "a"}))
    assert json.loads(request.body)["model"] == "my gpt/4"
    assert request.headers["api-key"] == "s3"
    assert request.headers["x-team"] == "a"
    assert "authorization" not in request.headers
    assert "api-key" not in AzureOpenAIAdapter().build_request(call(), target(secret="")).headers


def test_a_translated_call_goes_to_chat_completions():
    request = Call(
        dialect=TOLLBAR, body={}, model="smart", canonical=ChatRequest(messages=[Message("user", [Text("hi")])])
    )
    assert AzureOpenAIAdapter().build_request(request, target()).url.split("?")[0].endswith("/chat/completions")


# ---------------------------------------------------------------- errors

FILTERED = {
    "error": {
        "message": "The prompt was filtered by this account's policy; change it and try again.",
        "type": None,
        "param": "prompt",
        "code": "content_filter",
        "status": 400,
        "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"hate": {"filtered": True}}},
    }
}


def fault(status: int, body, **headers: str):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return AzureOpenAIAdapter().parse_error(ProviderReply(status, headers, raw))


def test_a_filtered_prompt_is_the_callers_fault_whatever_the_words():
    told = fault(400, FILTERED)
    assert (told.kind, told.param) == ("request", "prompt")
    assert told.message == FILTERED["error"]["message"]
    assert told.to_gateway_error().status == 400


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, {"error": {"code": "401", "message": "Access denied due to an invalid subscription key."}}, "credential"),
        (401, {"statusCode": 401, "message": "Unauthorized."}, "credential"),
        (403, {"error": {"code": "AuthenticationTypeDisabled", "message": "Key access is disabled."}}, "credential"),
        (404, {"error": {"code": "DeploymentNotFound", "message": "No such deployment."}}, "not_found"),
        (404, {"error": {"code": "404", "message": "Resource not found"}}, "not_found"),
        (400, {"error": {"code": "BadRequest", "message": "API version not supported"}}, "not_found"),
        (
            400,
            {
                "error": {
                    "code": "OperationNotSupported",
                    "message": "The embeddings operation does not work with the specified model, gpt-x.",
                }
            },
            "not_found",
        ),
        (400, {"error": {"code": "unknown_model", "message": "Unknown model: gpt-x"}}, "not_found"),
        (400, {"error": {"code": None, "message": "Invalid value for 'temperature'"}}, "request"),
        (408, b"upstream timed out", "server"),
        (500, b"", "server"),
    ],
)
def test_who_is_at_fault(status, body, kind):
    assert fault(status, body).kind == kind


def test_a_busy_deployment_says_when_to_come_back():
    body = {"error": {"code": "429", "message": "The call rate limit was exceeded. Retry after 6 seconds."}}
    assert fault(429, body, **{"retry-after": "6"}).retry_after_ms == 6000
    assert fault(429, body, **{"retry-after": "6", "retry-after-ms": "5500"}).retry_after_ms == 5500


# ---------------------------------------------------------------- streams

VERDICT = chunk(choices=[], id="", object="", model="", prompt_filter_results=[{"prompt_index": 0}])
LATE_VERDICT = {
    "index": 0,
    "finish_reason": None,
    "content_filter_results": {},
    "content_filter_offsets": {"start_offset": 0},
}


def test_the_verdict_on_the_prompt_is_no_content_and_passes():
    relay = OpenAIRelay(call(stream=True))
    assert relay.feed(sse(VERDICT)) == b""
    assert not relay.started
    raw = play(relay, [sse(chunk({"content": "ok"}), chunk({}, "stop"), "DONE")]) + relay.end(facts())
    first, *_ = documents(raw)
    assert first["prompt_filter_results"] == [{"prompt_index": 0}]
    assert text_of(raw) == "ok"


def test_verdicts_that_come_late_or_after_the_end_break_nothing():
    late = chunk(choices=[LATE_VERDICT], object="")
    stream = sse(VERDICT, chunk({"content": "ok"}), late, chunk({}, "content_filter"), late, "DONE")
    relay = OpenAIRelay(call(stream=True))
    raw = play(relay, [stream]) + relay.end(facts())
    assert (relay.fault, relay.finish_reason, text_of(raw)) == (None, "content_filter", "ok")
    decoder = OpenAIStreamDecoder()
    events = decoder.feed(stream)
    assert decoder.done
    assert events[-1] == Finished("content_filter", native_finish="content_filter")
