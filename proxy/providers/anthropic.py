"""Anthropic's Messages API (POST /v1/messages)."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from proxy.anthropic_format.answer import chat_response, whole_answer, whole_count
from proxy.anthropic_format.decoder import AnthropicStreamDecoder
from proxy.anthropic_format.errors import fault_of_reply
from proxy.anthropic_format.relay import AnthropicRelay
from proxy.anthropic_format.request import messages_body, original_names
from proxy.anthropic_format.shapes import is_signed
from proxy.canonical import ChatResponse
from proxy.context import (
    ANTHROPIC,
    CHAT,
    COUNT,
    COUNT_TOKENS,
    Answer,
    Call,
    ProviderReply,
    ProviderRequest,
    ProviderTarget,
)
from proxy.errors import UpstreamFault
from proxy.providers.base import Adapter

JSON = dict[str, Any]

#: For callers that name no anthropic-version.
API_VERSION = "2023-06-01"
_BETA = "anthropic-beta"


class AnthropicAdapter(Adapter):
    kind: ClassVar[str] = "anthropic"
    dialects: ClassVar[frozenset[str]] = frozenset((ANTHROPIC, COUNT_TOKENS))
    operations: ClassVar[frozenset[str]] = frozenset((CHAT, COUNT))
    default_base_url: ClassVar[str | None] = "https://api.anthropic.com"

    def build_request(self, call: Call, target: ProviderTarget) -> ProviderRequest:
        body = _own_body(call, target) if call.dialect in self.dialects else _translated(call, target)
        url = f"{target.base_url.rstrip('/').removesuffix('/v1')}/v1/messages"
        if call.operation == COUNT:
            url += "/count_tokens"
        return ProviderRequest(url, _headers(call, target), msgspec.json.encode(body))

    def parse_response(self, call: Call, reply: ProviderReply) -> ChatResponse:
        return chat_response(reply.body, original_names(call.canonical))

    def pass_through(self, call: Call, reply: ProviderReply) -> Answer:
        return whole_count(reply.body) if call.operation == COUNT else whole_answer(reply.body)

    def parse_error(self, reply: ProviderReply) -> UpstreamFault:
        return fault_of_reply(reply)

    def stream_decoder(self, call: Call) -> AnthropicStreamDecoder:
        return AnthropicStreamDecoder(original_names(call.canonical))

    def stream_pass_through(self, call: Call) -> AnthropicRelay:
        return AnthropicRelay()


def _headers(call: Call, target: ProviderTarget) -> dict[str, str]:
    """Configured headers win, but for betas: those of the operator and of the client are all asked for."""
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream" if call.stream else "application/json",
        "anthropic-version": call.anthropic_version or API_VERSION,
    }
    if target.secret:
        headers["x-api-key"] = target.secret
    if call.anthropic_beta:
        headers[_BETA] = call.anthropic_beta
    configured = {name.lower(): value for name, value in target.headers.items()}
    if _BETA in configured and _BETA in headers:
        configured[_BETA] = f"{headers[_BETA]},{configured[_BETA]}"
    return headers | configured


def _translated(call: Call, target: ProviderTarget) -> JSON:
    if call.canonical is None:
        raise TypeError("the canonical form is built before a provider of another dialect is asked")
    body = messages_body(call.canonical, target.model, call.output_cap)
    if call.stream:
        body["stream"] = True
    return body


def _own_body(call: Call, target: ProviderTarget) -> JSON:
    """The client's own body, unknown members included."""
    body = call.body | {"model": target.model}
    messages = body["messages"]
    if any(_is_private(block) for message in messages for block in _blocks_of_assistant(message)):
        body["messages"] = [_public(message) for message in messages]
    return body


def _blocks_of_assistant(message: JSON) -> list[JSON]:
    content = message.get("content")
    if message.get("role") != "assistant" or not isinstance(content, list):
        return []
    return [block for block in content if isinstance(block, dict)]


def _is_private(block: JSON) -> bool:
    """What the gateway made of another provider's answer and Anthropic would refuse: see anthropic_format.shapes."""
    return "extra_content" in block or (block.get("type") == "thinking" and not is_signed(block.get("signature")))


def _public(message: JSON) -> JSON:
    blocks = _blocks_of_assistant(message)
    if not any(_is_private(block) for block in blocks):
        return message
    content = [
        {name: value for name, value in block.items() if name != "extra_content"}
        for block in blocks
        if block.get("type") != "thinking" or is_signed(block.get("signature"))
    ]
    return message | {"content": content or message["content"]}
