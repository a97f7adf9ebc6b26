"""Whatever is asked, the request is one that Google's own SDK has types for, and that keeps the API's rules."""

import re
from typing import Any

import pydantic
import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from proxy.canonical import (
    GEMINI_SIGNED,
    Audio,
    ChatRequest,
    EmbeddingRequest,
    File,
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
from proxy.gemini_format.request import generate_body
from proxy.gemini_format.vectors import embeddings_body
from tests.proxy.gemini_wire import FLASH_3, FLASH_25


class GenerateContent(pydantic.BaseModel):
    """GenerateContentRequest of the API, of types that refuse members they do not know."""

    model_config = pydantic.ConfigDict(extra="forbid")

    contents: list[types.Content]
    systemInstruction: types.Content | None = None  # noqa: N815 - as Google spells it
    tools: list[types.Tool] | None = None
    toolConfig: types.ToolConfig | None = None  # noqa: N815
    generationConfig: types.GenerationConfig | None = None  # noqa: N815


MODELS = (
    FLASH_25,
    FLASH_3,
    "gemini-2.5-pro",
    "gemini-3-pro-preview",
    "gemini-2.0-flash",
    "gemini-flash-latest",
    "gemma-3",
)

words = st.text(max_size=12)
base64s = st.sampled_from(("", "eA==", "eHl6"))
urls = st.sampled_from(("https://e.x/a.png", "https://[", "gs://b/c.pdf"))
texts = st.builds(Text, words)
images = st.builds(Image, st.none() | words, base64s) | st.builds(Image, url=urls, detail=st.none() | words)
files = (
    st.builds(File, st.none() | words, base64s, name=st.none() | words)
    | st.builds(File, text=words, name=st.none() | words)
    | st.builds(File, url=urls)
)
audios = st.builds(Audio, base64s, st.sampled_from(("wav", "mp3", "pcm16")))
signatures = st.sampled_from((None, "of another", GEMINI_SIGNED, GEMINI_SIGNED + "c2ln"))
thoughts = st.builds(Thinking, words, signatures, st.none() | words)
names = st.sampled_from(("weather", "n" * 90, "a b", "ü", "7up", "")) | st.text(max_size=80)
calls = st.builds(
    ToolCall,
    st.sampled_from(("call_1", "c" * 90, "ü", "")),
    names,
    st.sampled_from(("", "{}", '{"a": 1e300}', "[1]", "{", '{"a": {"b": [null]}}')),
    st.none() | st.just("c2ln"),
)
results = st.builds(
    ToolResult,
    st.sampled_from(("call_1", "c" * 90, "ü", "")),
    st.lists(st.one_of(texts, images, files), max_size=2),
    st.booleans(),
    st.sampled_from(("weather", "a b")),
)
said = st.builds(Message, st.just("user"), st.lists(st.one_of(texts, images, files, audios, results), max_size=4))
answered = st.builds(Message, st.just("assistant"), st.lists(st.one_of(texts, thoughts, calls), max_size=4))

numbers = st.integers(-9, 9)
schemas = st.recursive(
    st.sampled_from(({}, {"type": "string", "format": "date"}, {"const": 1}, {"$ref": "#/$defs/a"}, {"enum": ["a", 1]}))
    | st.fixed_dictionaries({"type": st.just("integer")}, optional={"exclusiveMinimum": numbers, "minimum": numbers}),
    lambda inner: (
        st.builds(lambda one: {"type": "array", "items": one, "examples": [one]}, inner)
        | st.builds(lambda some: {"anyOf": some}, st.lists(inner, min_size=1, max_size=2))
        | st.builds(lambda some: {"type": "object", "properties": some}, st.dictionaries(words, inner, max_size=2))
    ),
    max_leaves=4,
)
objects = st.builds(lambda some: {"type": "object", "properties": some}, st.dictionaries(words, schemas, max_size=2))
tools = st.lists(
    st.builds(Tool, names, st.none() | words, st.none() | objects, st.none() | st.booleans()),
    max_size=3,
    unique_by=lambda tool: tool.name,
)
choices = (
    st.none()
    | st.builds(ToolChoice, st.sampled_from(("auto", "none", "required")))
    | st.builds(ToolChoice, st.just("tool"), names)
)
formats = st.none() | st.builds(
    ResponseFormat,
    st.sampled_from(("text", "json_object", "json_schema")),
    schema=st.none() | objects,
    description=st.none() | words,
)


def perhaps(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


requests = st.builds(
    ChatRequest,
    messages=st.lists(said | answered, max_size=5),
    system=st.lists(texts, max_size=2),
    tools=tools,
    tool_choice=choices,
    parallel_tool_calls=perhaps(st.booleans()),
    max_tokens=perhaps(st.integers(1, 99)),
    temperature=perhaps(st.floats(0, 2)),
    top_p=perhaps(st.floats(0, 1)),
    top_k=perhaps(st.integers(0, 99)),
    stop=st.lists(words, max_size=2),
    seed=perhaps(st.integers(-(1 << 63), (1 << 63) - 1)),
    frequency_penalty=perhaps(st.floats(-2, 2)),
    presence_penalty=perhaps(st.floats(-2, 2)),
    response_format=formats,
    reasoning_effort=perhaps(st.sampled_from(("none", "minimal", "low", "medium", "high", "xhigh", "other"))),
    thinking_budget=perhaps(st.integers(0, 100_000)),
    user=perhaps(words),
)


@given(request=requests, model=st.sampled_from(MODELS), cap=perhaps(st.integers(1, 99)))
def test_every_request_is_one_of_googles_types(request: ChatRequest, model: str, cap: int | None):
    body = generate_body(request, model, cap)
    GenerateContent.model_validate(body)
    check_turns(body["contents"])
    declared = {tool["name"] for group in body.get("tools", []) for tool in group["functionDeclarations"]}
    assert len(declared) == len(request.tools)
    for name in declared | names_in(body["contents"]):
        assert re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}", name)
    assert -(1 << 31) <= body.get("generationConfig", {}).get("seed", 0) < 1 << 31


def check_turns(contents: list[dict[str, Any]]) -> None:
    """Roles alternate from the user on; nothing is empty; results stand first."""
    assert [turn["role"] for turn in contents] == ["user", "model"] * (len(contents) // 2) + ["user"] * (
        len(contents) % 2
    )
    for turn in contents:
        assert turn["parts"]
        assert all(
            part.get("text") != "" or "thoughtSignature" in part for part in turn["parts"] if "thought" not in part
        )
        results_first = ["functionResponse" in part for part in turn["parts"]]
        assert results_first == sorted(results_first, reverse=True)


def names_in(contents: list[dict[str, Any]]) -> set[str]:
    parts = [part for turn in contents for part in turn["parts"]]
    return {part[kind]["name"] for part in parts for kind in ("functionCall", "functionResponse") if kind in part}


@given(
    request=st.builds(
        EmbeddingRequest, inputs=st.lists(words, min_size=1, max_size=3), dimensions=perhaps(st.integers(1, 9))
    )
)
def test_every_request_for_embeddings_has_googles_contents(request: EmbeddingRequest):
    body = embeddings_body(request, "models/m")
    wanted = body.get("requests", [body])
    assert [one["content"]["parts"][0]["text"] for one in wanted] == request.inputs
    for one in wanted:
        types.Content.model_validate(one["content"])
        assert one["model"] == "models/m"
        assert one.get("outputDimensionality") == request.dimensions


def test_members_google_does_not_know_would_be_noticed():
    with pytest.raises(pydantic.ValidationError):
        GenerateContent.model_validate({"contents": [{"role": "user", "parts": [{"text": "a", "cache_control": {}}]}]})
