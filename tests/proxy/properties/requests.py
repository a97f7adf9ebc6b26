"""Random requests in canonical form: what any client may have said, whatever its dialect."""

from __future__ import annotations

import base64
import json
from typing import Any

from hypothesis import strategies as st

from proxy.canonical import (
    Audio,
    ChatRequest,
    File,
    Foreign,
    Image,
    Message,
    ResponseFormat,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from tests.proxy.properties.answers import ARGUMENTS, NAMES, OPAQUE, TEXTS, VALUES

JSON = dict[str, Any]

BLANKS = st.sampled_from(["", " ", "\n"])
CACHED = st.sampled_from([None, {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}])
DATA = st.binary(min_size=1, max_size=6).map(lambda data: base64.b64encode(data).decode())
IDS = st.sampled_from(["call_1", "toolu_01", "x.y:z", "é🌍", "c" * 80])
TOOL_NAMES = st.sampled_from(["get_weather", "f", "g.h", "été", "n" * 70]) | NAMES

MARKED_TEXTS = st.builds(Text, BLANKS | TEXTS, CACHED)
IMAGES = st.one_of(
    st.builds(Image, media_type=st.sampled_from([None, "image/png", "image/jpeg", "image/webp"]), data=DATA),
    st.builds(
        Image,
        url=st.sampled_from(["https://x.example/a.png", "http://x.example/b"]),
        detail=st.sampled_from([None, "auto", "low", "high"]),
        cache_control=CACHED,
    ),
)
FILES = st.one_of(
    st.builds(
        File,
        media_type=st.sampled_from([None, "application/pdf", "text/plain", "text/csv", "application/zip"]),
        data=DATA,
        name=st.sampled_from([None, "a.pdf", "b.txt", "Grüße 🌍.csv"]),
        cache_control=CACHED,
    ),
    st.builds(File, text=TEXTS, name=st.sampled_from([None, "notes"])),
    st.builds(File, url=st.just("https://x.example/a.pdf"), media_type=st.just("application/pdf")),
    st.builds(File, file_id=st.sampled_from(["file-1", "files/abc"])),
)
SOUNDS = st.builds(Audio, DATA, st.sampled_from(["wav", "mp3"]))
FOREIGN = st.sampled_from(
    [
        Foreign("anthropic", "search_result", {"type": "search_result", "source": "s", "title": "t", "content": []}),
        Foreign("gemini", "executableCode", {"executableCode": {"language": "PYTHON", "code": "1"}}),
    ]
)
THINKING = st.one_of(
    st.builds(Thinking, text=BLANKS | TEXTS, signature=st.none() | OPAQUE | OPAQUE.map("gemini:".__add__)),
    st.builds(Thinking, redacted=OPAQUE),
)
CALLS = st.builds(
    ToolCall, IDS, TOOL_NAMES, ARGUMENTS | st.sampled_from(["", "{}", "[1]", '"x"', '{"a"', "7"]), st.none() | OPAQUE
)
RESULTS = st.builds(
    ToolResult,
    IDS,
    st.lists(MARKED_TEXTS | IMAGES | FILES, max_size=2),
    st.booleans(),
    st.none() | TOOL_NAMES,
    CACHED,
)

SCHEMAS = st.sampled_from(
    [
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {"zip": {"type": "string", "const": "1"}, "n": {"type": ["integer", "null"]}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "object"}}},
        {"type": "object", "required": ["x"], "properties": {"x": {"anyOf": [{"type": "string"}, {"type": "null"}]}}},
        {"type": "object", "properties": {"n": {"type": "integer", "exclusiveMinimum": 0}}, "$schema": "x"},
        {"properties": {"properties": {"type": "array", "items": {"enum": [1, "a", None]}}}},
    ]
)
TOOLS = st.builds(
    Tool,
    TOOL_NAMES,
    st.none() | BLANKS | TEXTS,
    st.none() | SCHEMAS | st.dictionaries(NAMES, VALUES, max_size=2),
    st.sampled_from([None, True, False]),
    CACHED,
)
CHOICES = st.one_of(
    st.none(),
    st.builds(ToolChoice, st.sampled_from(["auto", "none", "required"])),
    st.builds(ToolChoice, st.just("tool"), TOOL_NAMES),
)
FORMATS = st.one_of(
    st.none(),
    st.builds(ResponseFormat, st.sampled_from(["text", "json_object"])),
    st.builds(
        ResponseFormat,
        st.just("json_schema"),
        st.none() | NAMES,
        st.none() | SCHEMAS,
        st.sampled_from([None, True, False]),
        st.none() | TEXTS,
    ),
)


def _maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


OPTIONS = st.fixed_dictionaries(
    {
        "parallel_tool_calls": _maybe(st.booleans()),
        "max_tokens": _maybe(st.integers(1, 64_000)),
        "temperature": _maybe(st.floats(0, 2)),
        "top_p": _maybe(st.floats(0, 1)),
        "top_k": _maybe(st.integers(0, 500)),
        "stop": st.lists(st.sampled_from(["END", "\n\n", " ", "停"]), max_size=3, unique=True),
        "seed": _maybe(st.integers(-(2**63), 2**63 - 1)),
        "frequency_penalty": _maybe(st.floats(-2, 2)),
        "presence_penalty": _maybe(st.floats(-2, 2)),
        "logprobs": _maybe(st.booleans()),
        "top_logprobs": _maybe(st.integers(0, 20)),
        "response_format": FORMATS,
        "reasoning_effort": st.sampled_from([None, "minimal", "low", "medium", "high"]),
        "thinking_budget": _maybe(st.integers(1, 40_000)),
        "user": _maybe(TEXTS),
    }
)

USER_PARTS = st.one_of(MARKED_TEXTS, MARKED_TEXTS, IMAGES, FILES, SOUNDS, RESULTS)
ASSISTANT_PARTS = st.one_of(MARKED_TEXTS, THINKING, CALLS)


@st.composite
def exchanges(draw: Any) -> list[Message]:
    """Parallel calls, thought about or not, and the results of all of them."""
    calls = [ToolCall(f"call_{n}", draw(TOOL_NAMES), draw(ARGUMENTS), draw(st.none() | OPAQUE)) for n in range(2)]
    before = draw(st.lists(THINKING | MARKED_TEXTS, max_size=2))
    results = [ToolResult(call.id, [Text(json.dumps(draw(VALUES)))], name=call.name) for call in calls]
    return [
        Message("assistant", [*before, *calls]),
        Message("user", [*results, *draw(st.lists(USER_PARTS, max_size=1))]),
    ]


MESSAGES = st.lists(
    st.one_of(
        st.builds(Message, st.just("user"), st.lists(USER_PARTS, max_size=3)).map(lambda message: [message]),
        st.builds(Message, st.just("assistant"), st.lists(ASSISTANT_PARTS, max_size=3)).map(lambda message: [message]),
        exchanges(),
    ),
    max_size=3,
).map(lambda groups: [message for group in groups for message in group])


@st.composite
def chat_requests(draw: Any, *, foreign: bool = True) -> ChatRequest:
    """Any request; with `foreign` now and then with a block that only one dialect has."""
    request = ChatRequest(
        messages=draw(MESSAGES),
        system=draw(st.lists(MARKED_TEXTS, max_size=2)),
        tools=draw(st.lists(TOOLS, max_size=2, unique_by=lambda tool: tool.name)),
        tool_choice=draw(CHOICES),
        **draw(OPTIONS),
    )
    if foreign and draw(st.integers(0, 9)) == 0:
        request.messages.append(Message("user", [draw(FOREIGN)]))
    if foreign and draw(st.integers(0, 9)) == 0:
        block = {"type": "web_search_20250305", "name": "web_search"}
        request.foreign_tools = [Foreign("anthropic", "web_search_20250305", block)]
    return request
