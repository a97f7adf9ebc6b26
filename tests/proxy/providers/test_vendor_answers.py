"""Whole answers and errors of vendors that speak OpenAI's chat completions. Made-up data in the vendors' ways."""

import json

import pytest

from proxy.canonical import ChatResponse, Text, Thinking, ToolCall, ToolCallDelta, ToolCallStart, Usage
from proxy.context import OPENAI, Call, ProviderReply
from proxy.errors import UpstreamFault
from proxy.openai_format.answer import chat_response, whole_answer
from proxy.openai_format.decoder import OpenAIStreamDecoder
from proxy.openai_format.relay import OpenAIRelay
from proxy.providers.base import adapter_for
from tests.proxy.wire import chunk, sse


def answer(message: dict, finish: str = "stop", **members) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant"} | message, "finish_reason": finish}
    return json.dumps({"id": "1", "object": "chat.completion", "model": "m", "choices": [choice]} | members).encode()


def read(body: bytes) -> ChatResponse:
    """Read in canonical form; the client of the same format gets the very bytes and the same counts."""
    response, passed = chat_response(body), whole_answer(body)
    assert passed.body is body
    assert (passed.usage, passed.finish_reason) == (response.usage, response.finish_reason)
    return response


def test_mistral_answers_in_parts_with_thinking():
    content = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Yes"}]
    response = read(answer({"content": content, "tool_calls": None}, "model_length"))
    assert response.parts == [Thinking(text="hm"), Text("Yes")]
    assert (response.finish_reason, response.native_finish) == ("length", "model_length")


def test_groq_tells_its_usage_with_times():
    usage = {"queue_time": 0.1, "prompt_tokens": 9, "prompt_time": 0.2, "completion_tokens": 3, "total_tokens": 12}
    body = answer({"content": "Yes", "reasoning": "hm"}, usage=usage, x_groq={"id": "req_1"})
    response = read(body)
    assert response.parts == [Thinking(text="hm"), Text("Yes")]
    assert response.usage == Usage(input_tokens=9, output_tokens=3)


def test_deepseek_tells_hits_of_its_cache_and_its_reasoning():
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12, "prompt_cache_hit_tokens": 4}
    body = b"\n\n\n" + answer(
        {"content": "Yes", "reasoning_content": "hm"}, usage=usage | {"prompt_cache_miss_tokens": 5}
    )
    response = read(body)
    assert response.parts == [Thinking(text="hm"), Text("Yes")]
    assert response.usage == Usage(input_tokens=9, output_tokens=3, cache_read_tokens=4)


def test_openrouter_pads_its_answer_and_tells_what_it_cost():
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12, "cost": 0.001, "is_byok": False}
    body = b"\n         \n\n         \n" + answer({"content": "Yes"}, usage=usage, provider="P")
    assert read(body).usage == Usage(input_tokens=9, output_tokens=3)


def test_xai_leaves_reasoning_out_of_the_completion():
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 20, "num_sources_used": 0}
    body = answer({"content": "Yes"}, usage=usage | {"completion_tokens_details": {"reasoning_tokens": 8}})
    assert read(body).usage == Usage(input_tokens=9, output_tokens=11, reasoning_tokens=8)


def test_perplexity_cites_beside_the_choices():
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12, "search_context_size": "low", "cost": {}}
    body = answer({"content": "Yes [1]"}, citations=["https://a.example"], search_results=[], usage=usage)
    assert read(body).parts == [Text("Yes [1]")]


def test_huggingface_sends_arguments_as_an_object():
    call = {"id": "0", "type": "function", "function": {"name": "f", "arguments": {"a": 1}, "description": None}}
    response = read(answer({"content": "", "tool_calls": [call]}, "tool_calls"))
    assert response.parts == [ToolCall("0", "f", '{"a":1}')]


def test_mistral_streams_a_whole_call_in_one_chunk():
    call = {"id": "Ab3dEf9hI", "function": {"name": "f", "arguments": '{"a": 1}'}, "index": 0}
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    stream = sse(chunk({"content": "", "tool_calls": [call]}, "tool_calls", usage=usage), "DONE")
    events = OpenAIStreamDecoder().feed(stream)
    assert ToolCallStart(0, "Ab3dEf9hI", "f") in events
    assert ToolCallDelta(0, '{"a": 1}') in events


# ---------------------------------------------------------------- errors


def fault(status: int, body, **headers: str) -> UpstreamFault:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return adapter_for("openai_compatible").parse_error(ProviderReply(status, headers, raw))


MISTRAL_422 = {
    "object": "error",
    "message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "x"], "msg": "Extra inputs are not permitted"}]},
    "type": "invalid_request_error",
    "param": None,
    "code": None,
}


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (422, MISTRAL_422, "request", "body.x: Extra inputs are not permitted"),
        (422, {"detail": [{"loc": ["body", "model"], "msg": "Field required"}]}, "request", "Field required"),
        (401, {"detail": "Unauthorized"}, "credential", "Unauthorized"),
        (
            429,
            {"object": "error", "message": "Slow down", "type": "rate_limited", "code": "1300"},
            "rate_limit",
            "Slow",
        ),
        (
            400,
            {
                "error": {
                    "message": "The function call is malformed.",
                    "type": "invalid_request_error",
                    "code": "tool_use_failed",
                    "failed_generation": "<f>{",
                }
            },
            "request",
            "malformed",
        ),
        (413, {"error": {"message": "Request too large", "code": "rate_limit_exceeded"}}, "request", "too large"),
        (402, {"error": {"message": "Insufficient Balance", "type": "unknown_error"}}, "credential", "Balance"),
        (402, {"error": {"message": "Add credits", "code": 402}, "user_id": "u"}, "credential", "credits"),
        (502, {"error": {"message": "Provider returned error", "code": 502, "metadata": {}}}, "server", "returned"),
        (400, {"code": "Client specified an invalid argument", "error": "Bad image"}, "request", "Bad image"),
        (400, {"code": "invalid", "error": "Incorrect API key provided: xa***y"}, "credential", "Incorrect"),
        (400, {"object": "error", "message": "max_tokens is too large", "code": 400}, "request", "max_tokens"),
        (404, {"object": "error", "message": "The model `m` does not exist.", "code": 404}, "not_found", "exist"),
        (400, {"error": "Model not loaded: no such model"}, "not_found", "loaded"),
        (400, {"error": "The requested model 'm' is not a chat model"}, "request", "chat model"),
        (400, {"message": "invalid request: temperature", "id": "1"}, "request", "temperature"),
        (404, b"Not Found", "not_found", "Not Found"),
        (503, b"Service Unavailable", "server", "Unavailable"),
        (400, b'"bare words"', "request", "bare words"),
    ],
)
def test_errors_in_every_vendors_words(status, body, kind, words):
    told = fault(status, body)
    assert (told.kind, told.status) == (kind, status)
    assert words in told.message


BROKEN = [
    (chunk({}, "error"), "server"),
    (
        {
            "error": {"message": "Overloaded", "code": 502},
            "choices": [{"index": 0, "delta": {}, "finish_reason": "error"}],
        },
        "server",
    ),
    ({"error": {"message": "Slow down", "code": 429}}, "rate_limit"),
    ({"error": {"message": "Bad call", "type": "invalid_request_error", "failed_generation": "{"}}, "request"),
    ({"object": "error", "message": "no", "type": "BadRequestError", "code": 400}, "request"),
    ({"error": {"message": "no", "type": "InternalServerError", "code": 500}}, "server"),
    ({"error": "words alone"}, "protocol"),
]


@pytest.mark.parametrize(("event", "kind"), BROKEN)
@pytest.mark.parametrize("before", [[], [chunk({"content": "Ye"})]])
def test_an_error_inside_a_stream_ends_it(event, kind, before):
    stream = sse(*before, event, "DONE")
    decoder = OpenAIStreamDecoder()
    decoder.feed(stream)
    relay = OpenAIRelay(Call(dialect=OPENAI, body={}, model="m", stream=True))
    raw = relay.feed(stream)
    for reader in (decoder, relay):
        assert reader.fault is not None
        assert (reader.fault.kind, reader.done) == (kind, False)
    assert b'finish_reason":"' not in raw
