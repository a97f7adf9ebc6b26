"""Canonical messages as the turns Anthropic takes.

The API's rules: roles alternate, the first turn is the user's, results of tools come first in the turn after the calls,
no text is blank, the last turn of an assistant does not end in white space.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from proxy.anthropic_format.shapes import MAX_TOOL_NAME, allowed_name, is_signed, thinking_block, tool_input
from proxy.canonical import File, Foreign, Image, Message, Text, Thinking, ToolCall, ToolResult
from proxy.context import ANTHROPIC
from proxy.errors import BadRequest

JSON = dict[str, Any]

#: Stands for the user's turn when a conversation has none at its beginning.
OPENING = "Begin."

_TEXT_SUFFIXES = (".txt", ".md", ".csv", ".json", ".xml", ".html", ".yaml", ".yml", ".log")


def turns(messages: list[Message]) -> list[JSON]:
    """Raises BadRequest naming a part that Anthropic cannot be sent."""
    written: list[JSON] = []
    for message in messages:
        blocks = [block for part in message.parts for block in _blocks(part)]
        if not blocks:
            continue
        if written and written[-1]["role"] == message.role:
            written[-1]["content"] += blocks
        else:
            written.append({"role": message.role, "content": blocks})
    for turn in written:
        if turn["role"] == "user":
            turn["content"].sort(key=lambda block: block["type"] != "tool_result")
    if not written or written[0]["role"] != "user":
        written.insert(0, {"role": "user", "content": [{"type": "text", "text": OPENING}]})
    _strip_prefill(written[-1])
    return written


def system_blocks(system: list[Text]) -> list[JSON]:
    return [block for text in system for block in _text(text)]


def inexpressible(what: str, param: str = "messages") -> BadRequest:
    return BadRequest(f"The provider of this model does not accept {what}.", param=param)


def _strip_prefill(last: JSON) -> None:
    block = last["content"][-1]
    if last["role"] == "assistant" and block["type"] == "text":
        block["text"] = block["text"].rstrip()


def _blocks(part: Any) -> list[JSON]:
    """The blocks of one part: none for a blank text or for thinking that nobody signed."""
    if isinstance(part, Text):
        return _text(part)
    if isinstance(part, Thinking):
        return [thinking_block(part)] if is_signed(part.signature) or part.redacted else []
    if isinstance(part, ToolCall):
        return [_call(part)]
    if isinstance(part, ToolResult):
        return [_result(part)]
    if isinstance(part, Image):
        return [_image(part)]
    if isinstance(part, File):
        return [_file(part)]
    if isinstance(part, Foreign):
        if part.dialect == ANTHROPIC:
            return [part.block]
        raise inexpressible(f"a block of type '{part.type}'")
    raise inexpressible(f"a block of type '{type(part).__name__.lower()}'")


def _text(part: Text) -> list[JSON]:
    return [_marked({"type": "text", "text": part.text}, part.cache_control)] if part.text.strip() else []


def _marked(block: JSON, cache_control: JSON | None) -> JSON:
    return block if cache_control is None else block | {"cache_control": cache_control}


def _call(call: ToolCall) -> JSON:
    return {
        "type": "tool_use",
        "id": allowed_name(call.id),
        "name": allowed_name(call.name, MAX_TOOL_NAME),
        "input": tool_input(call.arguments),
    }


def _result(result: ToolResult) -> JSON:
    block: JSON = {"type": "tool_result", "tool_use_id": allowed_name(result.call_id)}
    content = [inner for part in result.content for inner in _blocks(part)]
    if content:
        block["content"] = content
    if result.is_error:
        block["is_error"] = True
    return _marked(block, result.cache_control)


def _image(image: Image) -> JSON:
    if image.data is not None:
        source: JSON = {"type": "base64", "media_type": image.media_type or "image/png", "data": image.data}
    elif image.url is not None:
        source = {"type": "url", "url": image.url}
    else:
        raise inexpressible("an image by another provider's file id")
    return _marked({"type": "image", "source": source}, image.cache_control)


def _file(file: File) -> JSON:
    block: JSON = {"type": "document", "source": _source(file)}
    if file.name:
        block["title"] = file.name
    return _marked(block, file.cache_control)


def _source(file: File) -> JSON:
    if file.text is not None:
        return {"type": "text", "media_type": "text/plain", "data": file.text}
    if file.url is not None:
        return {"type": "url", "url": file.url}
    if file.data is None:
        raise inexpressible("a file by another provider's id")
    media_type = (file.media_type or "").partition(";")[0].lower()
    if media_type.startswith("text/") or (not media_type and (file.name or "").lower().endswith(_TEXT_SUFFIXES)):
        return {"type": "text", "media_type": "text/plain", "data": _decoded(file.data)}
    if media_type not in ("", "application/pdf"):
        raise inexpressible(f"a file of type '{media_type[:60]}'")
    return {"type": "base64", "media_type": "application/pdf", "data": file.data}


def _decoded(data: str) -> str:
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise BadRequest("A text file must be UTF-8 in base64.", param="messages") from None
