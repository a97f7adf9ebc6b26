"""Embeddings of Ollama (POST /api/embed)."""

import json

import pytest

from proxy.canonical import EmbeddingRequest, EmbeddingResponse, Usage
from proxy.context import EMBED, EMBEDDINGS, Call, ProviderReply, ProviderTarget
from proxy.errors import UpstreamFault
from proxy.providers.ollama import OllamaAdapter

TARGET = ProviderTarget(provider="local", kind="ollama", model="embedder", base_url="http://127.0.0.1:11434/v1")


def call(*inputs: str, dimensions: int | None = None) -> Call:
    request = EmbeddingRequest(inputs=list(inputs), dimensions=dimensions)
    return Call(dialect=EMBEDDINGS, operation=EMBED, body={}, model="m", canonical=request)


def answered(document: dict, *inputs: str) -> EmbeddingResponse:
    reply = ProviderReply(200, {}, json.dumps(document).encode())
    response = OllamaAdapter().parse_response(call(*inputs), reply)
    assert isinstance(response, EmbeddingResponse)
    return response


def test_texts_are_sent_together_and_never_cut():
    request = OllamaAdapter().build_request(call("a", "b", dimensions=3), TARGET)
    assert request.url == "http://127.0.0.1:11434/api/embed"
    assert json.loads(request.body) == {"model": "embedder", "input": ["a", "b"], "truncate": False, "dimensions": 3}
    assert "dimensions" not in json.loads(OllamaAdapter().build_request(call("a"), TARGET).body)


def test_vectors_come_back_in_order_with_the_tokens_of_the_input():
    response = answered({"model": "embedder", "embeddings": [[0.5, 1], [0, -1]], "prompt_eval_count": 4}, "a", "b")
    assert response.vectors == [[0.5, 1], [0, -1]]
    assert response.usage == Usage(input_tokens=4)
    assert answered({"embeddings": [[1.0]]}, "a").usage is None


@pytest.mark.parametrize("document", [{}, {"embeddings": [[1.0]]}, {"embeddings": None}, {"error": "no"}])
def test_an_answer_without_a_vector_for_each_input_is_none(document):
    with pytest.raises(UpstreamFault):
        answered(document, "a", "b")


@pytest.mark.parametrize("status", [400, 500])
def test_a_text_that_is_too_long_is_the_callers_fault(status):
    body = b'{"error":"the input length exceeds the context length"}'
    fault = OllamaAdapter().parse_error(ProviderReply(status, {}, body))
    assert (fault.kind, fault.code) == ("request", "context_length_exceeded")
