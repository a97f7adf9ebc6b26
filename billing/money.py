"""Money as integers: nano-USD inside, decimal text outside. Pure: the data plane uses it too."""

from __future__ import annotations

from decimal import Decimal

NANO = 1_000_000_000


def nano_to_text(nano: int) -> str:
    """Decimal text of nano-USD, exact: at least 6 decimals, at most 9 ("0.000105", "12.500000", "0.000000001")."""
    sign = "-" if nano < 0 else ""
    whole, part = divmod(abs(nano), NANO)
    digits = f"{part:09d}"
    return f"{sign}{whole}.{digits[:6]}{digits[6:].rstrip('0')}"


def plain(amount: Decimal) -> Decimal:
    """The same amount without trailing zeros and without an exponent, as people write it."""
    return Decimal(f"{amount.normalize():f}")


def usd_to_nano(usd: Decimal) -> int:
    """Nano-USD of an amount. Raises ValueError for what is not finite or finer than a nano-dollar."""
    if not usd.is_finite():
        raise ValueError(f"{usd} is no amount of money")
    nano = usd * NANO
    if nano != nano.to_integral_value():
        raise ValueError(f"{usd} USD is finer than a billionth of a dollar")
    return int(nano)
