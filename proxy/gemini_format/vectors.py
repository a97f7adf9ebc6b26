"""Gemini's embeddings: `embedContent` for one text, `batchEmbedContents` for several."""

from __future__ import annotations

from typing import Any

import msgspec

from proxy.canonical import EmbeddingRequest, EmbeddingResponse, Usage
from proxy.errors import UpstreamFault
from proxy.gemini_format.errors import fault_of_error
from proxy.gemini_format.shapes import UNREADABLE
from proxy.providers.base import token_count

JSON = dict[str, Any]


class _Vector(msgspec.Struct):
    values: list[float]


class _Answer(msgspec.Struct):
    embedding: _Vector | None = None
    embeddings: list[_Vector] | None = None
    usageMetadata: Any = None  # noqa: N815 - as Google spells it
    error: Any = None


_decode = msgspec.json.Decoder(_Answer).decode


def embeddings_body(request: EmbeddingRequest, model: str) -> JSON:
    """The body of embedContent for one text, of batchEmbedContents for more; `model` with its collection."""
    wanted = [_one(text, model, request.dimensions) for text in request.inputs]
    return wanted[0] if len(wanted) == 1 else {"requests": wanted}


def _one(text: str, model: str, dimensions: int | None) -> JSON:
    request: JSON = {"model": model, "content": {"parts": [{"text": text}]}}
    if dimensions is not None:
        request["outputDimensionality"] = dimensions
    return request


def embedding_response(body: bytes, request: EmbeddingRequest) -> EmbeddingResponse:
    """One vector an input. Raises UpstreamFault for an answer that has other than that."""
    try:
        answer = _decode(body)
    except UNREADABLE:
        raise UpstreamFault("protocol", "the answer is not a list of embeddings", status=200) from None
    if answer.error:
        raise fault_of_error(answer.error)
    found = answer.embeddings if answer.embeddings is not None else [answer.embedding] if answer.embedding else []
    if len(found) != len(request.inputs):
        message = f"{len(found)} embeddings for {len(request.inputs)} texts"
        raise UpstreamFault("protocol", message, status=200)
    return EmbeddingResponse(vectors=[vector.values for vector in found], usage=_usage(answer.usageMetadata))


def _usage(source: Any) -> Usage | None:
    try:
        tokens = token_count(source, "promptTokenCount")
        tokens = token_count(source, "totalTokenCount") if tokens is None else tokens
    except ValueError:
        return None
    return None if tokens is None else Usage(input_tokens=tokens)
