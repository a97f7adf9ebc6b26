"""What a provider says, made fit for others to read."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from proxy.snapshot import ProviderSpec

#: Things that look like credentials are cut out of a provider's words before anybody sees them.
_CREDENTIALS = re.compile(r"(?:sk|pk|rk|gsk|xai|tb)[-_][A-Za-z0-9*_-]{8,}|AIza[A-Za-z0-9_-]{10,}|A[KS]IA[A-Z0-9]{12,}")


def clean(message: str, provider: ProviderSpec) -> str:
    """A provider's words without our credential, anything that looks like one, or its own address."""
    if provider.secret:
        message = message.replace(provider.secret, "[removed]")
    host = urlsplit(provider.base_url).hostname
    if host:
        message = re.sub(rf"(?:https?://)?{re.escape(host)}(?::\d+)?[^\s\"']*", "[removed]", message)
    return _CREDENTIALS.sub("[removed]", message)[:2000]
