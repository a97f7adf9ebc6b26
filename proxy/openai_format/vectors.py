"""OpenAI-style embeddings. Those of a provider stay undecoded: a call may bring megabytes of vectors."""

from __future__ import annotations

import sys
from array import array
from base64 import b64encode
from typing import Any

import msgspec

from proxy.canonical import Usage
from proxy.context import Answer, Call
from proxy.errors import UpstreamFault
from proxy.openai_format.errors import fault_of_error
from proxy.providers.base import token_count

JSON = dict[str, Any]


class _Embeddings(msgspec.Struct):
    data: list[msgspec.Raw] | None = None
    usage: Any = None
    error: Any = None


_decode = msgspec.json.Decoder(_Embeddings).decode


def embeddings_body(call: Call) -> JSON:
    """The client's own body, unknown members included."""
    return dict(call.body)


def whole_vectors(body: bytes) -> Answer:
    """A good answer that the client gets as it is. Raises UpstreamFault when it is none."""
    try:
        answer = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise UpstreamFault("protocol", "the answer is not a list of embeddings", status=200) from None
    if not answer.data:
        if answer.error:
            raise fault_of_error(answer.error)
        raise UpstreamFault("protocol", "an answer without embeddings", status=200)
    return Answer(body=body, usage=read_input_usage(answer.usage), finish_reason="stop")


def read_input_usage(source: Any) -> Usage | None:
    """prompt_tokens, or total_tokens where that is all there is (Voyage); None when there are none or nonsense."""
    try:
        tokens = token_count(source, "prompt_tokens")
        tokens = token_count(source, "total_tokens") if tokens is None else tokens
    except ValueError:
        return None
    return None if tokens is None else Usage(input_tokens=tokens)


def float32_base64(vector: list[float]) -> str:
    """A vector as OpenAI packs it: 32-bit floats, little-endian, in base64."""
    packed = array("f", vector)
    if sys.byteorder == "big":
        packed.byteswap()
    return b64encode(packed.tobytes()).decode()
