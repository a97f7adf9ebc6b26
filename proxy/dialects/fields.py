"""Reading single members of a client's body. Every function names the member in the BadRequest it raises."""

from __future__ import annotations

from typing import Any

from proxy.errors import BadRequest

JSON = dict[str, Any]

#: The most output tokens any caller may name: above, it is a mistake.
MAX_OUTPUT_TOKENS = 10_000_000
#: What a legacy completion generates when its caller names no max_tokens, as OpenAI documents it.
DEFAULT_COMPLETION_TOKENS = 16
#: No vocabulary is larger.
MAX_TOKEN_ID = (1 << 31) - 1
MAX_MODEL_NAME = 256
MAX_MESSAGES = 10_000
MAX_TOOLS = 512
MAX_STOPS = 64
MAX_CHOICES = 128
MAX_USER = 512
MAX_METADATA, MAX_METADATA_KEY, MAX_METADATA_VALUE = 64, 64, 512


def refused(param: str, problem: str) -> BadRequest:
    return BadRequest(f"'{param}' {problem}.", param=param)


def model(body: JSON) -> str:
    value = body.get("model")
    if not isinstance(value, str) or not value:
        raise refused("model", "must be a text that is not empty")
    if len(value) > MAX_MODEL_NAME or "\x00" in value:
        raise refused("model", f"is longer than {MAX_MODEL_NAME} characters or holds a NUL")
    return value


def messages(body: JSON, roles: tuple[str, ...]) -> list[JSON]:
    """The list of messages: objects with a known role."""
    value = body.get("messages")
    if not isinstance(value, list) or not value:
        raise refused("messages", "must be a list that is not empty")
    if len(value) > MAX_MESSAGES:
        raise refused("messages", f"has more than {MAX_MESSAGES} entries")
    for number, message in enumerate(value):
        if not isinstance(message, dict):
            raise refused(f"messages[{number}]", "must be an object")
        if message.get("role") not in roles:
            raise refused(f"messages[{number}].role", f"must be one of {', '.join(roles)}")
    return value


def integer(body: JSON, name: str, low: int, high: int) -> int | None:
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 10.0 is an integer to JSON Schema, and so to /v1/openapi.json
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise refused(name, f"must be an integer from {low} to {high}")
    return value


def number(body: JSON, name: str, low: float, high: float) -> float | None:
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
        raise refused(name, f"must be a number from {low:g} to {high:g}")
    return value


def is_token_id(value: object) -> bool:
    """Integers in any spelling of JSON: 10.0 is one."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return 0 <= value <= MAX_TOKEN_ID and value == int(value)


def boolean(body: JSON, name: str) -> bool | None:
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise refused(name, "must be true or false")
    return value


def text(body: JSON, name: str, longest: int) -> str | None:
    """A text that may be stored: without NUL."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > longest or "\x00" in value:
        raise refused(name, f"must be a text of at most {longest} characters without NUL")
    return value


def stops(body: JSON) -> list[str]:
    """`stop`: a text or a list of texts."""
    value = body.get("stop")
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or len(value) > MAX_STOPS or not all(isinstance(item, str) for item in value):
        raise refused("stop", f"must be a text or a list of at most {MAX_STOPS} texts")
    return value


def objects(body: JSON, name: str, longest: int) -> list[JSON]:
    """A list of objects, empty when absent."""
    value = body.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > longest or not all(isinstance(item, dict) for item in value):
        raise refused(name, f"must be a list of at most {longest} objects")
    return value


def metadata(body: JSON) -> dict[str, str] | None:
    """An object of texts, kept on the audit event."""
    value = body.get("metadata")
    if value is None:
        return None
    if not isinstance(value, dict) or len(value) > MAX_METADATA:
        raise refused("metadata", f"must be an object of at most {MAX_METADATA} texts")
    for key, entry in value.items():
        if not isinstance(entry, str) or len(entry) > MAX_METADATA_VALUE or len(key) > MAX_METADATA_KEY:
            raise refused(
                "metadata",
                f"must have names of at most {MAX_METADATA_KEY} and texts of at most {MAX_METADATA_VALUE} characters",
            )
        if "\x00" in key or "\x00" in entry:
            raise refused("metadata", "holds a NUL")
    return value
