"""Making what Bedrock sends: event streams frame by frame, and calls for the adapter."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

from proxy.canonical import ChatRequest, Message, Text, Tool
from proxy.context import Call, ProviderTarget
from proxy.providers.bedrock import BedrockAdapter

JSON = dict[str, Any]

CLAUDE = "anthropic.claude-sonnet-4-5-20250929-v1:0"
OLD_CLAUDE = "anthropic.claude-3-haiku-20240307-v1:0"
NOVA = "us.amazon.nova-lite-v1:0"


def header(name: str, kind: int, value: bytes) -> bytes:
    """A header of any type; texts and bytes get their length in front."""
    head = bytes((len(name.encode()),)) + name.encode() + bytes((kind,))
    return head + (struct.pack(">H", len(value)) + value if kind in (6, 7) else value)


def frame(headers: bytes, payload: bytes) -> bytes:
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return message + struct.pack(">I", zlib.crc32(message))


def text_frame(headers: dict[str, str], payload: bytes) -> bytes:
    return frame(b"".join(header(name, 7, value.encode()) for name, value in headers.items()), payload)


def event(name: str, **members: Any) -> bytes:
    """An event with the padding that AWS adds."""
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return text_frame(headers, json.dumps({"p": "abcdef", **members}, ensure_ascii=False).encode())


def exception(name: str, message: str) -> bytes:
    headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
    return text_frame(headers, json.dumps({"message": message}).encode())


def started() -> bytes:
    return event("messageStart", role="assistant")


def delta(index: int, **members: Any) -> bytes:
    return event("contentBlockDelta", contentBlockIndex=index, delta=members)


def stopped(index: int) -> bytes:
    return event("contentBlockStop", contentBlockIndex=index)


def tool_use(index: int, call_id: str, name: str, *pieces: str, **members: Any) -> bytes:
    start = {"toolUse": {"toolUseId": call_id, "name": name, **members}}
    fragments = b"".join(delta(index, toolUse={"input": piece}) for piece in pieces)
    return event("contentBlockStart", contentBlockIndex=index, start=start) + fragments + stopped(index)


def ended(reason: str = "end_turn", **members: Any) -> bytes:
    return event("messageStop", stopReason=reason, **members)


def metadata(**usage: Any) -> bytes:
    return event("metadata", usage=usage or {"inputTokens": 25, "outputTokens": 9, "totalTokens": 34}, metrics={})


#: A whole answer in two pieces, one of them not ASCII.
STREAM = started() + delta(0, text="Grüße ") + delta(0, text="🌍") + stopped(0) + ended() + metadata()


def target(model: str = CLAUDE, **members: Any) -> ProviderTarget:
    base_url = members.pop("base_url", BedrockAdapter.default_base_url)
    return ProviderTarget(
        **({"provider": "p", "kind": "bedrock", "model": model, "base_url": base_url, "region": "eu-west-1"} | members)
    )


def call_of(canonical: Any = None, **members: Any) -> Call:
    return Call(dialect="openai", body={}, model="alias", canonical=canonical, **members)


def written(request: ChatRequest, model: str = CLAUDE, **members: Any) -> JSON:
    """The body that the provider gets."""
    return json.loads(BedrockAdapter().build_request(call_of(request, **members), target(model)).body)


def asked(*parts: Any, model: str = CLAUDE, **members: Any) -> JSON:
    """The body for one message of the user's."""
    return written(ChatRequest(messages=[Message("user", list(parts) or [Text("hi")])], **members), model)


def tool(name: str = "weather", **members: Any) -> Tool:
    return Tool(name, "Tells the weather", {"type": "object", "properties": {"city": {"type": "string"}}}, **members)
