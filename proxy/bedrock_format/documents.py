"""Images, documents and sounds as the Converse API takes them: inline only, of the formats it lists.

Nothing is sent by address: AWS would read s3:// addresses with the operator's rights, not with the caller's.
"""

from __future__ import annotations

import base64
import re
from pathlib import PurePosixPath
from typing import Any

from proxy.anthropic_format.turns import inexpressible
from proxy.canonical import Audio, File, Image

JSON = dict[str, Any]

#: The longest name of a document (characters), and what one without a name is called.
MAX_DOCUMENT_NAME = 200
UNNAMED = "document"

_IMAGES = {"image/png": "png", "image/jpeg": "jpeg", "image/jpg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
_SOUNDS = frozenset(
    ("mp3", "opus", "wav", "aac", "flac", "mp4", "ogg", "mkv", "mka", "x-aac", "m4a", "mpeg", "mpga", "pcm", "webm")
)
_OFFICE = "application/vnd.openxmlformats-officedocument."
_DOCUMENTS = {
    "application/pdf": "pdf",
    "application/msword": "doc",
    f"{_OFFICE}wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    f"{_OFFICE}spreadsheetml.sheet": "xlsx",
    "text/csv": "csv",
    "text/html": "html",
    "text/markdown": "md",
    "application/json": "txt",
    "application/xml": "txt",
    "application/yaml": "txt",
}
_SUFFIXES = {name: name for name in ("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md")} | {
    "htm": "html",
    "json": "txt",
    "log": "txt",
    "xml": "txt",
    "yaml": "txt",
    "yml": "txt",
}

#: Names may have letters, digits, single spaces, hyphens, round and square brackets.
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9()\[\]-]+")


def image_block(image: Image) -> JSON:
    if not image.data:
        raise inexpressible("an image by URL or by another provider's file id: send it inline")
    media_type = (image.media_type or "image/png").partition(";")[0].strip().lower()
    if media_type not in _IMAGES:
        raise inexpressible(f"an image of type '{media_type[:60]}'")
    return {"image": {"format": _IMAGES[media_type], "source": {"bytes": image.data}}}


def audio_block(audio: Audio) -> JSON:
    name = {"pcm16": "pcm"}.get(audio.format, audio.format)
    if not audio.data:
        raise inexpressible("an empty sound")
    if name not in _SOUNDS:
        raise inexpressible(f"audio of format '{audio.format[:60]}'")
    return {"audio": {"format": name, "source": {"bytes": audio.data}}}


class Documents:
    """Writes the documents of one request: their names must differ."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def block(self, file: File) -> JSON:
        if file.text is not None:
            data, kind = base64.b64encode(file.text.encode()).decode(), "txt"
        elif file.data is not None:
            data, kind = file.data, _format(file)
        else:
            raise inexpressible("a file by URL or by another provider's id: send it inline")
        if not data:
            raise inexpressible("an empty file")
        return {"document": {"format": kind, "name": self._name(file.name), "source": {"bytes": data}}}

    def _name(self, wanted: str | None) -> str:
        stem = PurePosixPath(wanted or "").name
        base = _NOT_IN_NAMES.sub(" ", stem).strip()[: MAX_DOCUMENT_NAME - 8].strip() or UNNAMED
        name, number = base, 1
        while name in self._names:
            number += 1
            name = f"{base} ({number})"
        self._names.add(name)
        return name


def _format(file: File) -> str:
    media_type = (file.media_type or "").partition(";")[0].strip().lower()
    suffix = _SUFFIXES.get(PurePosixPath(file.name or "").suffix[1:].lower())
    if media_type in ("", "application/octet-stream"):
        return suffix or "pdf"
    if media_type in _DOCUMENTS:
        return _DOCUMENTS[media_type]
    if media_type.startswith("text/"):
        return suffix if suffix in ("csv", "html", "md") else "txt"
    raise inexpressible(f"a file of type '{media_type[:60]}'")
