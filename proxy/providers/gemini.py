"""Google's Gemini API (generateContent, v1beta), and what answers like it."""

from __future__ import annotations

from typing import Any, ClassVar
from urllib.parse import quote

import msgspec

from proxy.canonical import ChatResponse, EmbeddingResponse
from proxy.context import CHAT, EMBED, Call, ProviderReply, ProviderRequest, ProviderTarget
from proxy.errors import UpstreamFault
from proxy.gemini_format.answer import chat_response
from proxy.gemini_format.decoder import GeminiStreamDecoder
from proxy.gemini_format.errors import fault_of_reply
from proxy.gemini_format.request import generate_body, original_names
from proxy.gemini_format.vectors import embedding_response, embeddings_body
from proxy.providers.base import Adapter

JSON = dict[str, Any]

_COLLECTIONS = ("models", "tunedModels")


class GeminiAdapter(Adapter):
    kind: ClassVar[str] = "gemini"
    operations: ClassVar[frozenset[str]] = frozenset((CHAT, EMBED))
    default_base_url: ClassVar[str | None] = "https://generativelanguage.googleapis.com"

    def build_request(self, call: Call, target: ProviderTarget) -> ProviderRequest:
        if call.canonical is None:
            raise TypeError("the canonical form is built before this provider is asked")
        collection, name = _place(target.model)
        if call.operation == EMBED:
            body = embeddings_body(call.canonical, f"{collection}/{name}")
            verb = "embedContent" if len(call.canonical.inputs) == 1 else "batchEmbedContents"
        else:
            body = generate_body(call.canonical, name, call.output_cap)
            verb = "streamGenerateContent?alt=sse" if call.stream else "generateContent"
        url = f"{_root(target.base_url)}/{collection}/{quote(name, safe='')}:{verb}"
        return ProviderRequest(url, _headers(call, target), msgspec.json.encode(body))

    def parse_response(self, call: Call, reply: ProviderReply) -> ChatResponse | EmbeddingResponse:
        if call.operation == EMBED:
            return embedding_response(reply.body, call.canonical)
        return chat_response(reply.body, original_names(call.canonical))

    def parse_error(self, reply: ProviderReply) -> UpstreamFault:
        return fault_of_reply(reply)

    def stream_decoder(self, call: Call) -> GeminiStreamDecoder:
        return GeminiStreamDecoder(original_names(call.canonical))


def _place(model: str) -> tuple[str, str]:
    """Collection and name of a model that may be given as Google writes it, models/gemini-2.5-flash."""
    collection, _, name = model.partition("/")
    return (collection, name) if name and collection in _COLLECTIONS else ("models", model)


def _root(base_url: str) -> str:
    """The address below which models are. One with a version inside (Vertex: …/v1/publishers/google) stays as it is."""
    origin = base_url.rstrip("/").removesuffix("/v1beta").removesuffix("/v1")
    return origin if "/v1/" in origin or "/v1beta1/" in origin else f"{origin}/v1beta"


def _headers(call: Call, target: ProviderTarget) -> dict[str, str]:
    """Configured headers win. The key is never in the address, which proxies write down."""
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream" if call.stream else "application/json",
    }
    if target.secret:
        headers["x-goog-api-key"] = target.secret
    return headers | {name.lower(): value for name, value in target.headers.items()}
