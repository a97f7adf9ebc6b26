"""Money is exact: each class of tokens is charged once, at its own rate, and rounded once."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

from hypothesis import given
from hypothesis import strategies as st

from proxy.canonical import Usage
from proxy.snapshot import PriceSpec

ATTO = 10**18


def price(**rates: str) -> PriceSpec:
    """Rates in USD per million tokens."""
    atto = {name: int(Decimal(rate) * ATTO / 1_000_000) for name, rate in rates.items()}
    atto.setdefault("cache_read", atto["input"])
    atto.setdefault("cache_write", atto["input"])
    atto.setdefault("cache_write_1h", atto["cache_write"])
    return PriceSpec(id=1, effective_from_ms=0, label="p/m@1970-01-01", **atto)


def test_cached_tokens_cost_their_own_rate_and_are_not_charged_twice() -> None:
    rates = price(input="3.00", output="15.00", cache_read="0.30", cache_write="3.75")
    usage = Usage(input_tokens=1000, output_tokens=100, cache_read_tokens=800)
    assert rates.cost_nano(usage) == 2_340_000
    usage = Usage(input_tokens=1203, output_tokens=50, cache_write_tokens=1200)
    assert rates.cost_nano(usage) == 5_259_000


def test_an_hour_long_cache_write_has_a_rate_of_its_own() -> None:
    rates = price(input="1", output="1", cache_write="2", cache_write_1h="4")
    usage = Usage(input_tokens=10, cache_write_tokens=10, cache_write_1h_tokens=4)
    assert rates.cost_nano(usage) == 6 * 2000 + 4 * 4000


def test_fractions_of_a_nano_dollar_are_rounded_up_once() -> None:
    rates = price(input="0.0001", output="0.0001")  # a tenth of a nano-dollar a token
    assert rates.cost_nano(Usage(input_tokens=1, output_tokens=1)) == 1
    assert rates.cost_nano(Usage(input_tokens=11, output_tokens=0)) == 2


TOKENS = st.integers(0, 10_000_000)


@given(TOKENS, TOKENS, TOKENS, TOKENS)
def test_the_cost_is_that_of_decimal_arithmetic(plain: int, read: int, write: int, output: int) -> None:
    rates = price(input="2.50", output="10.00", cache_read="1.25", cache_write="3.125")
    usage = Usage(
        input_tokens=plain + read + write, output_tokens=output, cache_read_tokens=read, cache_write_tokens=write
    )
    exact = (
        plain * Decimal("2.50") + read * Decimal("1.25") + write * Decimal("3.125") + output * Decimal("10.00")
    ) * 1000
    assert rates.cost_nano(usage) == int(exact.to_integral_value(ROUND_CEILING))


@given(TOKENS, TOKENS, TOKENS, TOKENS)
def test_no_usage_within_the_bounds_costs_more_than_the_worst_case(
    plain: int, read: int, write: int, output: int
) -> None:
    rates = price(input="2.50", output="10.00", cache_read="0.25", cache_write="3.125", cache_write_1h="5")
    total = plain + read + write
    usage = Usage(
        input_tokens=total,
        output_tokens=output,
        cache_read_tokens=read,
        cache_write_tokens=write,
        cache_write_1h_tokens=write,
    )
    assert rates.cost_nano(usage) <= rates.worst_nano(total, output)
