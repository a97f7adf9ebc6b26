"""Whatever is asked, a provider gets a body that its API accepts, or the caller is told what it does not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canonical import ChatRequest
from proxy.context import Call, ProviderTarget
from proxy.errors import BadRequest
from proxy.providers.base import adapters
from tests.examples import examples
from tests.proxy.properties.accepted import ACCEPTED
from tests.proxy.properties.requests import chat_requests

MODELS: dict[str, list[str]] = {
    "anthropic": ["claude-sonnet-4-5", "claude-opus-4-7", "claude-3-5-haiku-20241022", "mine"],
    "bedrock": ["anthropic.claude-sonnet-4-5-20250929-v1:0", "amazon.nova-pro-v1:0", "meta.llama3-3-70b-instruct-v1:0"],
    "gemini": ["gemini-2.5-flash", "gemini-3-pro-preview", "gemini-2.0-flash"],
}


def body_for(kind: str, request: ChatRequest, *, model: str, stream: bool, cap: int | None) -> Any:
    target = ProviderTarget(provider="p", kind=kind, model=model, base_url="https://x.example", region="us-east-1")
    call = Call(dialect="chat", body={}, model="m", stream=stream, output_cap=cap, canonical=request)
    return json.loads(adapters()[kind].build_request(call, target).body)


@pytest.mark.parametrize("kind", sorted(adapters()))
@examples(60)
@given(data=st.data(), request=chat_requests(), stream=st.booleans(), cap=st.none() | st.integers(1, 9000))
def test_any_request_becomes_a_body_that_is_accepted_or_is_refused_by_name(kind, data, request, stream, cap):
    model = data.draw(st.sampled_from(MODELS.get(kind, ["m-1"])))
    refused, body = None, None
    try:
        body = body_for(kind, request, model=model, stream=stream, cap=cap)
    except BadRequest as error:
        refused = error
    if body is not None:
        ACCEPTED[kind](body)
    else:
        assert refused is not None
        assert refused.param
