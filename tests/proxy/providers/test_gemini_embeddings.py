"""Texts turned into vectors by Gemini."""

import json

import pytest

from proxy.canonical import EmbeddingRequest, EmbeddingResponse, Usage
from proxy.context import EMBED, EMBEDDINGS, Call
from proxy.errors import UpstreamFault
from proxy.providers.gemini import GeminiAdapter
from tests.proxy.gemini_wire import reply, target

MODEL = "gemini-embedding-001"


def call_of(*inputs: str, dimensions: int | None = None) -> Call:
    canonical = EmbeddingRequest(inputs=list(inputs), dimensions=dimensions)
    return Call(dialect=EMBEDDINGS, operation=EMBED, body={}, model="m", canonical=canonical)


def sent(call: Call, model: str = MODEL) -> tuple[str, dict]:
    request = GeminiAdapter().build_request(call, target(model, secret="key-1"))
    assert request.headers["x-goog-api-key"] == "key-1"
    return request.url, json.loads(request.body)


def response_of(content, *inputs: str) -> EmbeddingResponse:
    response = GeminiAdapter().parse_response(call_of(*inputs), reply(content))
    assert isinstance(response, EmbeddingResponse)
    return response


def vector(*values: float) -> dict:
    return {"values": list(values)}


def test_embeddings_are_offered():
    assert EMBED in GeminiAdapter.operations


def test_one_text():
    url, body = sent(call_of("a", dimensions=256))
    assert url == f"https://x/v1beta/models/{MODEL}:embedContent"
    assert body == {"model": f"models/{MODEL}", "content": {"parts": [{"text": "a"}]}, "outputDimensionality": 256}


def test_several_texts():
    url, body = sent(call_of("a", "b"), f"models/{MODEL}")
    assert url == f"https://x/v1beta/models/{MODEL}:batchEmbedContents"
    assert body == {
        "requests": [{"model": f"models/{MODEL}", "content": {"parts": [{"text": text}]}} for text in ("a", "b")]
    }


@pytest.mark.parametrize("content", [{"embedding": vector(0.5, -1)}, {"embeddings": [vector(0.5, -1)]}])
def test_the_vector_of_one_text(content):
    assert response_of(content, "a") == EmbeddingResponse(vectors=[[0.5, -1.0]])


def test_vectors_in_order_with_their_usage():
    content = {"embeddings": [vector(1), vector(2)], "usageMetadata": {"promptTokenCount": 7}}
    assert response_of(content, "a", "b") == EmbeddingResponse(vectors=[[1.0], [2.0]], usage=Usage(input_tokens=7))


@pytest.mark.parametrize("usage", [None, {}, {"promptTokenCount": -1}, {"promptTokenCount": "7"}, 7])
def test_no_usage_is_made_up(usage):
    assert response_of({"embedding": vector(1), "usageMetadata": usage}, "a").usage is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>",
        [],
        {},
        {"embeddings": []},
        {"embeddings": [vector(1)]},
        {"embeddings": [vector(1)] * 3},
        {"embeddings": [vector(1), {"values": ["x"]}]},
        {"embeddings": [vector(1), {}]},
        {"embedding": vector(1)},
    ],
)
def test_an_answer_with_other_than_a_vector_for_each_text_is_none(content):
    with pytest.raises(UpstreamFault) as caught:
        response_of(content, "a", "b")
    assert (caught.value.kind, caught.value.status) == ("protocol", 200)


def test_an_error_in_place_of_vectors_is_that_error():
    with pytest.raises(UpstreamFault) as caught:
        response_of({"error": {"code": 429, "message": "slow down"}}, "a")
    assert caught.value.kind == "rate_limit"
