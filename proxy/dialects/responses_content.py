"""Content of items of OpenAI's Responses API as canonical parts. Raises BadRequest naming the member."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proxy.canonical import Audio, File, Image, Text, Thinking
from proxy.dialects.fields import refused
from proxy.dialects.openai_content import inline_data
from proxy.errors import Inexpressible
from proxy.openai_format.responses_shapes import Sealed, is_sealed, unsealed

JSON = dict[str, Any]
Part = Text | Image | File | Audio

#: How closely an image is looked at -> the canonical word; "original" is newer than the others.
_DETAILS = {"auto": "auto", "low": "low", "high": "high", "original": "high"}


def inexpressible(param: str, what: str) -> Inexpressible:
    """Sound, but only OpenAI's own API can do it."""
    return Inexpressible(f"The providers of this model do not accept '{param}': {what}.", param=param)


def content_parts(content: Any, path: str) -> list[Part]:
    """A text or a list of typed parts, found at `path` of the body; empty texts are left out."""
    if isinstance(content, str):
        return [Text(content)] if content else []
    if not isinstance(content, list):
        raise refused(path, "must be a text or a list of parts")
    parts: list[Part] = []
    for number, entry in enumerate(content):
        place = f"{path}[{number}]"
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


def thinking_of(item: JSON, path: str) -> Thinking | Sealed | None:
    """A reasoning item: thinking, the signature of the call that follows, or None when it says nothing to others."""
    text = "".join(_texts(item, "summary", path)) or "".join(_texts(item, "content", path))
    content = item.get("encrypted_content")
    if content is not None and not isinstance(content, str):
        raise refused(f"{path}.encrypted_content", "must be a text")
    if content is None or not is_sealed(content):  # OpenAI's own: nobody else can read it
        return Thinking(text=text) if text else None
    try:
        sealed = unsealed(content)
    except ValueError:
        raise refused(f"{path}.encrypted_content", "is not what was answered") from None
    if sealed.call is not None:
        return sealed
    if not (text or sealed.signature or sealed.redacted):
        return None
    return Thinking(text=text, signature=sealed.signature, redacted=sealed.redacted)


def _texts(item: JSON, name: str, path: str) -> list[str]:
    entries = item.get(name)
    if entries is None:
        return []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise refused(f"{path}.{name}", "must be a list of text parts")
    return [_member(entry, "text", f"{path}.{name}[{number}]") for number, entry in enumerate(entries)]


def _member(entry: JSON, name: str, path: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str):
        raise refused(f"{path}.{name}", "must be a text")
    return value


def _optional(entry: JSON, name: str, path: str) -> str | None:
    """A text that may be left out or null, and says nothing when it is empty."""
    return None if entry.get(name) is None else _member(entry, name, path) or None


def _text(entry: JSON, path: str) -> Text:
    return Text(_member(entry, "text", path))


def _refusal(entry: JSON, path: str) -> Text:
    return Text(_member(entry, "refusal", path))


def _image(entry: JSON, path: str) -> Image:
    url, detail = _optional(entry, "image_url", path), _optional(entry, "detail", path)
    if detail is not None:
        if detail not in _DETAILS:
            raise refused(f"{path}.detail", f"must be one of {', '.join(_DETAILS)}")
        detail = _DETAILS[detail]
    if url is None:
        if _optional(entry, "file_id", path) is not None:
            raise inexpressible(f"{path}.file_id", "the file is at OpenAI")
        raise refused(path, "must have image_url or file_id")
    if url[:5].lower() == "data:":
        media_type, data = inline_data(url, f"{path}.image_url")
        return Image(media_type=media_type, data=data, detail=detail)
    return Image(url=_web_url(url, f"{path}.image_url"), detail=detail)


def _web_url(url: str, path: str) -> str:
    if not url.lower().startswith(("https://", "http://")):
        raise refused(path, "must be a data:, https: or http: URL")
    return url


def _file(entry: JSON, path: str) -> File:
    file = File(name=_optional(entry, "filename", path))
    data, url = _optional(entry, "file_data", path), _optional(entry, "file_url", path)
    if data is not None:
        file.data = data
        if data[:5].lower() == "data:":
            file.media_type, file.data = inline_data(data, f"{path}.file_data")
    elif url is not None:
        file.url = _web_url(url, f"{path}.file_url")
    elif _optional(entry, "file_id", path) is not None:
        raise inexpressible(f"{path}.file_id", "the file is at OpenAI")
    else:
        raise refused(path, "must have file_data, file_url or file_id")
    return file


def _audio(entry: JSON, path: str) -> Audio:
    source = entry.get("input_audio")
    if not isinstance(source, dict):
        raise refused(f"{path}.input_audio", "must be an object")
    return Audio(_member(source, "data", f"{path}.input_audio"), _member(source, "format", f"{path}.input_audio"))


_READERS: dict[str, Callable[[JSON, str], Part]] = {
    "input_text": _text,
    "output_text": _text,
    "text": _text,
    "refusal": _refusal,
    "input_image": _image,
    "input_file": _file,
    "input_audio": _audio,
}
