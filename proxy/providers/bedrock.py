"""Amazon Bedrock: chat by Converse and ConverseStream, embeddings by InvokeModel.

A provider with a credential of its own sends it as a bearer token (a Bedrock API key); every other request is signed on
its way out, in the provider's region.
"""

from __future__ import annotations

import re
from typing import ClassVar
from urllib.parse import quote

import msgspec

from proxy.bedrock_format.answer import chat_response
from proxy.bedrock_format.decoder import ConverseStreamDecoder
from proxy.bedrock_format.embeddings import embedding_body, embedding_response
from proxy.bedrock_format.errors import fault_of_reply
from proxy.bedrock_format.request import converse_body, offered_names
from proxy.canonical import ChatRequest, ChatResponse, EmbeddingRequest, EmbeddingResponse
from proxy.context import CHAT, EMBED, Call, ProviderReply, ProviderRequest, ProviderTarget
from proxy.errors import UpstreamFault
from proxy.providers.base import Adapter

_EVENT_STREAM = "application/vnd.amazon.eventstream"
_REGION = "{region}"
#: The region in the host of one of AWS's own endpoints, private and FIPS ones included.
_HOST = re.compile(r"\.?bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.")


class BedrockAdapter(Adapter):
    kind: ClassVar[str] = "bedrock"
    operations: ClassVar[frozenset[str]] = frozenset((CHAT, EMBED))
    default_base_url: ClassVar[str | None] = f"https://bedrock-runtime.{_REGION}.amazonaws.com"
    needs_secret: ClassVar[bool] = False

    def build_request(self, call: Call, target: ProviderTarget) -> ProviderRequest:
        canonical = call.canonical
        if isinstance(canonical, EmbeddingRequest):
            operation, body = "invoke", embedding_body(canonical, target.model)
        elif isinstance(canonical, ChatRequest):
            operation = "converse-stream" if call.stream else "converse"
            body = converse_body(canonical, target.model, call.output_cap)
        else:
            raise TypeError("the canonical form is built before this provider is asked")
        region = _region(target)
        url = f"{_base(target, region)}/model/{quote(target.model, safe='')}/{operation}"
        headers = {"content-type": "application/json", "accept": _EVENT_STREAM if call.stream else "application/json"}
        if target.secret:
            headers["authorization"] = f"Bearer {target.secret}"
        headers |= {name.lower(): value for name, value in target.headers.items()}
        return ProviderRequest(url, headers, msgspec.json.encode(body), None if target.secret else region)

    def parse_response(self, call: Call, reply: ProviderReply) -> ChatResponse | EmbeddingResponse:
        if isinstance(call.canonical, EmbeddingRequest):
            return embedding_response(reply, len(call.canonical.inputs))
        return chat_response(reply.body, offered_names(call.canonical))

    def parse_error(self, reply: ProviderReply) -> UpstreamFault:
        return fault_of_reply(reply)

    def stream_decoder(self, call: Call) -> ConverseStreamDecoder:
        return ConverseStreamDecoder(offered_names(call.canonical))


def _region(target: ProviderTarget) -> str:
    """Raises UpstreamFault `credential` when nothing says where the provider is."""
    if target.region:
        return target.region
    found = _HOST.search(target.base_url)
    if found is not None:
        return found[1]
    if target.secret and _REGION not in target.base_url:
        return ""  # a token is not bound to the region's name
    raise UpstreamFault("credential", "the provider has no region")


def _base(target: ProviderTarget, region: str) -> str:
    base = target.base_url.rstrip("/").replace(_REGION, region)
    return f"{base}.cn" if region.startswith("cn-") and _REGION in target.base_url else base
