"""Numbers, probabilities and labels of a memo as text that is safe in a page."""

import html
from typing import Any

from psconrl.base.escaping import printable, shortened

MOST_OF_LABEL = 120  # of a label from the user's table
MOST_ACTIONS = 3  # that are named in one situation
OPEN = "unknown"


def safe(text: Any) -> str:
    """Return text from outside for a page: on one line, of bounded length, with no markup and no control characters.

    >>> safe("<script>alert(1)</script>")
    '&lt;script&gt;alert(1)&lt;/script&gt;'
    """
    return html.escape(shortened(printable(" ".join(str(text).split())), MOST_OF_LABEL))


def sentence(text: str) -> str:
    """Return a sentence of the library, which may name labels: escaped, with a capital and a full stop.

    >>> sentence("lost is at most 1 < 2")
    'Lost is at most 1 &lt; 2.'
    """
    line = printable(" ".join(text.split()))
    return html.escape(line[:1].upper() + line[1:] + ("" if line.endswith((".", "!", "?")) else "."))


def short_number(x: float | None) -> str:
    """Return a number with three significant digits at most.

    >>> short_number(12345.678), short_number(0.123456), short_number(-2.0), short_number(None)
    ('12,346', '0.123', '−2', 'unknown')
    """
    if x is None:
        return OPEN
    if abs(x) >= 1e12 or 0.0 < abs(x) < 1e-6:
        text = f"{x:.3g}"
    else:
        text = f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.3g}"
        if "e" in text:
            text = f"{x:.9f}".rstrip("0")
    return text.replace("-", "\u2212")


def signed_number(x: float) -> str:
    """Return a change with its sign.

    >>> signed_number(0.5), signed_number(-0.5), signed_number(0.0)
    ('+0.5', '−0.5', '0')
    """
    return f"+{short_number(x)}" if x > 0.0 else short_number(x)


def percent(p: float | None) -> str:
    """Return a probability or a share in percent; never rounded to certainty.

    >>> percent(0.9746), percent(0.99999), percent(1.0), percent(0.0001), percent(0.391)
    ('97.5%', 'over 99.9%', '100%', 'under 0.1%', '39.1%')
    """
    if p is None:
        return OPEN
    if 0.0 < p < 0.001:
        return "under 0.1%"
    if 0.999 < p < 1.0:
        return "over 99.9%"
    return f"{100.0 * p:.1f}".rstrip("0").rstrip(".") + "%"


def sure(p: float) -> str:
    """Return a probability that was counted in draws, which are too few for certainty.

    >>> sure(1.0), sure(0.975), sure(0.0)
    ('over 99.9%', '97.5%', 'under 0.1%')
    """
    return percent(min(max(p, 1e-4), 1.0 - 1e-4))


def with_unit(text: str, unit: str) -> str:
    """Return a number with its unit, escaped."""
    return f"{text} {safe(unit)}".rstrip()


def between(low: float | None, high: float | None) -> str:
    """Return an interval in words."""
    return f"{short_number(low)} to {short_number(high)}"


def choice(actions: list[list[Any]]) -> str:
    """Return what is done in a state: the likeliest actions, and the share of the others together.

    >>> choice([["order=2", 0.75], ["order=0", 0.25]]), choice([["a", 0.4], ["b", 0.3], ["c", 0.2], ["d", 0.1]])
    ('order=2 (75%) or order=0 (25%)', 'a (40%), b (30%) or others (30%)')
    """
    if len(actions) == 1:
        return safe(actions[0][0])
    first = actions if len(actions) <= MOST_ACTIONS else actions[: MOST_ACTIONS - 1]
    parts = [f"{safe(action)} ({percent(round(p, 2))})" for action, p in first]
    if len(first) < len(actions):
        parts.append(f"others ({percent(round(sum(p for _, p in actions[len(first) :]), 2))})")
    return f"{', '.join(parts[:-1])} or {parts[-1]}"


def counted(n: int, what: str) -> str:
    """Return a number of things.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{n:,} {what}{'' if n == 1 else 's'}"
