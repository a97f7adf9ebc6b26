"""How the written answers of providers look: what is said, in neutral words, and how its stream is cut and framed.

A format is a module of this folder with `whole(answer)` and `stream(answer, style)`, both giving bytes, written from
the provider's documentation and independent of the product's own writers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from proxy.canonical import ChatResponse, Text, Thinking, ToolCall, Usage

JSON = dict[str, Any]


class Style(msgspec.Struct, frozen=True):
    """`step` characters a delta, lines ended by `newline`; comments (or blank lines) between; JSON over many lines."""

    step: int = 1000
    newline: str = "\n"
    comments: bool = False
    spread: bool = False
    spaced: bool = True


class Format(msgspec.Struct, frozen=True):
    """`says`: text, thinking, signature, redacted, calls, call_signature, refusal, stop_sequence, cache_read, …"""

    whole: Callable[[ChatResponse], bytes]
    stream: Callable[[ChatResponse, Style], bytes]
    says: frozenset[str]


PLAIN = Style()


def cut(text: str, step: int) -> list[str]:
    """`text` in pieces, at least one."""
    return [text[at : at + step] for at in range(0, len(text), step)] or [""]


def compact(document: Any) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def sse(events: list[tuple[str | None, JSON | str]], style: Style) -> bytes:
    """Server-sent events: an optional name and JSON, or a text that is sent as it is."""
    out: list[str] = []
    colon = ": " if style.spaced else ":"
    for name, document in events:
        if style.comments:
            out += [": keep-alive é", ""]
        if name is not None:
            out.append(f"event{colon}{name}")
        text = document if isinstance(document, str) else _written(document, style)
        out += [f"data{colon}{line}" for line in text.split("\n")]
        out.append("")
    return "".join(line + style.newline for line in out).encode()


def _written(document: JSON, style: Style) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) if style.spread else compact(document)


def texts_of(answer: ChatResponse) -> str:
    return "".join(part.text for part in answer.parts if isinstance(part, Text))


def thinking_of(answer: ChatResponse) -> list[Thinking]:
    return [part for part in answer.parts if isinstance(part, Thinking)]


def calls_of(answer: ChatResponse) -> list[ToolCall]:
    return [part for part in answer.parts if isinstance(part, ToolCall)]


def usage_of(answer: ChatResponse) -> Usage:
    return answer.usage or Usage()


def arguments_of(call: ToolCall) -> JSON:
    """As the object that they are in most formats."""
    return dict(json.loads(call.arguments or "{}"))
