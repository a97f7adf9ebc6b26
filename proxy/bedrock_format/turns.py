"""Canonical messages as the turns of a Converse request.

AWS's rules: roles alternate, the first turn is the user's, no text is blank, results of tools come first in the turn
after the calls, a document stands beside a text, and whoever speaks of tools must offer some. When none are offered, or
none may be called (Converse has no word for that), earlier calls and their results are told as text.
"""

from __future__ import annotations

from typing import Any

import msgspec

from proxy.anthropic_format.shapes import allowed_name, is_signed, tool_input
from proxy.anthropic_format.turns import OPENING, inexpressible
from proxy.bedrock_format import models
from proxy.bedrock_format.documents import Documents, audio_block, image_block
from proxy.bedrock_format.shapes import MAX_NAME
from proxy.canonical import Audio, File, Foreign, Image, Message, Text, Thinking, ToolCall, ToolResult

JSON = dict[str, Any]

#: Stands beside documents that the caller sent without a word, and for what a tool gave when it gave nothing.
SEE_DOCUMENT = "See the document."
NO_OUTPUT = "(no output)"


def turns(messages: list[Message], model: str, *, with_tools: bool) -> list[JSON]:
    """Raises BadRequest naming a part that Converse has no word for."""
    return _Turns(model, with_tools).written(messages)


def system_blocks(system: list[Text], model: str) -> list[JSON]:
    return [block for text in system for block in _text(text, model)]


def cache_point(cache_control: JSON | None) -> JSON | None:
    """The mark that stands behind what shall be cached."""
    if cache_control is None:
        return None
    return {"type": "default", "ttl": "1h"} if cache_control.get("ttl") == "1h" else {"type": "default"}


class _Turns:
    def __init__(self, model: str, with_tools: bool) -> None:
        self._model = model
        self._with_tools = with_tools
        self._documents = Documents()
        self._called: dict[str, str] = {}  # id of a call -> name of its tool

    def written(self, messages: list[Message]) -> list[JSON]:
        found: list[tuple[str, list[list[JSON]]]] = []  # role, and the blocks of each part
        for message in messages:
            groups = [blocks for part in message.parts if (blocks := self._blocks(part, message.role))]
            if found and found[-1][0] == message.role:
                found[-1][1].extend(groups)
            elif groups:
                found.append((message.role, groups))
        if not found or found[0][0] != "user":
            found.insert(0, ("user", [[{"text": OPENING}]]))
        written = [{"role": role, "content": _content(role, groups)} for role, groups in found]
        _strip_prefill(written[-1])
        return written

    def _blocks(self, part: Any, role: str) -> list[JSON]:
        """The blocks of one part: none for a blank text, or for thinking that goes to a model which takes none."""
        if isinstance(part, Text):
            return _text(part, self._model)
        if isinstance(part, Thinking):
            return _thinking(part) if role == "assistant" and models.takes_reasoning(self._model) else []
        if isinstance(part, ToolCall):
            self._called[part.id] = part.name
            return [_call(part) if self._with_tools else _told_call(part)]
        if isinstance(part, ToolResult):
            return self._result(part) if self._with_tools else self._told_result(part)
        return self._media(part)

    def _media(self, part: Any) -> list[JSON]:
        if isinstance(part, Image):
            return _marked([image_block(part)], part.cache_control, self._model)
        if isinstance(part, File):
            return _marked([self._documents.block(part)], part.cache_control, self._model)
        if isinstance(part, Audio):
            return [audio_block(part)]
        kind = part.type if isinstance(part, Foreign) else type(part).__name__.lower()
        raise inexpressible(f"a block of type '{kind}'")

    def _result(self, result: ToolResult) -> list[JSON]:
        content = [block for part in result.content for block in self._inner(part)] or [{"text": NO_OUTPUT}]
        written: JSON = {"toolUseId": allowed_name(result.call_id, MAX_NAME), "content": content}
        if result.is_error:
            written["status"] = "error"
        return _marked([{"toolResult": written}], result.cache_control, self._model)

    def _told_result(self, result: ToolResult) -> list[JSON]:
        name = result.name or self._called.get(result.call_id, result.call_id)
        outcome = "failed" if result.is_error else "gave"
        content = [block for part in result.content for block in self._inner(part)] or [{"text": NO_OUTPUT}]
        return _marked([{"text": f"[The tool {name} {outcome}:]"}, *content], result.cache_control, self._model)

    def _inner(self, part: Any) -> list[JSON]:
        """A block inside a result. No mark of the cache may stand there."""
        if isinstance(part, Text):
            return [{"text": part.text}] if part.text.strip() else []
        if isinstance(part, Image):
            return [image_block(part)]
        if isinstance(part, File):
            return [self._documents.block(part)]
        kind = part.type if isinstance(part, Foreign) else type(part).__name__.lower()
        raise inexpressible(f"a block of type '{kind}' in the result of a tool")


def _content(role: str, groups: list[list[JSON]]) -> list[JSON]:
    groups = sorted(groups, key=lambda blocks: "toolResult" not in blocks[0])
    content = [block for blocks in groups for block in blocks]
    if role == "user" and any("document" in block for block in content) and not any("text" in b for b in content):
        content.append({"text": SEE_DOCUMENT})
    return content


def _strip_prefill(last: JSON) -> None:
    """Claude refuses white space at the end of words that it is to continue."""
    block = last["content"][-1]
    if last["role"] == "assistant" and "text" in block:
        block["text"] = block["text"].rstrip()


def _text(part: Text, model: str) -> list[JSON]:
    return _marked([{"text": part.text}], part.cache_control, model) if part.text.strip() else []


def _marked(blocks: list[JSON], cache_control: JSON | None, model: str) -> list[JSON]:
    point = cache_point(cache_control) if models.takes_cache_points(model) else None
    return blocks if point is None else [*blocks, {"cachePoint": point}]


def _thinking(part: Thinking) -> list[JSON]:
    if part.redacted is not None:
        return [{"reasoningContent": {"redactedContent": part.redacted}}]
    if not is_signed(part.signature):
        return []
    return [{"reasoningContent": {"reasoningText": {"text": part.text, "signature": part.signature}}}]


def _call(call: ToolCall) -> JSON:
    return {
        "toolUse": {
            "toolUseId": allowed_name(call.id, MAX_NAME),
            "name": allowed_name(call.name, MAX_NAME),
            "input": tool_input(call.arguments),
        }
    }


def _told_call(call: ToolCall) -> JSON:
    return {"text": f"[Called the tool {call.name} with {msgspec.json.encode(tool_input(call.arguments)).decode()}]"}
