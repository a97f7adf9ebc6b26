"""The limits that answers tell: right numbers, in three families of headers, parsable by their grammars."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.admission import read_limits
from proxy.errors import RateLimited
from proxy.limit_headers import duration, rate_headers
from proxy.reservation import LimitState
from tests.proxy.limits.conftest import ask, budget, make_key, make_tenant, wait_of, warm

STRING, INTEGER = r'"[ !#-\[\]-~]*"', r"-?\d{1,15}"
ITEM = re.compile(rf"{STRING}(?:;[a-z]+=(?:{INTEGER}|{STRING}))*")


def parse_list(value: str) -> dict[str, dict[str, str]]:
    """A list of strings with parameters (RFC 8941), as both RateLimit fields are."""
    items = {}
    for text in value.split(", "):
        assert ITEM.fullmatch(text), text
        name, *parameters = text.split(";")
        assert name not in items
        items[name.strip('"')] = dict(parameter.split("=") for parameter in parameters)
    return items


def state(kind="requests", scope="key", limit=600, used=1, resets_in_ms=100) -> LimitState:
    return LimitState(
        kind=kind,
        scope=scope,
        window="minute",
        limit=limit,
        used=used,
        reserved=0,
        remaining=max(limit - used, 0),
        resets_at_ms=None,
        resets_in_ms=resets_in_ms,
    )


def test_the_tightest_request_and_token_limits_are_told():
    states = [
        state(scope="tenant", limit=600, used=10, resets_in_ms=1000),
        state(scope="key", limit=60, used=59, resets_in_ms=59_000),
        state("tokens", limit=1000, used=864, resets_in_ms=51_840),
        state("tokens", scope="tenant", limit=5000, used=864, resets_in_ms=10_368),
    ]
    assert rate_headers(states) == [
        (b"x-ratelimit-limit", b"60"),
        (b"x-ratelimit-remaining", b"1"),
        (b"x-ratelimit-reset", b"59"),
        (b"x-ratelimit-limit-requests", b"60"),
        (b"x-ratelimit-remaining-requests", b"1"),
        (b"x-ratelimit-reset-requests", b"59s"),
        (b"x-ratelimit-limit-tokens", b"1000"),
        (b"x-ratelimit-remaining-tokens", b"136"),
        (b"x-ratelimit-reset-tokens", b"51.84s"),
        (b"ratelimit-policy", b'"tenant-rpm";q=600;w=60, "key-rpm";q=60;w=60'),
        (b"ratelimit", b'"tenant-rpm";r=590;t=1, "key-rpm";r=1;t=59'),
    ]


def test_a_caller_without_rates_is_told_nothing():
    assert rate_headers([]) == []
    assert rate_headers([state("budget"), state("quota")]) == []


def test_concurrency_is_told_by_its_unit():
    headers = dict(rate_headers([state("concurrency", limit=50, used=3, resets_in_ms=None)]))
    assert headers == {
        b"ratelimit-policy": b'"key-concurrency";q=50;qu="concurrent-requests"',
        b"ratelimit": b'"key-concurrency";r=47',
    }


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, b"0ms"),
        (12, b"12ms"),
        (1000, b"1s"),
        (8640, b"8.64s"),
        (59_999, b"59.999s"),
        (60_000, b"1m0s"),
        (360_000, b"6m0s"),
    ],
)
def test_durations_are_written_as_openai_does(ms, text):
    assert duration(ms) == text


limits = st.builds(
    state,
    kind=st.sampled_from(["requests", "tokens", "concurrency"]),
    scope=st.sampled_from(["user", "key", "tenant"]),
    limit=st.integers(1, 150_000_000_000),
    used=st.integers(0, 10**12),
    resets_in_ms=st.integers(0, 120_000),
)


@given(st.lists(limits, max_size=7))
def test_the_fields_always_parse_and_never_promise_more_than_the_policy(states):
    headers = {name.decode(): value.decode() for name, value in rate_headers(states)}
    policy = parse_list(headers["ratelimit-policy"]) if "ratelimit-policy" in headers else {}
    if "ratelimit" in headers:
        for name, told in parse_list(headers["ratelimit"]).items():
            assert 0 <= int(told["r"]) <= int(policy[name]["q"])


async def test_an_answer_tells_what_the_reads_tell(side):
    tenant = await warm(side, make_tenant(limits={"rpm": 60, "tpm": 1000, "concurrency": 5}, budgets=(budget(10**9),)))
    key = make_key(tenant, limits={"rpm": 30})
    admitted = await ask(side, tenant, key, expected_tokens=100)
    told = dict(rate_headers(admitted.states))
    assert (told[b"x-ratelimit-limit"], told[b"x-ratelimit-remaining"]) == (b"30", b"29")
    assert told[b"x-ratelimit-remaining-tokens"] == b"900"
    read = {(s.scope, s.kind): (s.used, s.reserved) for s in await read_limits(side.store, tenant, key)}
    assert read == {(s.scope, s.kind): (s.used, s.reserved) for s in admitted.states}
    assert [s.amount for s in admitted.states] == [1, 1, 100, 1, 100]


async def test_a_refusal_never_tells_a_reset_later_than_its_retry_after(side):
    tenant = make_tenant(limits={"rpm": 6, "concurrency": 3})
    for _ in range(3):
        await ask(side, tenant)
    with pytest.raises(RateLimited) as refused:
        await ask(side, tenant)
    error = refused.value
    items = parse_list(error.headers["ratelimit"])
    assert items == {"tenant-concurrency": {"r": "0"}}
    assert set(parse_list(error.headers["ratelimit-policy"])) == {"tenant-rpm", "tenant-concurrency"}
    other = make_tenant(limits={"rpm": 1})
    await ask(side, other)
    with pytest.raises(RateLimited) as refused:
        await ask(side, other)
    error = refused.value
    told = int(parse_list(error.headers["ratelimit"])["tenant-rpm"]["t"])
    assert -(-wait_of(refused) // 1000) >= told > 0
    assert error.headers["x-ratelimit-remaining"] == "0"
