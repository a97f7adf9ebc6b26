"""Secrets at rest: Fernet with rotation, one derived key per purpose (so that no artefact opens as another)."""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import models


def _derived(key: str, purpose: str) -> Fernet:
    raw = base64.urlsafe_b64decode(key.encode())
    material = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=f"tollbar/{purpose}".encode()).derive(raw)
    return Fernet(base64.urlsafe_b64encode(material))


@lru_cache(maxsize=64)
def _cipher(keys: tuple[str, ...], purpose: str) -> MultiFernet:
    return MultiFernet([_derived(key, purpose) for key in keys])


def encrypt(text: str, purpose: str) -> str:
    """Ciphertext under the first of FIELD_ENCRYPTION_KEYS; an empty text stays empty."""
    if not text:
        return ""
    return _cipher(tuple(settings.FIELD_ENCRYPTION_KEYS), purpose).encrypt(text.encode()).decode()


def decrypt(token: str, purpose: str) -> str:
    """Plain text; any of FIELD_ENCRYPTION_KEYS may have written it. Raises ImproperlyConfigured when none did."""
    if not token:
        return ""
    try:
        return _cipher(tuple(settings.FIELD_ENCRYPTION_KEYS), purpose).decrypt(token.encode()).decode()
    except InvalidToken as error:
        raise ImproperlyConfigured(f"FIELD_ENCRYPTION_KEYS holds no key that opens a stored {purpose}.") from error


class EncryptedTextField(models.TextField):  # type: ignore[type-arg]
    """A text kept encrypted in the database and plain in Python. `purpose` separates kinds of secrets."""

    def __init__(self, *args: Any, purpose: str = "", **kwargs: Any) -> None:
        self.purpose = purpose
        super().__init__(*args, **kwargs)

    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        kwargs["purpose"] = self.purpose
        return name, path, args, kwargs

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> str | None:
        return value if value is None else decrypt(value, self.purpose)

    def get_prep_value(self, value: Any) -> Any:
        return value if value is None else encrypt(str(value), self.purpose)
