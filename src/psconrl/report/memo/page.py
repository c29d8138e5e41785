"""A memo as one HTML page: no script, nothing fetched, fit for a screen, a telephone and paper.

All text from the user's table is escaped; a page that is opened in a browser runs none of it.
"""

import os
from importlib import resources
from pathlib import Path
from typing import Any

from psconrl._version import __version__
from psconrl.base.files import write_atomically
from psconrl.data.advice.advice import Advice
from psconrl.errors import ConfigError
from psconrl.report.memo.evidence import data_section, guarantee_section, measuring_section
from psconrl.report.memo.sections import averages_section, decisions_section, prices_section
from psconrl.report.memo.summary import summary_section
from psconrl.report.memo.words import percent, safe

PARTS = (
    summary_section,
    decisions_section,
    averages_section,
    prices_section,
    measuring_section,
    guarantee_section,
    data_section,
)


def render_memo(record: dict[str, Any], title: str = "What the log supports") -> str:
    """Return the page of the record of advice as text."""
    style = resources.files("psconrl.report.memo").joinpath("assets", "memo.css").read_text(encoding="utf-8")
    name = safe(title)
    sections = "".join(part(record) for part in (*PARTS, _reading))
    page = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{name}</title><style>{style}</style></head>\n"
        f"<body><main><header><p>Memo</p><h1>{name}</h1></header>{sections}"
        f"<footer>Made by psconrl {safe(__version__)}.</footer></main></body></html>\n"
    )
    return page.encode("ascii", "xmlcharrefreplace").decode()


def write_memo(advice: Advice, path: str | os.PathLike[str], title: str = "What the log supports") -> None:
    """Write advice as a page to a file atomically."""
    page = render_memo(advice.record(), title).encode()
    write_atomically(Path(path), lambda f: f.write(page), ConfigError)


def _reading(record: dict[str, Any]) -> str:
    confidence = percent(record["confidence"])
    learned = (
        "Your description of the system is taken to be right; only its unknown numbers are learned from the rows."
        if record["data"]["with_system"]
        else "Nothing is known but the rows: what happens in a situation is learned from this situation alone."
    )
    return (
        '<section id="reading"><h2>How to read this</h2><ul>'
        "<li>An average is per round, over a long time.</li>"
        f"<li>An interval of {confidence} contains the true value with this probability, given the rows.</li>"
        "<li>A change is recommended only if it keeps all limits and is no worse than today with the probability that "
        "you asked for, or if it keeps limits that are broken today.</li>"
        f"<li>{learned}</li>"
        "<li>If what happens outside of the table changes, so does the answer.</li></ul></section>"
    )
