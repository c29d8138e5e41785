"""Formatting of numbers for readers: 0, 12.3, 5,380, and never 5.38e+03."""

import math

SMALL = 1e-4  # smaller numbers are written with a power of ten


def format_number(x: float, digits: int = 3) -> str:
    """Format a number with ``digits`` significant digits, or more if its whole part is longer, and commas.

    A tiny number has a power of ten.

    >>> [format_number(x) for x in (0.0, 5380.2, -0.5, 0.012345, 12.0, 999.7, 2.31e-6, -0.0)]
    ['0', '5,380', '-0.5', '0.0123', '12', '1,000', '2.31e-06', '0']
    """
    if x == 0 or not math.isfinite(x):
        return "0" if x == 0 else f"{x:g}"
    if abs(x) < SMALL:
        return f"{x:.{digits}g}"
    decimals = digits - 1 - math.floor(math.log10(abs(x)))
    return f"{x:,.0f}" if decimals <= 0 else f"{x:,.{decimals}f}".rstrip("0").rstrip(".")
