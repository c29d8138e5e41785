"""The sections of a memo on averages, decisions and limits, from the record of advice."""

from typing import Any

from psconrl.data.advice.decisions import MOST_DECISIONS
from psconrl.report.memo.pictures import Interval, bars, colours_of, legend, meter, strip
from psconrl.report.memo.words import (
    between,
    choice,
    percent,
    safe,
    sentence,
    short_number,
    signed_number,
    sure,
    with_unit,
)


def averages_section(record: dict[str, Any]) -> str:
    """Return today's averages and those of the proposal, with limits."""
    limits = {one["name"]: one for one in record["limits"]}
    rows = [_average(one, limits.get(one["name"]), record) for one in record["averages"]]
    odd = [one["disagreement"] for one in record["averages"] if one["disagreement"]]
    warning = "".join(f'<p class="warning"><b>Careful.</b> {sentence(text)}</p>' for text in odd)
    level = percent(record["averages"][0]["level"]) if record["averages"] else ""
    then = "proposed" if record["recommended"] else "most promising change"
    keys = '<span><i class="k today"></i>today, from the model</span>'
    keys += '<span><i class="k log"></i>today, from the rows</span>'
    keys += f'<span><i class="k then"></i>{then}</span>'
    if limits:
        keys += '<span><i class="k no"></i>beyond the limit</span>'
    intro = f"Long-run averages, with {level} intervals. Those from the model and from the rows alone should agree."
    return (
        f'<section id="today"><h2>How well it goes</h2><p>{intro}</p>{warning}'
        f'<p class="legend">{keys}</p>{"".join(rows)}</section>'
    )


def _average(one: dict[str, Any], limit: dict[str, Any] | None, record: dict[str, Any]) -> str:
    name, unit = safe(one["name"]), one["unit"]
    log = one["in_log"]
    rows: dict[str, Interval | None] = {"today": _interval(one), "log": None if log is None else _interval(log)}
    lines = [f"<dt>Today, from the model</dt><dd>{_shown(one, unit)}</dd>"]
    if log is not None:
        lines.append(f"<dt>Today, from the rows</dt><dd>{_shown(log, unit)}</dd>")
    title, held = name, ""
    if limit is not None:
        side = "at least" if limit["at_least"] else "at most"
        title += f' <span class="rule">limit: {side} {with_unit(short_number(limit["threshold"]), unit)}</span>'
        if limit["threshold"] == 0.0 and " over " in one["name"]:  # a ratio, as a linear limit
            title += " <small>(what is beyond the share allowed; below 0, something is left)</small>"
        then = {"mean": limit["average"], "low": limit["low"], "high": limit["high"]}
        rows["then"] = _interval(then)
        label = "Proposed" if record["recommended"] else "Most promising change"
        lines.append(f"<dt>{label}</dt><dd>{_shown(then, unit)}</dd>")
        held = (
            '<div class="sure-rows">'
            f"<p>The limit holds with probability <b>{sure(limit['probability'])}</b> "
            f"({label.lower()})</p>{meter(limit['probability'], record['confidence'])}"
            f"<p>and with probability <b>{sure(limit['probability_today'])}</b> as it is done today</p>"
            f"{meter(limit['probability_today'], record['confidence'])}</div>"
        )
    elif one["name"] == record["objective"]["name"]:
        own = record["gain"]
        then = {"mean": own["average"], "low": own["average_low"], "high": own["average_high"]}
        rows["then"] = _interval(then)
        label = "Proposed" if record["recommended"] else "Most promising change"
        lines.append(f"<dt>{label}</dt><dd>{_shown(then, unit)}</dd>")
        verb = "as low as possible" if record["objective"]["sense"] == "minimise" else "as high as possible"
        title += f' <span class="rule">{verb}</span>'
    picture = strip(
        rows, None if limit is None else limit["threshold"], bool(limit and limit["at_least"]), f"{name}: averages"
    )
    return f'<div class="average"><h3>{title}</h3>{picture}<dl>{"".join(lines)}</dl>{held}</div>'


def _interval(one: dict[str, Any]) -> Interval | None:
    found = one["low"], one["mean"], one["high"]
    return None if None in found else found


def _shown(one: dict[str, Any], unit: str) -> str:
    return f"{with_unit(short_number(one['mean']), unit)} <small>({between(one['low'], one['high'])})</small>"


def decisions_section(record: dict[str, Any]) -> str:
    """Return the decisions that matter most, in words and as a picture."""
    found = record["decisions"]
    if not found or record["verdict"] == "keep":
        return ""
    colours = colours_of(found)
    head = "What to change" if record["recommended"] else "What might be better, but is not proven"
    n = len(found)
    rest = " All others are in the table of the policy, which --policy saves." if n == MOST_DECISIONS else ""
    intro = (
        f"The {n} situations that matter most, first the one that matters most.{rest}"
        if record["recommended"] and n > 1
        else "The situations in which the most promising change differs from today. Do not change them yet."
        if not record["recommended"]
        else "One situation matters."
    )
    cards = "".join(_decision(k, one, colours) for k, one in enumerate(found, 1))
    return (
        f'<section id="change"><h2>{head}</h2><p>{intro}</p>{legend(colours)}<ol class="cards">{cards}</ol></section>'
    )


def _decision(k: int, one: dict[str, Any], colours: dict[str, str]) -> str:
    changes = "".join(
        f"<li>{safe(name)} <b>{signed_number(change)}</b></li>" for name, change in one["changes"].items()
    )
    share = f"{percent(one['share_today'])} of rounds today, {percent(one['share'])} then"
    effect = f'<ul class="changes"><li class="what">effect on averages</li>{changes}</ul>' if changes else ""
    return (
        f'<li class="card"><h3><span class="n">{k}</span> {safe(one["state"])} <small>{share}</small></h3>'
        f'<div class="pair"><span>today</span><span>proposed</span></div>{bars(one, colours)}'
        f'<p class="words"><b>{choice(one["proposed"])}</b> instead of {choice(one["today"])}</p>{effect}</li>'
    )


def prices_section(record: dict[str, Any]) -> str:
    """Return what one unit of each limit is worth."""
    if not record["prices"]:
        return ""
    name = safe(record["objective"]["name"])
    lines = []
    limits = {one["name"]: one for one in record["limits"]}
    for one in record["prices"]:
        limit = limits[one["limit"]]
        word = "less" if limit["at_least"] else "more"
        if one["amount"] <= 0.0 and not one["high"]:
            lines.append(f"<li><b>{safe(one['limit'])}</b> costs nothing: it holds anyway at the best policy.</li>")
            continue
        low = one["low"]
        unit = record["objective"]["unit"]
        spread = "" if low is None else f" <small>({between(low, one['high'])})</small>"
        lines.append(
            f"<li>Allowing one {safe(limit['unit'] or 'unit')} {word} of <b>{safe(one['limit'])}</b> would improve "
            f"{name} by <b>{with_unit(short_number(one['amount']), unit)}</b>{spread}.</li>"
        )
    return (
        '<section id="worth"><h2>What the limits are worth</h2>'
        f"<p>For small changes of a limit, if its best use is made.</p><ul>{''.join(lines)}</ul></section>"
    )
