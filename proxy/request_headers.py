"""What a request's headers say about a call."""

from __future__ import annotations

from proxy.context import Call
from proxy.dialects import fields
from proxy.errors import BadRequest
from proxy.strict_json import decode_object

#: The longest deadline a client may name (seconds): beyond it the providers' own hold anyway.
MAX_TIMEOUT = 86_400.0


def apply_headers(call: Call, headers: dict[bytes, bytes]) -> None:
    """Note versions to forward, metadata and the client's own deadline on `call`. Raises BadRequest."""
    call.anthropic_version = _text(headers.get(b"anthropic-version"))
    call.anthropic_beta = _text(headers.get(b"anthropic-beta"))
    metadata = headers.get(b"x-tollbar-metadata")
    if metadata is not None:
        call.metadata = {**(call.metadata or {}), **_metadata(metadata)}
    patience = headers.get(b"x-stainless-read-timeout")
    if patience is not None and call.timeout_ms is None:
        call.timeout_ms = _milliseconds(patience)


def _metadata(value: bytes) -> dict[str, str]:
    try:
        found = fields.metadata({"metadata": decode_object(value)})
    except BadRequest as error:
        raise BadRequest("The header X-Tollbar-Metadata must be a JSON object of texts.", param="metadata") from error
    return found or {}


def _milliseconds(value: bytes) -> int | None:
    """The SDKs send seconds; what is no positive number of them is no deadline."""
    try:
        seconds = float(value)
    except ValueError:
        return None
    return int(seconds * 1000) if 0 < seconds <= MAX_TIMEOUT else None


def _text(value: bytes | None) -> str | None:
    return value.decode("latin-1") if value else None
