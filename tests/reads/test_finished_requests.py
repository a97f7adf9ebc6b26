"""What a finished request leaves behind in memory: nothing that only the cycle collector would find."""

import gc

import pytest

from billing.models import Price
from proxy.exchange import Exchange
from tests.reads.conftest import Cast, Gateway

STREAMED = {"model": "fast", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
WHOLE = {"model": "fast", "messages": [{"role": "user", "content": "Hi"}]}
MALFORMED = {"model": "fast", "messages": []}


@pytest.fixture(autouse=True)
def priced(cast: Cast) -> None:
    Price.objects.create(provider="beta", model="echo", input=1, output=1, effective_from="2025-01-01")


async def left_of(gateway: Gateway, key: str, body: dict, status: int) -> int:
    """How many exchanges are still there after some calls, with the collector off."""
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            answer = await gateway.ask("/v1/chat/completions", key, method="POST", json=body)
            assert answer.status_code == status
        return sum(isinstance(thing, Exchange) for thing in gc.get_objects())
    finally:
        gc.enable()


async def test_a_whole_answer_is_freed_at_once(gateway: Gateway, cast: Cast) -> None:
    assert await left_of(gateway, cast.keys["app"], WHOLE, 200) == 0


async def test_a_stream_is_freed_at_once(gateway: Gateway, cast: Cast) -> None:
    assert await left_of(gateway, cast.keys["app"], STREAMED, 200) == 0


async def test_a_refusal_is_freed_at_once(gateway: Gateway, cast: Cast) -> None:
    assert await left_of(gateway, cast.keys["app"], MALFORMED, 400) == 0
