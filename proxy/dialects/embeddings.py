"""OpenAI's embeddings as clients speak them: POST /v1/embeddings."""

from __future__ import annotations

from typing import Any, ClassVar, Never

import msgspec

from proxy.canonical import EmbeddingRequest, EmbeddingResponse
from proxy.context import EMBED, EMBEDDINGS, AnswerFacts, Call
from proxy.dialects import fields
from proxy.dialects.base import Dialect, refuse_steering
from proxy.errors import Inexpressible
from proxy.openai_format.vectors import float32_base64

JSON = dict[str, Any]

#: The most texts (or lists of token ids) in one call, as OpenAI has it.
MAX_INPUTS = 2048
MAX_DIMENSIONS = 65_536
FORMATS = ("float", "base64")


class EmbeddingsDialect(Dialect):
    name: ClassVar[str] = EMBEDDINGS

    def parse_call(self, body: JSON) -> Call:
        """Members that are not known here go to providers of this dialect as they are. Nothing is streamed."""
        refuse_steering(body)
        model = fields.model(body)
        check_input(body.get("input"))
        fields.integer(body, "dimensions", 1, MAX_DIMENSIONS)
        wanted = body.get("encoding_format")
        if wanted is not None and wanted not in FORMATS:
            raise fields.refused("encoding_format", f"must be one of {', '.join(FORMATS)}")
        if fields.boolean(body, "stream"):
            raise fields.refused("stream", "is not possible here")
        return Call(
            dialect=EMBEDDINGS,
            operation=EMBED,
            body=body,
            model=model,
            user=fields.text(body, "user", fields.MAX_USER),
            metadata=fields.metadata(body),
        )

    def canonical(self, call: Call) -> EmbeddingRequest:
        given = call.body["input"]
        inputs = [given] if isinstance(given, str) else given
        if not isinstance(inputs[0], str):
            raise Inexpressible("'input' must be a text or a list of texts for this model.", param="input")
        return EmbeddingRequest(
            inputs=inputs, dimensions=fields.integer(call.body, "dimensions", 1, MAX_DIMENSIONS), user=call.user
        )

    def render_response(self, call: Call, response: EmbeddingResponse, facts: AnswerFacts) -> bytes:
        packed = call.body.get("encoding_format") == "base64"
        tokens = facts.usage.input_tokens
        document = {
            "object": "list",
            "data": [
                {"object": "embedding", "index": index, "embedding": float32_base64(vector) if packed else vector}
                for index, vector in enumerate(response.vectors)
            ],
            "model": facts.model,
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }
        return msgspec.json.encode(document)

    def stream_renderer(self, call: Call, request_id: str, model: str) -> Never:
        raise TypeError("embeddings are not streamed")


def check_input(given: Any) -> None:
    """A text, token ids, or a list of either. Raises BadRequest naming the entry that is none."""
    if isinstance(given, str):
        _check_text(given, "input")
    elif not isinstance(given, list) or not given:
        raise fields.refused("input", "must be a text, a list of texts or token ids that is not empty")
    elif fields.is_token_id(given[0]):
        _check_tokens(given, "input")
    else:
        if len(given) > MAX_INPUTS:
            raise fields.refused("input", f"has more than {MAX_INPUTS} entries")
        check = _check_text if isinstance(given[0], str) else _check_tokens
        for number, entry in enumerate(given):
            check(entry, f"input[{number}]")


def _check_text(entry: Any, path: str) -> None:
    if not isinstance(entry, str) or not entry:
        raise fields.refused(path, "must be a text that is not empty")


def _check_tokens(entry: Any, path: str) -> None:
    if not isinstance(entry, list) or not entry or not all(map(fields.is_token_id, entry)):
        raise fields.refused(path, "must be a list of token ids that is not empty")
