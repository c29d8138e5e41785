"""The sections of a memo on what to measure next, the guarantee, and the data."""

from typing import Any

from psconrl.data.checks.finding import OUTCOME, REMARKS
from psconrl.report.memo.words import counted, percent, safe, sentence, short_number, with_unit

MOST_FINDINGS = 8


def measuring_section(record: dict[str, Any]) -> str:
    """Return what to measure next."""
    need, gaps = record["measuring"], record["checks"]["coverage"]["gaps"]
    parts = []
    if need is not None:
        parts.append(f"<p><b>{sentence(need['experiment'])}</b></p>")
        if need["value"] is not None and need["value"] > 0.0:
            unit = record["objective"]["unit"] or "a round"
            parts.append(
                f"<p>What this tells is worth {with_unit(short_number(need['value']), unit)} on average; all knowledge "
                f"would be worth {with_unit(short_number(need['perfect']), unit)}.</p>"
            )
        rows = "".join(
            f"<tr><td>{safe(one['what'])}</td><td>{percent(round(one['share'], 2))}</td>"
            f"<td>{'' if one['rows'] is None else short_number(one['rows'])}</td></tr>"
            for one in need["matters"]
        )
        if rows:
            parts.append(
                "<table><thead><tr><th>What is not known well enough</th><th>Part of the doubt</th>"
                f"<th>Rows that would do</th></tr></thead><tbody>{rows}</tbody></table>"
            )
    else:
        untold = gaps and not record["data"]["with_system"] and record["verdict"] == "keep"
        parts.append(
            "<p>Try on purpose what was hardly tried: only then can the log say whether it is better.</p>"
            if untold
            else "<p>Nothing has to be measured before this decision. Go on recording every round.</p>"
        )
    if gaps and not record["data"]["with_system"]:  # a system learns every situation from all others
        tried = "".join(
            f"<li>{safe(one['action'])} in {safe(one['state'])}: tried {counted(one['times'], 'time')}, where a good "
            f"plan spends {percent(round(one['share'], 3))} of the rounds</li>"
            for one in gaps[:5]
        )
        parts.append(f"<p>Hardly tried where it may matter:</p><ul>{tried}</ul>")
    return f'<section id="next"><h2>What to measure next</h2>{"".join(parts)}</section>'


def guarantee_section(record: dict[str, Any]) -> str:
    """Return the policy with a guarantee that needs no prior."""
    own = record["guarantee"]
    if not own["found"]:
        body = (
            "<p>A stricter way of counting, which assumes nothing about what was not seen, finds no policy whose "
            f"limits are certain: {sentence(own['reason'])}</p>"
        )
    else:
        price = own["price"]
        objective = record["objective"]
        worse = "higher" if objective["sense"] == "minimise" else "lower"
        size = with_unit(short_number(price), objective["unit"] or "a round")
        is_free = price is not None and price <= 0.0
        tail = "costs nothing" if is_free else f"makes {safe(objective['name'])} {worse} by <b>{size}</b>"
        beside = "the proposal" if record["recommended"] else "what is done today"
        no_worse = " It is certain to be no worse than today." if own["no_worse_than_today"] else ""
        body = (
            "<p>A stricter way of counting, which assumes nothing about what was not seen, also finds a policy that "
            f"keeps every limit with probability {percent(own['probability'])}. Compared with {beside}, it {tail}."
            f"{no_worse}</p>"
        )
    return f'<section id="strict"><h2>The cautious alternative</h2>{body}</section>'


def data_section(record: dict[str, Any]) -> str:
    """Return what was read, its faults, and the checks."""
    own, checks = record["data"], record["checks"]
    size = [counted(own["rounds"], "round"), counted(own["states"], "situation"), counted(own["actions"], "action")]
    if own["runs"] > 1:
        size.insert(1, counted(own["runs"], "run"))
    parts = [f"<p>{', '.join(size)}.</p>"]
    if own["faults"]:
        faults = "".join(f"<li>{sentence(one['message'])}</li>" for one in own["faults"])
        parts.append(f"<p>Rows at fault were left out:</p><ul>{faults}</ul>")
    else:
        parts.append("<p>No row is at fault.</p>")
    doubts = [one for one in checks["findings"] if one["check"] not in REMARKS]
    outcomes = [one for one in checks["findings"] if one["check"] == OUTCOME]
    if doubts:
        found = "".join(f"<li>{sentence(one['message'])}</li>" for one in doubts[:MOST_FINDINGS])
        parts.append(f'<div class="warning"><p><b>Careful.</b> The description is in doubt:</p><ul>{found}</ul></div>')
    else:
        parts.append(
            f"<p>{counted(len(checks['tests']), 'test')} asked whether anything that is recorded tells more than the "
            "description uses, and found nothing.</p>"
        )
    if outcomes:
        found = "".join(f"<li>{sentence(one['message'])}</li>" for one in outcomes[:MOST_FINDINGS])
        parts.append(f"<ul>{found}</ul>")
    return f'<section id="data"><h2>The data</h2>{"".join(parts)}</section>'
