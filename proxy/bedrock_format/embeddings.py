"""Vectors through InvokeModel: Amazon's Titan and Cohere's Embed, each with its own words.

Titan takes one text a call, and a request of ours is one call: several are refused. Cohere is told that texts are
documents to be searched, which is what OpenAI's API means by leaving the purpose open.
"""

from __future__ import annotations

from typing import Any

from proxy.bedrock_format.answer import document_of
from proxy.canonical import EmbeddingRequest, EmbeddingResponse, Usage
from proxy.context import ProviderReply
from proxy.errors import BadRequest, UpstreamFault
from proxy.providers.base import token_count

JSON = dict[str, Any]

_TOKENS_HEADER = "x-amzn-bedrock-input-token-count"


def embedding_body(request: EmbeddingRequest, model: str) -> JSON:
    """Raises BadRequest for what the model cannot be asked."""
    if "titan-embed" in model:
        return _titan(request, model)
    if "cohere.embed" in model:
        return _cohere(request, model)
    raise BadRequest("The provider does not offer embeddings by this model.", param="model")


def embedding_response(reply: ProviderReply, expected: int) -> EmbeddingResponse:
    """The vectors of `expected` texts. Raises UpstreamFault when there are not so many."""
    document = document_of(reply.body)
    vectors = _vectors(document)
    if len(vectors) != expected or not all(_is_vector(vector) for vector in vectors):
        raise UpstreamFault("protocol", "the answer has not one vector for each text", status=200)
    return EmbeddingResponse(vectors=vectors, usage=_usage(reply, document))


def _titan(request: EmbeddingRequest, model: str) -> JSON:
    if len(request.inputs) != 1:
        raise BadRequest("This model takes one text a request: send the texts one by one.", param="input")
    body: JSON = {"inputText": request.inputs[0]}
    if request.dimensions is None:
        return body
    if "titan-embed-image" in model:
        return body | {"embeddingConfig": {"outputEmbeddingLength": request.dimensions}}
    if "titan-embed-text-v1" in model or "titan-embed-g1" in model:
        raise BadRequest("This model's vectors have one length only.", param="dimensions")
    return body | {"dimensions": request.dimensions}


def _cohere(request: EmbeddingRequest, model: str) -> JSON:
    body: JSON = {"texts": request.inputs, "input_type": "search_document", "embedding_types": ["float"]}
    if request.dimensions is None:
        return body
    if "-v3" in model:
        raise BadRequest("This model's vectors have one length only.", param="dimensions")
    return body | {"output_dimension": request.dimensions}


def _vectors(document: JSON) -> list[Any]:
    if "embedding" in document:
        return [document["embedding"]]
    found = document.get("embeddings")
    if isinstance(found, dict):  # by type
        found = found.get("float")
    return found if isinstance(found, list) else []


def _is_vector(vector: Any) -> bool:
    return isinstance(vector, list) and bool(vector) and all(type(number) in {int, float} for number in vector)


def _usage(reply: ProviderReply, document: JSON) -> Usage | None:
    header = reply.headers.get(_TOKENS_HEADER, "")
    source = (
        {"n": int(header)}
        if header.isascii() and header.isdecimal() and len(header) < 12
        else {"n": document.get("inputTextTokenCount")}
    )
    try:
        count = token_count(source, "n")
    except ValueError:
        return None
    return None if count is None else Usage(input_tokens=count)
