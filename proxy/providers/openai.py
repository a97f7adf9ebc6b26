"""OpenAI: chat completions, and the APIs of `native` for clients that speak them. Its relatives extend the class."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from proxy.canonical import ChatResponse
from proxy.context import (
    CHAT,
    COMPLETIONS,
    EMBED,
    EMBEDDINGS,
    OPENAI,
    RESPONSES,
    Answer,
    Call,
    ProviderReply,
    ProviderRequest,
    ProviderTarget,
    Relay,
)
from proxy.errors import UpstreamFault
from proxy.openai_format.answer import chat_response, whole_answer
from proxy.openai_format.decoder import OpenAIStreamDecoder
from proxy.openai_format.errors import fault_of_reply
from proxy.openai_format.native import NativeApi
from proxy.openai_format.relay import OpenAIRelay
from proxy.openai_format.request import chat_body
from proxy.openai_format.responses_answer import own_body, whole_response
from proxy.openai_format.responses_relay import ResponsesRelay
from proxy.openai_format.text import TextRelay, text_body, whole_text
from proxy.openai_format.vectors import embeddings_body, whole_vectors
from proxy.providers.base import Adapter

JSON = dict[str, Any]

#: Members by which a client may limit the output.
_LIMITS = ("max_completion_tokens", "max_tokens")

_CHAT = NativeApi("/chat/completions", whole_answer, OpenAIRelay)


class OpenAIAdapter(Adapter):
    kind: ClassVar[str] = "openai"
    #: Client dialect -> the API of the same words. ADD AN API = ADD A LINE HERE; `dialects` says which a kind has.
    native: ClassVar[dict[str, NativeApi]] = {
        OPENAI: _CHAT,
        COMPLETIONS: NativeApi("/completions", whole_text, TextRelay, text_body),
        EMBEDDINGS: NativeApi("/embeddings", whole_vectors, body=embeddings_body),
        RESPONSES: NativeApi("/responses", whole_response, ResponsesRelay, own_body),
    }
    dialects: ClassVar[frozenset[str]] = frozenset(native)
    operations: ClassVar[frozenset[str]] = frozenset((CHAT, EMBED))
    default_base_url: ClassVar[str | None] = "https://api.openai.com/v1"
    #: The member that limits the output when the gateway writes one; newer OpenAI models refuse max_tokens.
    limit_member: ClassVar[str] = "max_completion_tokens"
    #: Members of messages that carry thinking between the gateway and its clients: OpenAI knows none of them.
    private_members: ClassVar[tuple[str, ...]] = ("extra_content", "reasoning_content")

    def build_request(self, call: Call, target: ProviderTarget) -> ProviderRequest:
        api = self.native[call.dialect] if call.dialect in self.dialects else None
        body = self._translated(call, target) if api is None else self._own_body(api, call, target)
        url = self._url(target, (api or _CHAT).path)
        return ProviderRequest(url, self._headers(call, target), msgspec.json.encode(body))

    def parse_response(self, call: Call, reply: ProviderReply) -> ChatResponse:
        return chat_response(reply.body)

    def pass_through(self, call: Call, reply: ProviderReply) -> Answer:
        return self.native[call.dialect].pass_through(reply.body)

    def parse_error(self, reply: ProviderReply) -> UpstreamFault:
        return fault_of_reply(reply)

    def stream_decoder(self, call: Call) -> OpenAIStreamDecoder:
        return OpenAIStreamDecoder()

    def stream_pass_through(self, call: Call) -> Relay:
        relay = self.native[call.dialect].relay
        if relay is None:
            raise TypeError(f"{call.dialect} does not stream")
        return relay(call)

    def _url(self, target: ProviderTarget, path: str) -> str:
        """Where the API at `path` is."""
        return f"{target.base_url.rstrip('/')}{path}"

    def _headers(self, call: Call, target: ProviderTarget) -> dict[str, str]:
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream" if call.stream else "application/json",
        }
        if target.secret:
            headers |= self._credential(target.secret)
        return {**headers, **target.headers} if target.headers else headers

    def _credential(self, secret: str) -> dict[str, str]:
        """The header by which the provider knows the operator."""
        return {"authorization": f"Bearer {secret}"}

    def _own_body(self, api: NativeApi, call: Call, target: ProviderTarget) -> JSON:
        """The client's own body, unknown members included."""
        if api.body is None:
            return self._own_chat(call, target)
        body = api.body(call)
        body["model"] = target.model
        return body

    def _own_chat(self, call: Call, target: ProviderTarget) -> JSON:
        body = call.body | {"model": target.model}
        messages = body["messages"]
        if any(message["role"] == "assistant" and self._has_private(message) for message in messages):
            body["messages"] = [self._public(message) for message in messages]
        if call.output_cap is not None and all(body.get(name) is None for name in _LIMITS):
            body[self.limit_member] = call.output_cap
        return _with_usage(body) if call.stream else body

    def _has_private(self, message: JSON) -> bool:
        if any(name in message for name in self.private_members):
            return True
        calls = message.get("tool_calls")
        return isinstance(calls, list) and any("extra_content" in call for call in calls if isinstance(call, dict))

    def _public(self, message: JSON) -> JSON:
        """A message without what only the gateway and its clients use."""
        written = {name: value for name, value in message.items() if name not in self.private_members}
        if "extra_content" in message:
            written |= self._public_extra(message["extra_content"])
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            written["tool_calls"] = [self._public_call(call) for call in calls]
        return written

    def _public_call(self, call: Any) -> Any:
        if not isinstance(call, dict) or "extra_content" not in call:
            return call
        written = {name: value for name, value in call.items() if name != "extra_content"}
        return written | self._public_extra(call["extra_content"])

    def _public_extra(self, extra: Any) -> JSON:
        """What of an extra_content this provider gets: an object with that member, or an empty one."""
        return {}

    def _takes_signatures(self, target: ProviderTarget) -> bool:
        """Whether signatures of tool calls go back."""
        return False

    def _translated(self, call: Call, target: ProviderTarget) -> JSON:
        if call.canonical is None:
            raise TypeError("the canonical form is built before a provider of another dialect is asked")
        body = chat_body(call.canonical, target.model, signed=self._takes_signatures(target))
        limit = call.canonical.max_tokens or call.output_cap
        if limit is not None:
            body[self.limit_member] = limit
        if call.stream:
            body["stream"] = True
            _with_usage(body)
        return body


def _with_usage(body: JSON) -> JSON:
    """`body` asking for the usage of its stream, whatever the client wants of it."""
    options = body.get("stream_options")
    body["stream_options"] = {**(options if isinstance(options, dict) else {}), "include_usage": True}
    return body
