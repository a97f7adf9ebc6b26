"""Tollbar's own normalised format: POST /v1/chat. Strict: a member it does not have is refused."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from proxy.canonical import (
    ChatRequest,
    ChatResponse,
    Finished,
    RefusalDelta,
    StreamEvent,
    Text,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
)
from proxy.context import TOLLBAR, AnswerFacts, Call
from proxy.dialects import fields
from proxy.dialects.base import Dialect, refuse_steering
from proxy.dialects.openai_rendering import tool_call_object
from proxy.dialects.openai_request import chat_request
from proxy.errors import BadRequest
from proxy.openai_format.shapes import signature_extra
from proxy.sse import frame

JSON = dict[str, Any]

ROLES = ("user", "assistant", "system", "tool")
MAX_TOKENS = 32_000
MAX_PREFERENCES = 64
MAX_URL = 2048
#: The longest deadline a caller may ask for (seconds).
MAX_TIMEOUT = 86_400

MEMBERS = frozenset(
    (
        "model",
        "messages",
        "max_tokens",
        "temperature",
        "top_p",
        "stop",
        "seed",
        "tools",
        "tool_choice",
        "response_format",
        "stream",
        "user",
        "metadata",
        "provider_preference",
        "cheapest_first",
        "cache",
        "webhook_url",
        "background",
        "timeout",
    )
)

_encode = msgspec.json.encode


class TollbarDialect(Dialect):
    name: ClassVar[str] = TOLLBAR

    def parse_call(self, body: JSON) -> Call:
        refuse_steering(body)
        unknown = body.keys() - MEMBERS
        if unknown:
            name = min(unknown)[:100]
            raise BadRequest(f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)
        model = fields.model(body)
        fields.messages(body, ROLES)
        fields.number(body, "temperature", 0, 2)
        fields.number(body, "top_p", 0, 1)
        fields.stops(body)
        fields.objects(body, "tools", fields.MAX_TOOLS)
        stream, background = fields.boolean(body, "stream") or False, fields.boolean(body, "background") or False
        if stream and background:
            raise fields.refused("background", "cannot be combined with stream")
        call = Call(
            dialect=TOLLBAR,
            body=body,
            model=model,
            stream=stream,
            max_tokens=fields.integer(body, "max_tokens", 1, MAX_TOKENS),
            user=fields.text(body, "user", fields.MAX_USER),
            metadata=fields.metadata(body),
            provider_preference=_preference(body),
            cheapest_first=fields.boolean(body, "cheapest_first") or False,
            cache=fields.boolean(body, "cache"),
            webhook_url=_webhook_url(body),
            background=background,
            timeout_ms=_timeout_ms(body),
        )
        call.canonical = chat_request(call)  # no provider speaks this format, so it is needed anyway
        return call

    def canonical(self, call: Call) -> ChatRequest:
        return chat_request(call)

    def render_response(self, call: Call, response: ChatResponse, facts: AnswerFacts) -> bytes:
        text = "".join(part.text for part in response.parts if isinstance(part, Text))
        calls = [tool_call_object(part) for part in response.parts if isinstance(part, ToolCall)]
        answer = _answer(facts, calls, response.finish_reason)
        return _encode({"content": text or response.refusal or ""} | answer)

    def stream_renderer(self, call: Call, request_id: str, model: str) -> ChatStreamRenderer:
        return ChatStreamRenderer()


def _answer(facts: AnswerFacts, calls: list[JSON], finish_reason: str) -> JSON:
    """The whole answer less `content`."""
    usage = facts.usage
    return {
        "request_id": facts.request_id,
        "provider": facts.provider,
        "model": facts.model,
        "tool_calls": calls,
        "finish_reason": finish_reason,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "latency_ms": facts.latency_ms,
        "cost_usd": facts.cost_usd,
        "cached": facts.cached,
        "fallback_used": facts.fallback_used,
        "attempts": facts.attempts,
    }


class ChatStreamRenderer:
    """event: delta …, then event: done or event: error. Thinking is not part of this format."""

    def __init__(self) -> None:
        self._closed = False
        self._finish: str | None = None
        self._calls: dict[int, tuple[ToolCall, list[str]]] = {}  # with the fragments of their arguments

    def render(self, events: list[StreamEvent]) -> bytes:
        return b"" if self._closed else b"".join([self._frame_of(event) for event in events])

    def end(self, facts: AnswerFacts) -> bytes:
        if self._closed:
            return b""
        self._closed = True
        calls = []
        for _, (call, fragments) in sorted(self._calls.items()):
            call.arguments = "".join(fragments)
            calls.append(tool_call_object(call))
        return frame(_encode(_answer(facts, calls, self._finish or facts.finish_reason)), "done")

    def fail(self, message: str, code: str, type_: str, request_id: str) -> bytes:
        if self._closed:
            return b""
        self._closed = True
        error = {"message": message, "type": type_, "param": None, "code": code, "details": None}
        return frame(_encode({"error": error, "request_id": request_id}), "error")

    def _frame_of(self, event: StreamEvent) -> bytes:
        if isinstance(event, TextDelta | RefusalDelta):
            return frame(b'{"content":%b}' % _encode(event.text), "delta")
        if isinstance(event, ToolCallStart):
            return self._call_start(event)
        if isinstance(event, ToolCallDelta) and event.index in self._calls:
            self._calls[event.index][1].append(event.arguments)
            return _fragment({"index": event.index, "function": {"arguments": event.arguments}})
        if isinstance(event, Finished):
            self._finish = event.finish_reason
        return b""

    def _call_start(self, event: ToolCallStart) -> bytes:
        if event.index in self._calls:
            return b""
        self._calls[event.index] = (ToolCall(event.id, event.name, "", event.signature), [])
        call: JSON = {
            "index": event.index,
            "id": event.id,
            "type": "function",
            "function": {"name": event.name, "arguments": ""},
        }
        if event.signature:
            call["extra_content"] = signature_extra(event.signature)
        return _fragment(call)


def _fragment(call: JSON) -> bytes:
    return frame(_encode({"tool_calls": [call]}), "delta")


def _preference(body: JSON) -> list[str] | None:
    value = body.get("provider_preference")
    if value is None:
        return None
    if not isinstance(value, list) or len(value) > MAX_PREFERENCES or not all(isinstance(name, str) for name in value):
        raise fields.refused("provider_preference", f"must be a list of at most {MAX_PREFERENCES} provider names")
    return value


def _webhook_url(body: JSON) -> str | None:
    """Only its form: whether its address may be called is decided when it is."""
    value = fields.text(body, "webhook_url", MAX_URL)
    if value is not None and (not value.startswith(("https://", "http://")) or any(c.isspace() for c in value)):
        raise fields.refused("webhook_url", "must be an https: or http: URL")
    return value


def _timeout_ms(body: JSON) -> int | None:
    seconds = fields.number(body, "timeout", 0, MAX_TIMEOUT)
    if seconds is None:
        return None
    if seconds == 0:
        raise fields.refused("timeout", "must be more than 0 seconds")
    return max(int(seconds * 1000), 1)
