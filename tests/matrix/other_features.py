"""The rows of the table about options, counts and reasons, and those of the endpoints that are no chat."""

from __future__ import annotations

from typing import Any

from proxy.canonical import ChatResponse, FinishReason, Text, Usage
from tests.matrix.feature import USAGE, Feature, both, everywhere

JSON = dict[str, Any]


def _named(name: str, value: Any, **others: str) -> dict[str, JSON]:
    """An option by its name in OpenAI's format, and by other names (or none: "") elsewhere."""
    names = {dialect: others.get(dialect, name) for dialect in ("chat", "openai", "anthropic", "responses")}
    return {dialect: {called: value} for dialect, called in names.items() if called}


def _counted(name: str, member: str, usage: Usage, *needs: str, stream: bool = False) -> Feature:
    answer = ChatResponse(parts=[Text("Guten Tag")], usage=usage)
    asks = everywhere()
    asks["openai"] = {"stream_options": {"include_usage": True}} if stream else {}
    return Feature(name=name, asks=asks, answer=answer, needs=frozenset(needs), usage=(member,), stream=stream)


def _ended(name: str, reason: FinishReason, **words: str) -> Feature:
    answer = ChatResponse(parts=[Text("Guten")], finish_reason=reason, usage=USAGE)
    spelt = dict.fromkeys(("chat", "openai"), f'"finish_reason":"{reason}"') | words
    return Feature(name=name, asks=everywhere(), answer=answer, needs=frozenset((f"ends by {reason}",)), told_by=spelt)


CACHED = Usage(input_tokens=70, output_tokens=30, cache_read_tokens=41)
WRITTEN = Usage(input_tokens=70, output_tokens=30, cache_write_tokens=37)
REASONED = Usage(input_tokens=70, output_tokens=30, reasoning_tokens=23)
STOPPED = ChatResponse(parts=[Text("Guten")], stop_sequence="HALT", usage=USAGE)
REFUSED = ChatResponse(parts=[], refusal="I must not", usage=USAGE)

OPTIONS = [
    Feature(
        name="limit of output tokens",
        asks=_named("max_tokens", 4321, responses="max_output_tokens"),
        sent=("4321",),
    ),
    Feature(name="temperature", asks=_named("temperature", 0.625), sent=("0.625",)),
    Feature(name="top_p", asks=_named("top_p", 0.375), sent=("0.375",)),
    Feature(name="top_k", asks=_named("top_k", 43, chat="", openai="", responses=""), sent=("43",)),
    Feature(
        name="stop sequences", asks=_named("stop", ["HALT"], anthropic="stop_sequences", responses=""), sent=("HALT",)
    ),
    Feature(name="seed", asks=_named("seed", 98765, anthropic="", responses=""), sent=("98765",)),
    Feature(
        name="penalties",
        asks={"openai": {"presence_penalty": 0.625, "frequency_penalty": 0.375}},
        sent=("0.625", "0.375"),
    ),
    Feature(name="log probabilities", asks={"openai": {"logprobs": True, "top_logprobs": 3}}, sent=("logprobs",)),
    Feature(
        name="name of the user",
        asks={**both({"user": "u-1"}), "anthropic": {"metadata": {"user_id": "u-1"}}, "responses": {"user": "u-1"}},
        differs=True,
    ),
    Feature(name="several answers (n)", asks={"openai": {"n": 2}}, differs=True),
    Feature(
        name="members the gateway does not know",
        asks={dialect: {"x_new": "novelty"} for dialect in ("openai", "anthropic", "responses")},
        sent=("novelty",),
    ),
]

ANSWERS = [
    _counted("tokens in usage", "input_tokens", USAGE),
    _counted("tokens in usage, streamed", "output_tokens", USAGE, stream=True),
    _counted("tokens read from the cache", "cache_read_tokens", CACHED, "cache_read"),
    _counted("tokens read from the cache, streamed", "cache_read_tokens", CACHED, "cache_read", stream=True),
    _counted("tokens written to the cache", "cache_write_tokens", WRITTEN, "cache_write"),
    _counted("tokens of reasoning", "reasoning_tokens", REASONED, "reasoning"),
    _ended("ended by itself", "stop", anthropic='"stop_reason":"end_turn"', responses='"status":"completed"'),
    _ended("ended by the limit", "length", anthropic='"stop_reason":"max_tokens"', responses='"max_output_tokens"'),
    _ended("ended by a filter", "content_filter", anthropic='"stop_reason":"refusal"', responses='"content_filter"'),
    Feature(
        name="which stop sequence ended it",
        asks={"anthropic": {"stop_sequences": ["HALT"]}},
        answer=STOPPED,
        needs=frozenset(("stop_sequence",)),
        told=('"stop_sequence":"HALT"',),
    ),
    Feature(name="a refusal", asks=everywhere(), answer=REFUSED, needs=frozenset(("refusal",)), told=("I must not",)),
]

OTHERS = [
    Feature(name="completion of a text", asks={"completions": {}}, sent=("Good morning",), told=("Guten Tag",)),
    Feature(
        name="completion of a text, streamed",
        asks={"completions": {}},
        sent=("Good morning",),
        told=("Guten Tag",),
        stream=True,
    ),
    Feature(
        name="temperature and stop sequences",
        asks={"completions": {"temperature": 0.625, "stop": "HALT"}},
        sent=("0.625", "HALT"),
    ),
    Feature(name="suffix", asks={"completions": {"suffix": "and so on"}}, sent=("and so on",)),
    Feature(name="echo", asks={"completions": {"echo": True}}, differs=True),
    Feature(name="several prompts", asks={"completions": {"prompt": ["Moin", "Servus"]}}, sent=("Moin", "Servus")),
    Feature(
        name="token ids in place of a prompt", asks={"completions": {"prompt": [5151, 6161]}}, sent=("5151", "6161")
    ),
    Feature(name="vector of a text", asks={"embeddings": {}}, sent=("Good morning",), told=("0.25",), vectors=1),
    Feature(
        name="vectors of several texts",
        asks={"embeddings": {"input": ["Moin", "Servus"]}},
        sent=("Moin", "Servus"),
        told=("0.25",),
        vectors=2,
    ),
    Feature(name="length of the vectors", asks={"embeddings": {"dimensions": 512}}, sent=("512",), vectors=1),
    Feature(
        name="vectors as base64", asks={"embeddings": {"encoding_format": "base64"}}, told=("AACAPgAAAL8=",), vectors=1
    ),
    Feature(
        name="token ids in place of a text",
        asks={"embeddings": {"input": [5151, 6161]}},
        sent=("5151", "6161"),
        vectors=1,
    ),
    Feature(name="count of the input's tokens", asks={"count_tokens": {}}, sent=("Good morning",), told=("4242",)),
]
