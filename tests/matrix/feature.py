"""A row of the table: what is asked in the words of each dialect, what the provider answers, what must arrive where."""

from __future__ import annotations

from typing import Any

import msgspec

from proxy.canonical import ChatResponse, Text, Usage

JSON = dict[str, Any]

MORNING = {"role": "user", "content": "Good morning"}
BASE: dict[str, JSON] = {
    "chat": {"model": "m", "messages": [MORNING]},
    "openai": {"model": "m", "messages": [MORNING]},
    "anthropic": {"model": "m", "max_tokens": 500, "messages": [MORNING]},
    "responses": {"model": "m", "input": [MORNING]},
    "completions": {"model": "m", "prompt": "Good morning"},
    "embeddings": {"model": "m", "input": "Good morning"},
    "count_tokens": {"model": "m", "messages": [MORNING]},
}
USAGE = Usage(input_tokens=70, output_tokens=30)
ANSWER = ChatResponse(parts=[Text("Guten Tag")], usage=USAGE)


class Feature(msgspec.Struct, frozen=True, kw_only=True):
    """`asks` by dialect: members added to BASE; a dialect that is not there has no words for the feature.

    sent         texts that the provider's request must hold
    differs      the provider's request must differ from the one without the feature, but with `without` by dialect
    answer       what the provider says; `needs` what its format must be able to say for that
    told         texts that the client's answer must hold, `told_by` more of them by dialect
    usage        members of Usage that the client must be told
    round_trip   texts that must reach the provider again when the client goes on from the answer
    """

    name: str
    asks: dict[str, JSON]
    sent: tuple[str, ...] = ()
    differs: bool = False
    without: dict[str, JSON] = {}
    answer: ChatResponse = msgspec.field(default_factory=lambda: ANSWER)
    needs: frozenset[str] = frozenset()
    told: tuple[str, ...] = ()
    told_by: dict[str, str] = {}
    usage: tuple[str, ...] = ()
    round_trip: tuple[str, ...] = ()
    stream: bool = False
    vectors: int = 0


def everywhere(**members: Any) -> dict[str, JSON]:
    """The same members in all dialects of chat."""
    return {name: dict(members) for name in ("chat", "openai", "anthropic", "responses")}


def said(openai: Any = None, anthropic: Any = None, responses: Any = None) -> dict[str, JSON]:
    """What the user says: a part of content in each format."""
    asks: dict[str, JSON] = {}
    if openai is not None:
        asks |= {name: {"messages": [{"role": "user", "content": [openai]}]} for name in ("chat", "openai")}
    if anthropic is not None:
        asks["anthropic"] = {"messages": [{"role": "user", "content": [anthropic]}]}
    if responses is not None:
        asks["responses"] = {"input": [{"role": "user", "content": [responses]}]}
    return asks


def both(value: JSON) -> dict[str, JSON]:
    """Tollbar's own format has most members by OpenAI's names."""
    return {"chat": value, "openai": value}
