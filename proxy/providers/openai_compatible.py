"""Any server that speaks OpenAI's chat completions: vLLM, Groq, Mistral, DeepSeek, OpenRouter, … A vendor is a row."""

from __future__ import annotations

from typing import Any, ClassVar

from proxy.context import COMPLETIONS, EMBEDDINGS, OPENAI, Call, ProviderTarget
from proxy.openai_format.vendors import fit, takes_signatures
from proxy.providers.openai import OpenAIAdapter

JSON = dict[str, Any]


class OpenAICompatibleAdapter(OpenAIAdapter):
    kind: ClassVar[str] = "openai_compatible"
    #: What such servers have in common; other APIs are translated to chat completions.
    dialects: ClassVar[frozenset[str]] = frozenset((OPENAI, COMPLETIONS, EMBEDDINGS))
    default_base_url: ClassVar[str | None] = None
    needs_secret: ClassVar[bool] = False
    #: The name every such server knows.
    limit_member: ClassVar[str] = "max_tokens"
    #: Some want `reasoning_content` back (DeepSeek).
    private_members: ClassVar[tuple[str, ...]] = ("extra_content",)

    def _own_chat(self, call: Call, target: ProviderTarget) -> JSON:
        return fit(super()._own_chat(call, target), target.base_url)

    def _translated(self, call: Call, target: ProviderTarget) -> JSON:
        return fit(super()._translated(call, target), target.base_url)

    def _takes_signatures(self, target: ProviderTarget) -> bool:
        return takes_signatures(target.base_url)

    def _public_extra(self, extra: Any) -> JSON:
        """A vendor's own entry (Google's thought_signature) must come back to it; the gateway's must not."""
        if not isinstance(extra, dict):
            return {}
        kept = {name: value for name, value in extra.items() if name != "tollbar"}
        return {"extra_content": kept} if kept else {}
