"""What a model behind Bedrock's Converse API accepts, by the vendor and the version in its id.

Sources: AWS's pages "Supported models and model features", "Prompt caching", "Structured outputs", "Extended thinking"
and the parameter pages of each vendor. An id that names no vendor (an application inference profile, a provisioned or
imported model) is taken at its word: what the caller asks for is sent, and AWS decides.
"""

from __future__ import annotations

import re
from typing import Any

from proxy.anthropic_format.models import takes_both_sampling_parameters, takes_sampling, version_of
from proxy.anthropic_format.thinking import thinking_members
from proxy.canonical import ChatRequest

JSON = dict[str, Any]

ANTHROPIC, AMAZON, OPENAI = "anthropic", "amazon", "openai"

#: anthropic.claude-…, us.amazon.nova-…, arn:aws:bedrock:eu-west-1::foundation-model/meta.llama3-…
_VENDOR = re.compile(
    r"(?:^|[/.])(ai21|amazon|anthropic|cohere|deepseek|google|luma|meta|minimax|mistral|moonshot(?:ai)?|nvidia|openai"
    r"|qwen|stability|twelvelabs|writer|zai)\."
)
_NOVA_2 = re.compile(r"\bnova-2\b")

#: Vendors none of whose models keeps to a JSON schema.
_WITHOUT_SCHEMA = frozenset(("ai21", AMAZON, "cohere", "luma", "meta", "stability", "twelvelabs", "writer"))
#: The first Claude that reads marks for its cache, and the first that keeps to a JSON schema here.
_CACHING, _SCHEMAS = (3, 5), (4, 5)

_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}

#: More than any thinking budget, for callers who name no limit: then the model's own is in force (tokens).
_NO_LIMIT = 1 << 20


def vendor_of(model: str) -> str | None:
    found = _VENDOR.search(model)
    return found[1] if found else ANTHROPIC if version_of(model) else None


def takes_cache_points(model: str) -> bool:
    """Other models refuse a request that has any."""
    vendor, version = vendor_of(model), version_of(model)
    if vendor == ANTHROPIC:
        return version is None or version >= _CACHING
    return vendor is None or "nova" in model


def takes_cache_points_in_tools(model: str) -> bool:
    return takes_cache_points(model) and vendor_of(model) != AMAZON


def takes_reasoning(model: str) -> bool:
    """Whether signed thinking of earlier turns may be sent back."""
    return vendor_of(model) in (ANTHROPIC, None)


def takes_schema(model: str) -> bool:
    vendor, version = vendor_of(model), version_of(model)
    if vendor == ANTHROPIC:
        return version is None or version >= _SCHEMAS
    return vendor not in _WITHOUT_SCHEMA


def takes_strict_tools(model: str) -> bool:
    return vendor_of(model) == ANTHROPIC and takes_schema(model)


def tells_stop_sequence(model: str) -> bool:
    """Whether an answer can be made to name the stop sequence that ended it."""
    return vendor_of(model) == ANTHROPIC


def sampling(request: ChatRequest, model: str, *, thinks: bool) -> JSON:
    """`temperature` and `topP` of inferenceConfig. Claude takes none while it thinks, and the newest never do."""
    claude = vendor_of(model) == ANTHROPIC
    if claude and (thinks or not takes_sampling(model)):
        return {}
    chosen: JSON = {}
    if request.temperature is not None:
        chosen["temperature"] = min(request.temperature, 1)
    both = not claude or takes_both_sampling_parameters(model)
    if request.top_p is not None and (both or not chosen):
        chosen["topP"] = request.top_p
    return chosen


def own_members(request: ChatRequest, model: str, limit: int | None) -> JSON:
    """additionalModelRequestFields: what Converse has no word for. `limit` is maxTokens."""
    vendor = vendor_of(model)
    if vendor == ANTHROPIC:
        return _of_claude(request, model, limit)
    if vendor == AMAZON and "nova" in model:
        return _of_nova(request, model, limit)
    if vendor == OPENAI and request.reasoning_effort in _EFFORTS:
        return {"reasoning_effort": _EFFORTS[request.reasoning_effort]}
    return {}


def _of_claude(request: ChatRequest, model: str, limit: int | None) -> JSON:
    members: JSON = {}
    thinking, effort = thinking_members(request, model, limit or _NO_LIMIT)
    if thinking is not None:
        members["thinking"] = thinking
    elif request.top_k is not None and takes_sampling(model):
        members["top_k"] = request.top_k
    if effort is not None:
        members["output_config"] = {"effort": effort}
    return members


def _of_nova(request: ChatRequest, model: str, limit: int | None) -> JSON:
    """The highest effort excludes a limit and sampling parameters; a caller's limit is worth more than that."""
    members: JSON = {}
    if request.top_k is not None:
        members["inferenceConfig"] = {"topK": request.top_k}
    if _NOVA_2.search(model) and request.reasoning_effort in _EFFORTS:
        free = limit is None and request.temperature is None and request.top_p is None and request.top_k is None
        effort = _EFFORTS[request.reasoning_effort]
        effort = "medium" if effort == "high" and not free else effort
        members["reasoningConfig"] = {"type": "enabled", "maxReasoningEffort": effort}
    return members
