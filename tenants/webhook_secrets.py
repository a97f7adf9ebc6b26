"""Secrets that sign webhooks, in the form Standard Webhooks gives them."""

from __future__ import annotations

import base64
import secrets


def new_webhook_secret() -> str:
    """`whsec_` and 32 random bytes in base64."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
