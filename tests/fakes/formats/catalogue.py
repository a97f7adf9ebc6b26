"""Which provider, and which native API of one, answers in which format."""

from __future__ import annotations

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
from tests.fakes.formats.style import Format


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
