"""Images, files and sound as parts of a Gemini request.

Inline data goes as it is. An https or gs URL goes as `fileData`: Google fetches it, the gateway never does. Of ids,
only those of Google's own Files API are known to it.
"""

from __future__ import annotations

import re
from typing import Any

from proxy.canonical import Audio, File, Image
from proxy.errors import BadRequest

JSON = dict[str, Any]

_MEDIA_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
    "heic": "image/heic",
    "heif": "image/heif",
    "pdf": "application/pdf",
    "txt": "text/plain",
    "md": "text/markdown",
    "csv": "text/csv",
    "html": "text/html",
    "xml": "text/xml",
    "json": "application/json",
    "mp3": "audio/mp3",
    "wav": "audio/wav",
    "mp4": "video/mp4",
}

_GOOGLE_FILE = re.compile(r"(https://generativelanguage\.googleapis\.com/v1(beta)?/)?files/[a-z0-9-]{1,60}|gs://\S+")
_FILES_API = "https://generativelanguage.googleapis.com/v1beta/"
_FORMAT = re.compile(r"[a-zA-Z0-9.+-]{1,40}")


def inexpressible(what: str, param: str = "messages") -> BadRequest:
    return BadRequest(f"The provider of this model does not accept {what}.", param=param)


def media_part(part: Image | File | Audio) -> JSON:
    """Raises BadRequest naming what Gemini cannot be sent."""
    if isinstance(part, Image):
        return _image(part)
    return _file(part) if isinstance(part, File) else _audio(part)


def _image(image: Image) -> JSON:
    if image.data is not None:
        return _inline(image.media_type or "image/png", image.data)
    if image.url is None:
        raise inexpressible("an image by another provider's file id")
    return _remote(image.url, image.media_type, "an image")


def _file(file: File) -> JSON:
    if file.text is not None:
        return {"text": f"{file.name}\n\n{file.text}" if file.name else file.text}
    if file.data is not None:
        return _inline(file.media_type or _type_by_name(file.name) or "application/pdf", file.data)
    if file.url is not None:
        return _remote(file.url, _type_by_name(_path(file.url)) or file.media_type, "a file")
    if file.file_id is None or not _GOOGLE_FILE.fullmatch(file.file_id):
        raise inexpressible("a file by another provider's id")
    uri = _FILES_API + file.file_id if file.file_id.startswith("files/") else file.file_id
    return _remote(uri, file.media_type or _type_by_name(file.name), "a file")


def _audio(audio: Audio) -> JSON:
    if not _FORMAT.fullmatch(audio.format):
        raise inexpressible("sound of this format")
    return _inline(f"audio/{audio.format.lower()}", audio.data)


def _inline(media_type: str, data: str) -> JSON:
    return {"inlineData": {"mimeType": media_type.partition(";")[0].strip().lower(), "data": data}}


def _remote(url: str, media_type: str | None, what: str) -> JSON:
    if not url.startswith(("https://", "gs://")):
        raise inexpressible(f"{what} by an address that does not begin with https:// or gs://")
    data: JSON = {"fileUri": url}
    known = media_type or _type_by_name(_path(url))
    if known is not None:
        data["mimeType"] = known
    return {"fileData": data}


def _path(url: str) -> str:
    return url.partition("#")[0].partition("?")[0]


def _type_by_name(name: str | None) -> str | None:
    return _MEDIA_TYPES.get((name or "").rpartition(".")[2].lower())
