"""Ollama's own API. Chat (POST /api/chat): newline-delimited JSON, tool calls whole, arguments as objects.

It cannot be made to call a tool: a tool that was chosen is the only one offered, and "required" offers all.
"""

from __future__ import annotations

import re
import uuid
from typing import Any, ClassVar

import msgspec

from proxy.canonical import (
    ChatRequest,
    ChatResponse,
    EmbeddingRequest,
    EmbeddingResponse,
    File,
    Finished,
    FinishReason,
    Foreign,
    Image,
    Message,
    StreamEvent,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    Tool,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    ToolResult,
    Usage,
    UsageSeen,
)
from proxy.context import CHAT, EMBED, Call, ProviderReply, ProviderRequest, ProviderTarget
from proxy.errors import BadRequest, UpstreamFault
from proxy.providers.base import Adapter, fault_from_status, retry_after_ms, token_count
from proxy.sse import LineParser

JSON = dict[str, Any]

#: The most of a provider's words that is kept (characters).
MAX_MESSAGE = 2000

#: Members of the canonical request that are options of the same name.
_OPTIONS = ("temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty")

#: reasoning_effort -> `think`. Models without levels take any of them as true.
_THINK = {
    "none": False,
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "high",
}

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_TOO_LONG = re.compile(r"context (length|window)|prompt too long|input length", re.IGNORECASE)
_MODEL = re.compile(r"\bmodel\b.{0,200}not found", re.IGNORECASE | re.DOTALL)


class OllamaAdapter(Adapter):
    kind: ClassVar[str] = "ollama"
    operations: ClassVar[frozenset[str]] = frozenset((CHAT, EMBED))
    default_base_url: ClassVar[str | None] = "http://127.0.0.1:11434"
    needs_secret: ClassVar[bool] = False

    def build_request(self, call: Call, target: ProviderTarget) -> ProviderRequest:
        if call.canonical is None:
            raise TypeError("the canonical form is built before this provider is asked")
        embedding = call.operation == EMBED
        body = _embed_body(call.canonical, target.model) if embedding else _body(call.canonical, call, target.model)
        headers = {"content-type": "application/json"}
        if target.secret:
            headers["authorization"] = f"Bearer {target.secret}"
        origin = target.base_url.rstrip("/").removesuffix("/v1").removesuffix("/api")
        url = f"{origin}/api/{'embed' if embedding else 'chat'}"
        return ProviderRequest(url, headers | target.headers, msgspec.json.encode(body))

    def parse_response(self, call: Call, reply: ProviderReply) -> ChatResponse | EmbeddingResponse:
        document = _document(reply.body)
        if call.operation == EMBED:
            return EmbeddingResponse(vectors=_vectors(document, call.canonical), usage=_usage(document))
        message = document.get("message")
        if not isinstance(message, dict) or document.get("done") is not True:
            raise UpstreamFault("protocol", "the answer is not a whole message", status=200)
        parts: list[Any] = []
        if _text(message, "thinking"):
            parts.append(Thinking(text=_text(message, "thinking")))
        if _text(message, "content"):
            parts.append(Text(_text(message, "content")))
        calls = _calls(message)
        native = _text(document, "done_reason") or None
        return ChatResponse(
            model=_text(document, "model") or None,
            parts=parts + calls,
            finish_reason=_finish(native, has_calls=bool(calls)),
            native_finish=native,
            usage=_usage(document),
        )

    def parse_error(self, reply: ProviderReply) -> UpstreamFault:
        message = _error_text(reply.body)
        fault = fault_from_status(reply.status, message, retry_after_ms=retry_after_ms(reply.headers))
        if fault.kind == "request" and _MODEL.search(message):
            fault.kind = "not_found"
        elif fault.kind in ("request", "server") and _TOO_LONG.search(message):  # 500 in older versions
            fault.kind, fault.code = "request", "context_length_exceeded"
        return fault

    def stream_decoder(self, call: Call) -> OllamaStreamDecoder:
        return OllamaStreamDecoder()


class OllamaStreamDecoder:
    """StreamDecoder of this format. The line with `done: true` is the terminal marker."""

    def __init__(self) -> None:
        self.fault: UpstreamFault | None = None
        self.done = False
        self._lines = LineParser()
        self._calls = 0

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        return self._take(self._lines.feed(chunk))

    def eof(self) -> list[StreamEvent]:
        events = self._take(self._lines.flush())
        if not self.done and self.fault is None:
            self.fault = UpstreamFault("protocol", "the stream ended before its last line", status=200)
        return events

    def _take(self, lines: list[bytes]) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for line in lines:
            if self.done or self.fault is not None:
                return events
            try:
                self._read(_document(line), events)
            except UpstreamFault as fault:
                self.fault = fault
        if self.fault is None and not self.done:
            self.fault = self._lines.fault
        return events

    def _read(self, document: JSON, events: list[StreamEvent]) -> None:
        message = document.get("message")
        if isinstance(message, dict):
            self._read_message(message, events)
        if document.get("done") is True:
            usage = _usage(document)
            if usage is not None:
                events.append(UsageSeen(usage))
            native = _text(document, "done_reason") or None
            events.append(Finished(_finish(native, has_calls=self._calls > 0), native))
            self.done = True

    def _read_message(self, message: JSON, events: list[StreamEvent]) -> None:
        if _text(message, "thinking"):
            events.append(ThinkingDelta(_text(message, "thinking")))
        if _text(message, "content"):
            events.append(TextDelta(_text(message, "content")))
        for call in _calls(message):
            events += [ToolCallStart(self._calls, call.id, call.name), ToolCallDelta(self._calls, call.arguments)]
            self._calls += 1


# ---------------------------------------------------------------- reading


def _document(raw: bytes) -> JSON:
    """One JSON object. Raises UpstreamFault for none, and for one that is an error."""
    try:
        document = msgspec.json.decode(raw)
    except _UNREADABLE:
        raise UpstreamFault("protocol", "the answer is not JSON", status=200) from None
    if not isinstance(document, dict):
        raise UpstreamFault("protocol", "the answer is not an object", status=200)
    if document.get("error"):
        raise UpstreamFault("server", str(document["error"])[:MAX_MESSAGE], status=200)
    return document


def _error_text(body: bytes) -> str:
    """{"error": "text"}, or plain text of what stands before Ollama; a page of HTML says nothing worth reading."""
    try:
        document = msgspec.json.decode(body)
    except _UNREADABLE:
        text = " ".join(body[:MAX_MESSAGE].decode("utf-8", "replace").split())
        return "" if text.startswith(("<", "{", "[")) or "\x00" in text else text[:500]
    error = document.get("error") if isinstance(document, dict) else None
    if isinstance(error, dict):
        error = error.get("message")
    return error[:MAX_MESSAGE] if isinstance(error, str) else ""


def _vectors(document: JSON, request: EmbeddingRequest) -> list[list[float]]:
    vectors = document.get("embeddings")
    if not isinstance(vectors, list) or len(vectors) != len(request.inputs):
        raise UpstreamFault("protocol", "not one embedding for each input", status=200)
    return vectors


def _text(document: JSON, name: str) -> str:
    value = document.get(name)
    return value if isinstance(value, str) else ""


def _calls(message: JSON) -> list[ToolCall]:
    """The calls of a message. Older versions give them no ids. Raises UpstreamFault for one without a name."""
    found: list[ToolCall] = []
    entries = message.get("tool_calls")
    for entry in entries if isinstance(entries, list) else []:
        function = entry.get("function") if isinstance(entry, dict) else None
        if not isinstance(function, dict) or not _text(function, "name"):
            raise UpstreamFault("protocol", "a tool call without a name", status=200)
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()
        call_id = _text(entry, "id") or f"call_{uuid.uuid4().hex[:20]}"
        found.append(ToolCall(call_id, function["name"], text))
    return found


def _finish(native: str | None, *, has_calls: bool) -> FinishReason:
    if native == "length":
        return "length"
    return "tool_calls" if has_calls else "stop"


def _usage(document: JSON) -> Usage | None:
    """Token counts; that of the prompt is left out when Ollama had it in its cache. None for none, or nonsense."""
    try:
        prompt, answer = token_count(document, "prompt_eval_count"), token_count(document, "eval_count")
    except ValueError:
        return None
    if prompt is None and answer is None:
        return None
    return Usage(input_tokens=prompt or 0, output_tokens=answer or 0)


# ---------------------------------------------------------------- writing


def _body(request: ChatRequest, call: Call, model: str) -> JSON:
    body: JSON = {"model": model, "messages": _messages(request), "stream": call.stream}
    tools = _offered(request)
    if tools:
        body["tools"] = [_tool(tool) for tool in tools]
    wanted = request.response_format
    if wanted is not None and wanted.type != "text":
        body["format"] = wanted.schema if wanted.type == "json_schema" and wanted.schema else "json"
    think = _THINK.get(request.reasoning_effort or "", request.thinking_budget is not None or None)
    if think is not None:
        body["think"] = think
    options = _options(request, call)
    if options:
        body["options"] = options
    return body


def _embed_body(request: EmbeddingRequest, model: str) -> JSON:
    """What is too long is an error and not cut."""
    body: JSON = {"model": model, "input": request.inputs, "truncate": False}
    return body if request.dimensions is None else body | {"dimensions": request.dimensions}


def _options(request: ChatRequest, call: Call) -> JSON:
    options: JSON = {name: value for name in _OPTIONS if (value := getattr(request, name)) is not None}
    limit = request.max_tokens or call.output_cap
    if limit is not None:
        options["num_predict"] = limit
    if request.stop:
        options["stop"] = request.stop
    return options


def _offered(request: ChatRequest) -> list[Tool]:
    """The tools the model may choose from."""
    if request.foreign_tools:
        raise _inexpressible(f"a tool of type '{request.foreign_tools[0].type}'", "tools")
    choice = request.tool_choice
    if choice is None or choice.mode in ("auto", "required"):
        return request.tools
    return [tool for tool in request.tools if choice.mode == "tool" and tool.name == choice.name]


def _tool(tool: Tool) -> JSON:
    function: JSON = {"name": tool.name, "parameters": tool.parameters or {"type": "object", "properties": {}}}
    if tool.description:
        function["description"] = tool.description
    return {"type": "function", "function": function}


def _messages(request: ChatRequest) -> list[JSON]:
    written: list[JSON] = []
    names: dict[str, str] = {}
    if request.system:
        written.append({"role": "system", "content": "\n\n".join(text.text for text in request.system)})
    for message in request.messages:
        written += _assistant(message, names) if message.role == "assistant" else _user(message, names)
    return written


def _assistant(message: Message, names: dict[str, str]) -> list[JSON]:
    texts, thinking, calls = [], [], []
    for part in message.parts:
        if isinstance(part, Text):
            texts.append(part.text)
        elif isinstance(part, ToolCall):
            names[part.id] = part.name
            calls.append({"id": part.id, "function": {"name": part.name, "arguments": _object(part.arguments)}})
        elif isinstance(part, Thinking):
            thinking.append(part.text)
        else:
            raise _refused_part(part)
    entry: JSON = {"role": "assistant", "content": "".join(texts)}
    if any(thinking):
        entry["thinking"] = "".join(thinking)
    if calls:
        entry["tool_calls"] = calls
    return [entry]


def _user(message: Message, names: dict[str, str]) -> list[JSON]:
    written: list[JSON] = []
    texts: list[str] = []
    images: list[str] = []
    for part in message.parts:
        if isinstance(part, ToolResult):
            entry: JSON = {"role": "tool", "content": "\n".join(_flat(part.content, images))}
            name = names.get(part.call_id) or part.name
            if name:
                entry["tool_name"] = name
            written.append(entry | {"tool_call_id": part.call_id})
        elif not isinstance(part, Thinking):
            texts += _flat([part], images)
    if texts or images or not written:
        said: JSON = {"role": "user", "content": "\n".join(texts)}
        if images:
            said["images"] = images
        written.append(said)
    return written


def _flat(parts: list[Any], images: list[str]) -> list[str]:
    """Texts of `parts`; inline images go to `images`."""
    texts = []
    for part in parts:
        if isinstance(part, Text):
            texts.append(part.text)
        elif isinstance(part, Image) and part.data is not None:
            images.append(part.data)
        elif isinstance(part, File) and part.text is not None:
            texts.append(f"{part.name}\n\n{part.text}" if part.name else part.text)
        else:
            raise _refused_part(part)
    return texts


def _object(arguments: str) -> JSON:
    """Arguments as the object they must be. What a model wrote that is none stays readable under `_raw`."""
    if not arguments.strip():
        return {}
    try:
        value = msgspec.json.decode(arguments)
    except _UNREADABLE:
        return {"_raw": arguments}
    return value if isinstance(value, dict) else {"_raw": arguments}


def _refused_part(part: Any) -> BadRequest:
    if isinstance(part, Image) and part.data is None:
        return _inexpressible("an image that is not inline", "messages")
    kind = part.type if isinstance(part, Foreign) else type(part).__name__.lower()
    return _inexpressible(f"a block of type '{kind}'", "messages")


def _inexpressible(what: str, param: str) -> BadRequest:
    return BadRequest(f"The provider of this model does not accept {what}.", param=param)
