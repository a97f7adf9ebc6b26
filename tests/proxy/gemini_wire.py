"""Making what Gemini sends, and asking its adapter as the pipeline does."""

from __future__ import annotations

import json
from typing import Any

from proxy.canonical import ChatRequest, ChatResponse, Message, StreamEvent, Text
from proxy.context import Call, ProviderReply, ProviderTarget
from proxy.gemini_format.decoder import GeminiStreamDecoder
from proxy.providers.gemini import GeminiAdapter

JSON = dict[str, Any]

#: Two models that differ in how they think and whether they sign.
FLASH_25, FLASH_3 = "gemini-2.5-flash", "gemini-3-flash-preview"


def target(model: str = FLASH_25, base_url: str = "https://x", **members: Any) -> ProviderTarget:
    return ProviderTarget(provider="p", kind="gemini", model=model, base_url=base_url, **members)


def call_of(request: ChatRequest | None = None, **members: Any) -> Call:
    return Call(dialect="openai", body={}, model="m", canonical=request or ChatRequest(messages=[]), **members)


def sent(request: ChatRequest, model: str = FLASH_25, **members: Any) -> JSON:
    """The body that Gemini gets."""
    body: JSON = json.loads(GeminiAdapter().build_request(call_of(request, **members), target(model)).body)
    return body


def asked(*parts: Any, model: str = FLASH_25, **members: Any) -> JSON:
    """The body for one turn of a user."""
    return sent(ChatRequest(messages=[Message("user", list(parts) or [Text("hi")])], **members), model)


def config_of(model: str = FLASH_25, **members: Any) -> JSON:
    """generationConfig of the same; {} when there is none."""
    config: JSON = asked(model=model, **members).get("generationConfig", {})
    return config


def turns(*messages: Message, model: str = FLASH_25) -> list[JSON]:
    contents: list[JSON] = sent(ChatRequest(messages=list(messages)), model)["contents"]
    return contents


def document(*parts: JSON, finish: str | None = "STOP", **members: Any) -> JSON:
    """A GenerateContentResponse with one candidate."""
    candidate: JSON = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": FLASH_25, "responseId": "r-1"} | members


def function_call(name: str, args: JSON | None = None, **members: Any) -> JSON:
    return {"functionCall": {"name": name, "args": args or {}} | members}


def counts(prompt: int | None, said: int | None, **members: Any) -> JSON:
    """usageMetadata; a total that fits unless it is given."""
    usage: JSON = {"promptTokenCount": prompt, "candidatesTokenCount": said} | members
    return {name: value for name, value in usage.items() if value is not None}


def reply(content: Any, status: int = 200, **headers: str) -> ProviderReply:
    return ProviderReply(status, headers, content if isinstance(content, bytes) else json.dumps(content).encode())


def response_of(content: Any, request: ChatRequest | None = None) -> ChatResponse:
    response = GeminiAdapter().parse_response(call_of(request), reply(content))
    assert isinstance(response, ChatResponse)
    return response


def sse(*documents: JSON | bytes, end: bytes = b"\r\n\r\n") -> bytes:
    """Documents as Google streams them; bytes are taken as they are."""
    return b"".join(
        one if isinstance(one, bytes) else b"data: " + json.dumps(one, ensure_ascii=False).encode() + end
        for one in documents
    )


def played(*pieces: bytes, request: ChatRequest | None = None) -> tuple[GeminiStreamDecoder, list[StreamEvent]]:
    """A stream read to its end: the decoder, and all that came out of it."""
    decoder = GeminiAdapter().stream_decoder(call_of(request))
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return decoder, events + decoder.eof()
