"""What is never recorded: values whose names say that they are secrets, however deep they lie."""

from __future__ import annotations

from typing import Any

#: What stands in the place of a secret that is there (an absent one stays absent, so that a change of it shows).
HIDDEN = "[secret]"

SECRET_NAMES = frozenset(
    (
        "api_key",
        "authorization",
        "cookie",
        "credential",
        "credentials",
        "digest",
        "passphrase",
        "password",
        "pepper",
        "secret",
        "secrets",
        "token",
        "webhook_secret",
    )
)
_ENDINGS = ("_secret", "_token", "_password", "api_key", "apikey", "private_key", "secret_key", "access_key")


def is_secret(name: str) -> bool:
    """Whether a field, setting or header of this name holds a secret."""
    plain = name.lower().replace("-", "_").replace(" ", "_")
    return plain in SECRET_NAMES or plain.endswith(_ENDINGS)


def without_secrets(value: Any) -> Any:
    """`value` as JSON may hold it: secrets hidden by name, anything but texts, integers and booleans as text."""
    if isinstance(value, dict):
        return {
            str(name): HIDDEN if item and is_secret(str(name)) else without_secrets(item)
            for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [without_secrets(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
