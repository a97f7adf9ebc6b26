"""The /v1 reads and their documentation. POST endpoints never come here: the front router sends them to
proxy.consumers; this module only knows their addresses, so that another verb is answered with 405.
"""

from __future__ import annotations

from django.http import HttpRequest

from proxy.errors import NotFound
from proxy.v1_audit import router as audit
from proxy.v1_docs import DocsPage, DocumentedAPI, inference_paths
from proxy.v1_errors import NOT_FOUND_MESSAGE, register_error_responses
from proxy.v1_limits import router as limits
from proxy.v1_models import router as models
from proxy.v1_usage import router as usage

api = DocumentedAPI(
    title="Tollbar",
    version="1",
    description="One address for every model: the OpenAI and Anthropic APIs, Tollbar's own, and what they cost.",
    urls_namespace="v1",
    docs=DocsPage(),
)
register_error_responses(api)
for _router in (models, usage, audit, limits):
    api.add_router("", _router)


async def not_here(request: HttpRequest) -> None:
    """A data-plane request that did not reach its consumer: the server runs another application than ours."""
    raise NotFound(NOT_FOUND_MESSAGE)


for _path in inference_paths():
    api.api_operation(["POST"], _path, include_in_schema=False, url_name=f"post-{_path}")(not_here)
