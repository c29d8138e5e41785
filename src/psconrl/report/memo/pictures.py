"""Pictures of a memo: averages with intervals against limits, and what is done in a state today and then.

A picture is a strip that stretches with the page; its words are in HTML beside it, so that they keep their size on a
telephone.
"""

from typing import Any

from psconrl.report.memo.words import choice, percent, safe

STRIP_WIDTH, STRIP_HEIGHT = 1000, 58
STRIP_MARGIN = 0.08  # of the range of an axis, on either side
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a7a00", "#5b4b9a")  # Okabe and Ito 2008
OTHER = "#9aa0a6"
Interval = tuple[float, float, float]  # low, mean, high


def strip(rows: dict[str, Interval | None], limit: float | None, at_least: bool, label: str) -> str:
    """Return the intervals of one average, one below the other, with what a limit does not allow.

    ``rows``: by the name of their style, ``today``, ``log`` or ``then``.
    """
    known = {name: row for name, row in rows.items() if row is not None}
    values = [x for row in known.values() for x in row] + ([] if limit is None else [limit])
    if not values:
        return ""
    low, high = min(values), max(values)
    reach = (high - low) or max(abs(high), 1.0)
    low, high = low - STRIP_MARGIN * reach, high + STRIP_MARGIN * reach

    def x(value: float) -> float:
        return round(STRIP_WIDTH * (value - low) / (high - low), 1)

    parts = []
    if limit is not None:
        begin, end = (0.0, x(limit)) if at_least else (x(limit), float(STRIP_WIDTH))
        parts.append(
            f'<rect class="beyond" x="{begin}" y="0" width="{round(end - begin, 1)}" height="{STRIP_HEIGHT}"/>'
        )
        parts.append(f'<path class="limit" d="M{x(limit)} 0V{STRIP_HEIGHT}"/>')
    for k, (name, (a, mean, b)) in enumerate(known.items()):
        y = round(STRIP_HEIGHT * (k + 0.5) / len(known), 1)
        parts.append(f'<path class="{name} whisker" d="M{x(a)} {y}H{x(b)}"/>')
        parts.append(f'<path class="{name} dot" d="M{x(mean)} {y - 5}V{y + 5}"/>')
    return _svg("".join(parts), STRIP_HEIGHT, label)


def bars(decision: dict[str, Any], colours: dict[str, str]) -> str:
    """Return what is done in a state as two bars: today above, then below."""
    parts, order = [], {action: k for k, action in enumerate(colours)}
    for y, name in ((0, "today"), (24, "proposed")):
        begin = 0.0
        for action, probability in sorted(decision[name], key=lambda one: order.get(one[0], len(order))):
            width = STRIP_WIDTH * probability
            colour = colours.get(action, OTHER)
            parts.append(f'<rect x="{begin:.1f}" y="{y}" width="{width:.1f}" height="20" fill="{colour}"/>')
            begin += width
    label = f"Today: {choice(decision['today'])}. Proposed: {choice(decision['proposed'])}."
    return _svg("".join(parts), 44, label)


def colours_of(decisions: list[dict[str, Any]]) -> dict[str, str]:
    """Return a colour for every action of some decisions, in a natural order; grey for those beyond eight."""
    actions = {action for one in decisions for name in ("today", "proposed") for action, _ in one[name]}
    return dict(zip(sorted(actions, key=_natural), COLOURS, strict=False))


def legend(colours: dict[str, str]) -> str:
    """Return which action has which colour."""
    keys = "".join(f'<span><i style="background:{colour}"></i>{safe(a)}</span>' for a, colour in colours.items())
    return f'<p class="legend">{keys}</p>' if keys else ""


def meter(p: float, wanted: float) -> str:
    """Return a probability as a bar with a mark at what is wanted."""
    inside = (
        f'<rect class="rail" width="{STRIP_WIDTH}" height="14"/>'
        f'<rect class="{"sure" if p >= wanted else "unsure"}" width="{STRIP_WIDTH * p:.1f}" height="14"/>'
        f'<path class="limit" d="M{STRIP_WIDTH * wanted:.1f} 0V14"/>'
    )
    return _svg(inside, 14, f"{percent(p)}, wanted {percent(wanted)}")


def _svg(inside: str, height: int, label: str) -> str:
    return (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {STRIP_WIDTH} {height}" height="{height}" '
        f'preserveAspectRatio="none">{inside}</svg>'
    )


def _natural(text: str) -> tuple[str, float, str]:
    """Sort "order=10" after "order=2"."""
    head, _, tail = text.rpartition("=")
    try:
        return head, float(tail), ""
    except ValueError:
        return text, 0.0, text
