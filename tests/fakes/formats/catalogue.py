"""Which provider, and which native API of one, answers in which format."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from tests.fakes.formats import (
    anthropic_messages,
    bedrock_converse,
    gemini_generate,
    ollama_chat,
    openai_chat,
    openai_responses,
    openai_text,
)
from tests.fakes.formats.style import Format, compact


def _format(module: ModuleType) -> Format:
    return Format(module.whole, module.stream, module.SAYS)


OPENAI = _format(openai_chat)

#: What a provider of a kind answers to a translated request.
OF_KIND: dict[str, Format] = {
    "openai": OPENAI,
    "azure_openai": OPENAI,
    "openai_compatible": OPENAI,
    "mock": OPENAI,
    "anthropic": _format(anthropic_messages),
    "bedrock": _format(bedrock_converse),
    "gemini": _format(gemini_generate),
    "ollama": _format(ollama_chat),
}

#: What a provider answers to a client dialect that it speaks itself.
OF_DIALECT: dict[str, Format] = {
    "openai": OPENAI,
    "completions": _format(openai_text),
    "responses": _format(openai_responses),
    "anthropic": _format(anthropic_messages),
}

# ---------------------------------------------------------------- embeddings

VECTOR = [0.25, -0.5]
_PACKED = "AACAPgAAAL8="  # the same, as 32-bit floats in base64


def _openai_vectors(count: int, encoding: str) -> bytes:
    told = _PACKED if encoding == "base64" else VECTOR
    data = [{"object": "embedding", "index": index, "embedding": told} for index in range(count)]
    usage = {"prompt_tokens": 3, "total_tokens": 3}
    return compact({"object": "list", "data": data, "model": "m-1", "usage": usage}).encode()


def _gemini_vectors(count: int, encoding: str) -> bytes:
    vectors = [{"values": VECTOR}] * count
    return compact({"embedding": vectors[0]} if count == 1 else {"embeddings": vectors}).encode()


def _titan_vector(count: int, encoding: str) -> bytes:
    return compact({"embedding": VECTOR, "inputTextTokenCount": 3}).encode()


def _ollama_vectors(count: int, encoding: str) -> bytes:
    return compact({"model": "m-1", "embeddings": [VECTOR] * count, "prompt_eval_count": 3}).encode()


#: What a provider answers to so many texts, in the encoding that the client asked for.
VECTORS: dict[str, Callable[[int, str], bytes]] = {
    "openai": _openai_vectors,
    "azure_openai": _openai_vectors,
    "openai_compatible": _openai_vectors,
    "mock": _openai_vectors,
    "gemini": _gemini_vectors,
    "bedrock": _titan_vector,
    "ollama": _ollama_vectors,
}
