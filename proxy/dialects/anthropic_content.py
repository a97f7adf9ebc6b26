"""The content blocks of an Anthropic message as canonical parts.

Blocks that only Anthropic knows (server tools and their results, search results, files by its ids) become Foreign.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from proxy.canonical import File, Foreign, Image, Text, Thinking, ToolCall, ToolResult
from proxy.context import ANTHROPIC
from proxy.dialects.fields import refused
from proxy.openai_format.shapes import read_signature

JSON = dict[str, Any]


def content_parts(content: Any, path: str) -> list[Any]:
    """Parts of a message's content, found at `path` of the body; empty texts are left out. Raises BadRequest."""
    if content is None:
        return []
    if isinstance(content, str):
        return [Text(content)] if content else []
    if not isinstance(content, list):
        raise refused(path, "must be a text or a list of blocks")
    parts: list[Any] = []
    for number, block in enumerate(content):
        place = f"{path}[{number}]"
        kind = block.get("type") if isinstance(block, dict) else None
        if not isinstance(kind, str) or not kind:
            raise refused(f"{place}.type", "must name the type of a block")
        reader = _READERS.get(kind)
        parts += reader(block, place) if reader else [_foreign(block, kind)]
    return parts


def text_parts(content: Any, path: str) -> list[Text]:
    """The same for what may hold text only (system)."""
    parts = content_parts(content, path)
    if not all(isinstance(part, Text) for part in parts):
        raise refused(path, "may hold text only")
    return parts


def cache_control(source: JSON) -> JSON | None:
    value = source.get("cache_control")
    return value if isinstance(value, dict) else None


def _foreign(block: JSON, kind: str) -> Foreign:
    return Foreign(ANTHROPIC, kind[:60], block)


def _member(block: JSON, name: str, path: str) -> str:
    value = block.get(name)
    if not isinstance(value, str):
        raise refused(f"{path}.{name}", "must be a text")
    return value


def _named(block: JSON, name: str, path: str) -> str:
    value = _member(block, name, path)
    if not value:
        raise refused(f"{path}.{name}", "must not be empty")
    return value


def _source(block: JSON, path: str) -> tuple[str, JSON]:
    source = block.get("source")
    kind = source.get("type") if isinstance(source, dict) else None
    if not isinstance(source, dict) or not isinstance(kind, str):
        raise refused(f"{path}.source", "must be an object with a type")
    return kind, source


def _text(block: JSON, path: str) -> list[Any]:
    text = _member(block, "text", path)
    return [Text(text, cache_control(block))] if text else []


def _image(block: JSON, path: str) -> list[Any]:
    kind, source = _source(block, path)
    if kind == "base64":
        data = _member(source, "data", f"{path}.source")
        media_type = _member(source, "media_type", f"{path}.source")
        return [Image(media_type=media_type, data=data, cache_control=cache_control(block))]
    if kind == "url":
        return [Image(url=_member(source, "url", f"{path}.source"), cache_control=cache_control(block))]
    return [_foreign(block, f"image of source {kind}")]


def _document(block: JSON, path: str) -> list[Any]:
    kind, source = _source(block, path)
    title, context = block.get("title"), block.get("context")
    about: list[Any] = [Text(context)] if isinstance(context, str) and context else []
    if kind == "content":
        return about + content_parts(source.get("content"), f"{path}.source.content")
    file = File(name=title if isinstance(title, str) else None, cache_control=cache_control(block))
    if kind == "base64":
        file.data = _member(source, "data", f"{path}.source")
        file.media_type = _member(source, "media_type", f"{path}.source")
    elif kind == "text":
        file.text, file.media_type = _member(source, "data", f"{path}.source"), "text/plain"
    elif kind == "url":
        file.url, file.media_type = _member(source, "url", f"{path}.source"), "application/pdf"
    else:
        return [_foreign(block, f"document of source {kind}")]
    return [*about, file]


def _thinking(block: JSON, path: str) -> list[Any]:
    signature = block.get("signature")
    return [
        Thinking(
            text=_member(block, "thinking", path),
            signature=signature if isinstance(signature, str) and signature else None,
        )
    ]


def _redacted(block: JSON, path: str) -> list[Any]:
    return [Thinking(redacted=_member(block, "data", path))]


def _tool_use(block: JSON, path: str) -> list[Any]:
    given = block.get("input")
    if given is not None and not isinstance(given, dict):
        raise refused(f"{path}.input", "must be an object")
    arguments = msgspec.json.encode(given or {}).decode()
    return [ToolCall(_named(block, "id", path), _named(block, "name", path), arguments, read_signature(block))]


def _tool_result(block: JSON, path: str) -> list[Any]:
    return [
        ToolResult(
            call_id=_named(block, "tool_use_id", path),
            content=content_parts(block.get("content"), f"{path}.content"),
            is_error=block.get("is_error") is True,
            cache_control=cache_control(block),
        )
    ]


_READERS: dict[str, Callable[[JSON, str], list[Any]]] = {
    "text": _text,
    "image": _image,
    "document": _document,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
}
