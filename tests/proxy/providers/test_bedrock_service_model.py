"""Whatever is asked, the request is one that AWS's own description of its service allows."""

import json
from functools import cache
from urllib.parse import unquote

import botocore.session
from botocore.validate import ParamValidator
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.canonical import (
    Audio,
    ChatRequest,
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
from proxy.errors import BadRequest
from proxy.providers.bedrock import BedrockAdapter
from tests.proxy.bedrock_wire import CLAUDE, NOVA, OLD_CLAUDE, call_of, target

MODELS = (
    CLAUDE,
    OLD_CLAUDE,
    NOVA,
    "us.anthropic.claude-opus-4-7",
    "openai.gpt-oss-20b-1:0",
    "us.amazon.nova-2-lite-v1:0",
)

words = st.text(max_size=12)
base64s = st.sampled_from(("", "eA==", "eHl6"))
caches = st.sampled_from((None, {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}, {"ttl": 3}))
texts = st.builds(Text, words, caches)
images = st.builds(
    Image, st.sampled_from((None, "image/png", "image/webp", "image/bmp")), base64s, cache_control=caches
)
files = st.builds(
    File,
    st.sampled_from((None, "application/pdf", "text/plain", "text/csv", "application/zip")),
    base64s,
    st.none() | words,
    name=st.none() | words | st.just("a" * 300),
    cache_control=caches,
)
audios = st.builds(Audio, base64s, st.sampled_from(("wav", "mp3", "pcm16", "midi")))
thoughts = st.builds(Thinking, words, st.none() | words, st.none() | base64s)
names = st.sampled_from(("weather", "mein.werkzeug", "n" * 90, "a b", "ü"))
ids = st.sampled_from(("call_1", "call|2", "c" * 90, "ü", ""))
calls = st.builds(ToolCall, ids, names, st.sampled_from(("", "{}", '{"a": 1}', "[1]", "{")))
results = st.builds(
    ToolResult, ids, st.lists(st.one_of(texts, images, files), max_size=2), st.booleans(), cache_control=caches
)
messages = st.one_of(
    st.builds(Message, st.just("user"), st.lists(st.one_of(texts, images, files, audios, results), max_size=4)),
    st.builds(Message, st.just("assistant"), st.lists(st.one_of(texts, thoughts, calls), max_size=4)),
)
tools = st.builds(
    Tool,
    names,
    st.none() | words,
    st.none() | st.just({"properties": {"a": {"type": "string"}}}),
    st.none() | st.booleans(),
    caches,
)
formats = st.builds(
    ResponseFormat,
    st.sampled_from(("text", "json_object", "json_schema")),
    st.none() | words,
    st.none() | st.just({"type": "object"}),
    description=st.none() | words,
)
requests = st.builds(
    ChatRequest,
    messages=st.lists(messages, max_size=5),
    system=st.lists(texts, max_size=2),
    tools=st.lists(tools, max_size=3),
    tool_choice=st.none() | st.builds(ToolChoice, st.sampled_from(("auto", "none", "required", "tool")), names),
    max_tokens=st.none() | st.integers(1, 32_000),
    temperature=st.none() | st.floats(0, 2),
    top_p=st.none() | st.floats(0, 1),
    top_k=st.none() | st.integers(1, 100),
    stop=st.lists(words, max_size=2),
    response_format=st.none() | formats,
    reasoning_effort=st.sampled_from((None, "none", "minimal", "low", "medium", "high", "xhigh")),
    thinking_budget=st.none() | st.integers(0, 50_000),
)


@cache
def input_shape(operation: str):
    return botocore.session.get_session().get_service_model("bedrock-runtime").operation_model(operation).input_shape


@settings(max_examples=300, deadline=None)
@given(requests, st.sampled_from(MODELS), st.booleans())
def test_a_request_is_refused_by_us_or_valid_for_aws(request, model, stream):
    try:
        sent = BedrockAdapter().build_request(call_of(request, stream=stream), target(model))
    except BadRequest:
        return
    body = json.loads(sent.body)
    path, _, operation = sent.url.rpartition("/")
    assert unquote(path.rpartition("/")[2]) == model
    shape = input_shape({"converse": "Converse", "converse-stream": "ConverseStream"}[operation])
    report = ParamValidator().validate({**body, "modelId": model}, shape)
    assert not report.has_errors(), report.generate_report()
    keeps_to_the_rules(body)


def keeps_to_the_rules(body: dict) -> None:
    """What AWS demands beyond the shapes."""
    turns = body["messages"]
    assert [turn["role"] for turn in turns] == [("user", "assistant")[place % 2] for place in range(len(turns))]
    blocks = [block for turn in turns for block in turn["content"]]
    inner = [block for outer in blocks for block in outer.get("toolResult", {}).get("content", [])]
    assert all(turn["content"] for turn in turns)
    assert all(block["text"].strip() for block in [*blocks, *inner, *body.get("system", [])] if "text" in block)
    assert "toolConfig" in body or not any("toolUse" in block or "toolResult" in block for block in blocks)
    documents = [block["document"]["name"] for block in [*blocks, *inner] if "document" in block]
    assert len(set(documents)) == len(documents)
    for turn in turns:
        kinds = [next(iter(block)) for block in turn["content"] if "cachePoint" not in block]
        assert kinds == sorted(kinds, key=lambda kind: kind != "toolResult")
