"""A provider without a network, for demos and tests. Deterministic: the same call gets the same answer and usage.

    echo          "Echo: " and the last thing the user said; so does every model that is not listed
    slow          the same after two seconds
    fail-500      500
    fail-429      429 with Retry-After: 1
    flaky         503 on every odd call, echo on every even one
    stream-dies   the connection is cut after some content

Usage is a token for four characters, rounded up. "call NAME {json}" as the last thing said calls that tool when it was
offered; a JSON response format answers {"echo": …}. A legacy completion goes on with " Echo: " and its prompt; an
embedding counts the words of a text, so that texts with the same words are near each other. The adapter speaks OpenAI's
formats; `mock_reply` is played by proxy/upstream.py.
"""

from __future__ import annotations

import math
import re
import zlib
from typing import Any, ClassVar

import msgspec

from proxy.context import COMPLETIONS, EMBEDDINGS, OPENAI, ProviderTarget
from proxy.openai_format.vectors import float32_base64
from proxy.providers.openai import OpenAIAdapter
from proxy.sse import frame

JSON = dict[str, Any]

MOCK_SCHEME = "mock://"

CHARACTERS_PER_TOKEN = 4
#: How long the model `slow` thinks before its first token.
SLOW_MS = 2000
#: When this was written: mock answers do not depend on the time.
CREATED = 1_750_000_000

#: Of a mock embedding whose caller asks for no other number.
DIMENSIONS = 64

_CALL = re.compile(r"call\s+([A-Za-z0-9_-]{1,64})\s*(\{.*\})?\s*$", re.DOTALL)


class MockAdapter(OpenAIAdapter):
    kind: ClassVar[str] = "mock"
    dialects: ClassVar[frozenset[str]] = frozenset((OPENAI, COMPLETIONS, EMBEDDINGS))
    default_base_url: ClassVar[str | None] = MOCK_SCHEME
    needs_secret: ClassVar[bool] = False

    def _url(self, target: ProviderTarget, path: str) -> str:
        return f"{MOCK_SCHEME}{path.lstrip('/')}"


class MockReply(msgspec.Struct):
    """An answer to play: `pieces` are (milliseconds to wait, bytes); `dies`: then the connection is cut."""

    status: int
    headers: dict[str, str]
    pieces: list[tuple[int, bytes]]
    dies: bool = False


class _Said(msgspec.Struct):
    """What the mock model says: text or one tool call, and the counts."""

    text: str
    tool: str | None
    finish: str
    input_tokens: int
    output_tokens: int

    @property
    def usage(self) -> JSON:
        total = self.input_tokens + self.output_tokens
        return {"prompt_tokens": self.input_tokens, "completion_tokens": self.output_tokens, "total_tokens": total}


def mock_reply(body: JSON, model: str, sequence: int) -> MockReply:
    """The answer to a request of one of the three APIs. `sequence` counts the calls of this process, from 1."""
    if model == "fail-500":
        return _error(500, "The mock model failed.", "server_error")
    if model == "fail-429":
        return _error(429, "The mock model is busy.", "rate_limit_exceeded", {"retry-after": "1"})
    if model == "flaky" and sequence % 2:
        return _error(503, "The mock model is flaky.", "server_error")
    delay_ms = SLOW_MS if model == "slow" else 0
    dies = model == "stream-dies"
    if "input" in body:
        return MockReply(200, {"content-type": "application/json"}, [(delay_ms, _embeddings(body, model))])
    said = _continued(body) if "prompt" in body else _said(body)
    if body.get("stream") is True:
        return _stream(said, body, model, delay_ms, dies=dies)
    whole = msgspec.json.encode(_text_completion(said, model) if "prompt" in body else _completion(said, model))
    return MockReply(
        status=200,
        headers={"content-type": "application/json"},
        pieces=[(delay_ms, whole[: len(whole) // 2] if dies else whole)],
        dies=dies,
    )


def _error(status: int, message: str, code: str, headers: dict[str, str] | None = None) -> MockReply:
    error = {"message": message, "type": code, "param": None, "code": code}
    return MockReply(
        status=status,
        headers={"content-type": "application/json", **(headers or {})},
        pieces=[(0, msgspec.json.encode({"error": error}))],
    )


def _said(body: JSON) -> _Said:
    prompt = last = ""
    for message in body.get("messages") or []:
        text = _text_of(message.get("content"))
        prompt += text
        last = text if message.get("role") in ("user", "tool") else last
    name, text = _tool_wanted(body, last)
    finish = "tool_calls" if name else "stop"
    if name is None:
        text = _answer(body, last)
        limit = body.get("max_completion_tokens") or body.get("max_tokens")
        if isinstance(limit, int) and len(text) > limit * CHARACTERS_PER_TOKEN:
            text, finish = text[: limit * CHARACTERS_PER_TOKEN], "length"
    return _Said(text, name, finish, _tokens(prompt), _tokens(text))


def _continued(body: JSON) -> _Said:
    """What follows the (first) prompt of a legacy completion."""
    prompt = body["prompt"]
    if isinstance(prompt, list) and prompt and isinstance(prompt[0], (str, list)):
        prompt = prompt[0]
    text = prompt if isinstance(prompt, str) else " ".join(map(str, prompt))
    counted = _tokens(text) if isinstance(prompt, str) else len(prompt)
    said, limit = f" Echo: {text}", int(body.get("max_tokens") or 0) * CHARACTERS_PER_TOKEN
    cut = said[:limit]
    return _Said(cut, None, "stop" if cut == said else "length", counted, _tokens(cut))


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def _tool_wanted(body: JSON, last: str) -> tuple[str | None, str]:
    """The tool to call and its arguments, when the last message asks for one that was offered."""
    asked = _CALL.search(last)
    if asked is None or not any(_is_function(tool, asked.group(1)) for tool in body.get("tools") or []):
        return None, ""
    return asked.group(1), asked.group(2) or "{}"


def _is_function(tool: JSON, name: str) -> bool:
    function = tool.get("function")
    return isinstance(function, dict) and function.get("name") == name


def _answer(body: JSON, last: str) -> str:
    wanted = body.get("response_format")
    if isinstance(wanted, dict) and wanted.get("type") in ("json_object", "json_schema"):
        return msgspec.json.encode({"echo": last}).decode()
    return f"Echo: {last}"


def _tokens(text: str) -> int:
    return max(1, -(-len(text) // CHARACTERS_PER_TOKEN))


def _completion(said: _Said, model: str) -> JSON:
    message: JSON = {"role": "assistant", "content": None if said.tool else said.text, "refusal": None}
    if said.tool:
        function = {"name": said.tool, "arguments": said.text}
        message["tool_calls"] = [{"id": _call_id(said), "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": said.finish}
    return {
        "id": "chatcmpl-mock",
        "object": "chat.completion",
        "created": CREATED,
        "model": model,
        "choices": [choice],
        "usage": said.usage,
    }


def _text_completion(said: _Said, model: str) -> JSON:
    return _text_chunk(said.text, model, said.finish) | {"usage": said.usage}


def _text_chunk(text: str, model: str, finish: str | None) -> JSON:
    choice = {"text": text, "index": 0, "logprobs": None, "finish_reason": finish}
    return {"id": "cmpl-mock", "object": "text_completion", "created": CREATED, "model": model, "choices": [choice]}


def _embeddings(body: JSON, model: str) -> bytes:
    given = body.get("input") or ""
    inputs = [given] if isinstance(given, str) or isinstance(given[0], int | float) else given
    packed = body.get("encoding_format") == "base64"
    size = int(body.get("dimensions") or DIMENSIONS)
    data, tokens = [], 0
    for index, entry in enumerate(inputs):
        vector = _vector(entry, size)
        tokens += _tokens(entry) if isinstance(entry, str) else len(entry)
        told = float32_base64(vector) if packed else vector
        data.append({"object": "embedding", "index": index, "embedding": told})
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return msgspec.json.encode({"object": "list", "data": data, "model": model, "usage": usage})


def _vector(entry: str | list[int], size: int) -> list[float]:
    """Of length 1: every word (or token id) counts at the place that its checksum names."""
    words = entry.lower().split() if isinstance(entry, str) else [str(token) for token in entry]
    counts = [0] * size
    for word in words or [""]:
        counts[zlib.crc32(word.encode("utf-8", "replace")) % size] += 1
    length = math.sqrt(sum(count * count for count in counts))
    return [count / length for count in counts]


def _call_id(said: _Said) -> str:
    return f"call_mock_{said.tool}_{said.input_tokens}"


def _stream(said: _Said, body: JSON, model: str, delay_ms: int, *, dies: bool) -> MockReply:
    options = body.get("stream_options")
    asked = isinstance(options, dict) and options.get("include_usage") is True
    if "prompt" in body:
        chunks = [_text_chunk(word, model, None) for word in _words(said.text)]
        last = _text_chunk("", model, said.finish)
    else:
        chunks = [_chunk(model, delta, None) for delta in _deltas(said)]
        last = _chunk(model, {}, said.finish)
    if dies:
        chunks = chunks[: max(2, len(chunks) // 2)]
    else:
        chunks.append(last)
        if asked:
            chunks.append(last | {"choices": [], "usage": said.usage})
    pieces = [(0, frame(msgspec.json.encode(chunk))) for chunk in chunks]
    pieces[0] = (delay_ms, pieces[0][1])
    if not dies:
        pieces.append((0, frame(b"[DONE]")))
    return MockReply(status=200, headers={"content-type": "text/event-stream"}, pieces=pieces, dies=dies)


def _deltas(said: _Said) -> list[JSON]:
    deltas: list[JSON] = [{"role": "assistant", "content": None if said.tool else ""}]
    if said.tool is None:
        return deltas + [{"content": word} for word in _words(said.text)]
    half = len(said.text) // 2
    opening = {"index": 0, "id": _call_id(said), "type": "function"}
    deltas.append({"tool_calls": [{**opening, "function": {"name": said.tool, "arguments": ""}}]})
    fragments = [piece for piece in (said.text[:half], said.text[half:]) if piece]
    return deltas + [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in fragments]


def _words(text: str) -> list[str]:
    return re.findall(r"\s*\S+\s*$|\s*\S+|\s+", text)


def _chunk(model: str, delta: JSON, finish: str | None) -> JSON:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {
        "id": "chatcmpl-mock",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": model,
        "choices": [choice],
    }
