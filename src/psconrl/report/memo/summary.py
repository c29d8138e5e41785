"""The first sentences of a memo: what to do, and how sure that is."""

from typing import Any

from psconrl.report.memo.words import between, percent, safe, short_number, sure, with_unit

HEADS = {
    "improve": ("Change what you do", "good"),
    "pay": ("Change what you do: a limit is broken today", "pay"),
    "keep": ("Keep doing what you do", "good"),
    "not enough data": ("Not enough data for a change", "open"),
}


def summary_section(record: dict[str, Any]) -> str:
    """Return the verdict and its reasons."""
    head, mood = HEADS[record["verdict"]]
    sentences = [f"<p>{one}</p>" for one in _sentences(record)]
    if in_doubt(record):
        sentences = [
            '<p class="warning"><b>Careful.</b> The rows contradict the description of the situation: '
            '<a href="#data">what was found</a>. All that follows holds only if the description is right.</p>',
            f"<p>If it were right, the answer would be: <b>{head}</b>.</p>",
            *sentences,
        ]
        head, mood = "First mend the description", "pay"
    return f'<section class="verdict {mood}"><h2>{head}</h2>{"".join(sentences)}</section>'


def in_doubt(record: dict[str, Any]) -> bool:
    """Whether the rows contradict the description, on which all probabilities rest."""
    return not record["checks"]["is_good"] or any(one["disagreement"] for one in record["averages"])


def _sentences(record: dict[str, Any]) -> list[str]:
    confidence = percent(record["confidence"])
    limits = "all limits hold" if len(record["limits"]) != 1 else "the limit holds"
    held = f"{limits} and " if record["limits"] else ""
    name = safe(record["objective"]["name"])
    match record["verdict"]:
        case "improve":
            return [
                f"The changes below make <b>{name}</b> {gained(record)}.",
                f"With a probability of <b>{sure(record['probability'])}</b>, {held}{name} is no worse than today. "
                f"You asked for {confidence}.",
            ]
        case "pay":
            broken = [one for one in record["limits"] if one["probability_today"] <= 1.0 - record["confidence"]]
            which = ", ".join(safe(one["name"]) for one in broken) or "a limit"
            least = min((one["probability"] for one in record["limits"]), default=1.0)
            return [
                f"What is done today breaks the limit on <b>{which}</b>. The changes below keep every limit, each "
                f"with a probability of at least <b>{sure(least)}</b>.",
                f"They make <b>{name}</b> {gained(record)}.",
            ]
        case "keep":
            gaps = record["checks"]["coverage"]["gaps"] and not record["data"]["with_system"]
            other = ' Other actions were hardly tried: <a href="#next">what to measure next</a>.' if gaps else ""
            return [
                f"What is done today keeps {'every limit' if held else 'going well'}, and by what was tried, "
                f"hardly anything could be gained in <b>{name}</b>.{other}",
            ]
    about = record["measuring"]["about"] if record["measuring"] else record["objective"]["name"]
    return [
        f"No change is good enough with the probability of {confidence} that you asked for. The open question is "
        f"<b>{safe(about)}</b>.",
        f"The most promising change would make <b>{name}</b> {gained(record)}, but the probability that {held}{name} "
        f"is no worse than today is only <b>{sure(record['probability'])}</b>. "
        '<a href="#next">What to measure next</a> says what would settle it.',
    ]


def gained(record: dict[str, Any]) -> str:
    """Return the gain in words: "lower by 0.6 euro a day (95% interval: 0.4 to 0.8)"."""
    gain, objective = record["gain"], record["objective"]
    mean, low, high = gain["mean"], gain["low"], gain["high"]
    is_better = mean is not None and mean >= 0.0
    falls = (objective["sense"] == "minimise") == is_better
    if not is_better and mean is not None:
        mean, low, high = -mean, None if high is None else -high, None if low is None else -low
    size = with_unit(short_number(mean), objective["unit"] or "a round")
    interval = f"{percent(record['confidence'])} interval: {between(low, high)}"
    return f"<b>{'lower' if falls else 'higher'} by {size}</b> on average ({interval})"
