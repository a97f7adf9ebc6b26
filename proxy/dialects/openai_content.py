"""The content of an OpenAI-style message as canonical parts: a text, or a list of typed parts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from proxy.canonical import Audio, File, Image, Text, Thinking
from proxy.dialects.fields import refused

JSON = dict[str, Any]
Part = Text | Image | File | Audio | Thinking

_DATA_URL = re.compile(r"data:([^;,]*)((?:;[^;,]*)*),", re.IGNORECASE)
_DETAILS = ("auto", "low", "high")


def content_parts(message: JSON, path: str) -> list[Any]:
    """Parts of `message`, found at `path` of the body; empty texts are left out. Raises BadRequest."""
    content = message.get("content")
    if content is None:
        return []
    if isinstance(content, str):
        return [Text(content)] if content else []
    if not isinstance(content, list):
        raise refused(f"{path}.content", "must be a text or a list of parts")
    parts: list[Part] = []
    for number, entry in enumerate(content):
        place = f"{path}.content[{number}]"
        if not isinstance(entry, dict):
            raise refused(place, "must be an object")
        kind = entry.get("type")
        reader = _READERS.get(kind) if isinstance(kind, str) else None
        if reader is None:
            raise refused(f"{place}.type", f"is no known type of content part: {str(kind)[:60]!r}")
        part = reader(entry, place)
        if not isinstance(part, Text) or part.text:
            parts.append(part)
    return parts


def _cache_control(entry: JSON) -> JSON | None:
    """Not OpenAI's, but usual where OpenAI's format is spoken to Claude."""
    value = entry.get("cache_control")
    return value if isinstance(value, dict) else None


def _member(entry: JSON, name: str, path: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str):
        raise refused(f"{path}.{name}", "must be a text")
    return value


def _object(entry: JSON, name: str, path: str) -> JSON:
    value = entry.get(name)
    if not isinstance(value, dict):
        raise refused(f"{path}.{name}", "must be an object")
    return value


def _text(entry: JSON, path: str) -> Text:
    return Text(_member(entry, "text", path), _cache_control(entry))


def _refusal(entry: JSON, path: str) -> Text:
    return Text(_member(entry, "refusal", path))


def _thinking(entry: JSON, path: str) -> Thinking:
    """Mistral's: a list of text parts."""
    inner = entry.get("thinking")
    texts = inner if isinstance(inner, list) else [{"text": inner}]
    if not all(isinstance(text, dict) for text in texts):
        raise refused(f"{path}.thinking", "must be a list of text parts")
    return Thinking(text="".join(_member(text, "text", f"{path}.thinking") for text in texts))


def _image(entry: JSON, path: str) -> Image:
    source = entry.get("image_url")
    source = {"url": source} if isinstance(source, str) else _object(entry, "image_url", path)
    url, detail = _member(source, "url", f"{path}.image_url"), source.get("detail")
    if detail is not None and detail not in _DETAILS:
        raise refused(f"{path}.image_url.detail", f"must be one of {', '.join(_DETAILS)}")
    control = _cache_control(entry)
    if url[:5].lower() == "data:":
        media_type, data = inline_data(url, f"{path}.image_url.url")
        return Image(media_type=media_type, data=data, detail=detail, cache_control=control)
    if not url.lower().startswith(("https://", "http://")):
        raise refused(f"{path}.image_url.url", "must be a data:, https: or http: URL")
    return Image(url=url, detail=detail, cache_control=control)


def inline_data(url: str, path: str) -> tuple[str | None, str]:
    """Media type and base64 text of a data: URL."""
    head = _DATA_URL.match(url)
    if head is None or not head.group(2).lower().endswith(";base64"):
        raise refused(path, "must hold base64 data: data:image/png;base64,…")
    return head.group(1) or None, url[head.end() :]


def _audio(entry: JSON, path: str) -> Audio:
    source = _object(entry, "input_audio", path)
    return Audio(_member(source, "data", f"{path}.input_audio"), _member(source, "format", f"{path}.input_audio"))


def _file(entry: JSON, path: str) -> File:
    source = _object(entry, "file", path)
    name, data, file_id = (source.get(member) for member in ("filename", "file_data", "file_id"))
    file = File(name=name if isinstance(name, str) else None, cache_control=_cache_control(entry))
    if isinstance(data, str) and data:
        file.data = data
        if data[:5].lower() == "data:":
            file.media_type, file.data = inline_data(data, f"{path}.file.file_data")
    elif isinstance(file_id, str) and file_id:
        file.file_id = file_id
    else:
        raise refused(f"{path}.file", "must have file_data or file_id")
    return file


_READERS: dict[str, Callable[[JSON, str], Part]] = {
    "text": _text,
    "input_text": _text,
    "output_text": _text,
    "refusal": _refusal,
    "thinking": _thinking,
    "image_url": _image,
    "input_audio": _audio,
    "file": _file,
}
