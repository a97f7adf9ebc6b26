"""Azure OpenAI: OpenAI's APIs below a resource's own address. A target's model is the name of a deployment there.

    base_url is the resource (an origin)    POST {base}/openai/deployments/{deployment}/chat/completions?api-version=…
    base_url ends in /openai or /openai/v1  POST {origin}/openai/v1/chat/completions, the deployment as `model`

So do the other APIs, but for responses: those of a resource are always asked for at /openai/v1, because most dated
versions lack them. An `api_version` that is no date (v1, preview, latest) means /openai/v1, too.
"""

from __future__ import annotations

import re
from typing import ClassVar
from urllib.parse import quote

from proxy.context import ProviderReply, ProviderTarget
from proxy.errors import UpstreamFault
from proxy.providers.openai import OpenAIAdapter

#: The version asked for when the configuration names none: the latest dated one that is no preview.
API_VERSION = "2024-10-21"

_V1 = re.compile(r"/openai(/v1)?$")
_DATED = re.compile(r"\d{4}-\d\d-\d\d")

#: A 400 about what the operator configured: a version, or a deployment that cannot do this. Another provider may.
_MISCONFIGURED = re.compile(r"\bapi[ -]?version\b|operation does not work with the specified model", re.IGNORECASE)


class AzureOpenAIAdapter(OpenAIAdapter):
    kind: ClassVar[str] = "azure_openai"
    default_base_url: ClassVar[str | None] = None

    def parse_error(self, reply: ProviderReply) -> UpstreamFault:
        fault = super().parse_error(reply)
        if fault.kind == "request" and _MISCONFIGURED.search(fault.message):
            fault.kind = "not_found"
        return fault

    def _url(self, target: ProviderTarget, path: str) -> str:
        base = target.base_url.rstrip("/")
        origin = _V1.sub("", base)
        version = target.api_version or API_VERSION
        dated = _DATED.match(version) is not None
        if origin == base and dated and path != "/responses":
            return f"{base}/openai/deployments/{quote(target.model, safe='')}{path}?api-version={quote(version)}"
        return f"{origin}/openai/v1{path}" + ("" if dated else f"?api-version={quote(version)}")

    def _credential(self, secret: str) -> dict[str, str]:
        return {"api-key": secret}
