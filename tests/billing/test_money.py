"""Money is exact: integers of a billionth of a dollar inside, decimal text outside."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.money import nano_to_text, usd_to_nano


@pytest.mark.parametrize(
    ("nano", "text"),
    [
        (0, "0.000000"),
        (1, "0.000000001"),
        (10, "0.00000001"),
        (105_000, "0.000105"),
        (757_500, "0.0007575"),
        (12_500_000_000, "12.500000"),
        (9_000_000_000_000_000, "9000000.000000"),
        (-2_500_000_000, "-2.500000"),
        (-1, "-0.000000001"),
    ],
)
def test_text_has_at_least_six_decimals_and_at_most_nine(nano, text):
    assert nano_to_text(nano) == text


@given(st.integers(-(2**63), 2**63 - 1))
def test_text_says_exactly_the_amount(nano):
    text = nano_to_text(nano)
    assert usd_to_nano(Decimal(text)) == nano
    assert 6 <= len(text.partition(".")[2]) <= 9


@pytest.mark.parametrize("amount", ["0.0000000001", "1.2345678912", "NaN", "Infinity", "-Infinity"])
def test_what_is_no_whole_number_of_billionths_is_refused(amount):
    with pytest.raises(ValueError, match=r"billionth|no amount"):
        usd_to_nano(Decimal(amount))


@pytest.mark.parametrize(("amount", "nano"), [("1e-9", 1), ("2.50", 2_500_000_000), ("1E+3", 10**12), ("-0", 0)])
def test_any_notation_of_an_amount_is_taken(amount, nano):
    assert usd_to_nano(Decimal(amount)) == nano
