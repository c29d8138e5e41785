"""The page of the monitor: one file with style and script, which asks its own server for what is new, and nobody else.

Names come from users: they travel as JSON that cannot close its block, and the script puts them on the page as text.
"""

import re
from importlib import resources
from pathlib import Path
from typing import Any

from psconrl.errors import ConfigError
from psconrl.files import write_atomically
from psconrl.report.page import as_json

# The report's own, and the monitor's.
STYLES = ("report:page.css", "monitor:monitor.css")
SCRIPTS = (
    "report:dom.js", "report:scales.js", "report:state.js", "report:cursor.js", "report:download.js",
    "report:chart.js", "report:sections.js", "monitor:strips.js", "monitor:monitor.js",
)  # fmt: skip
HOMES = {"report": "psconrl.report", "monitor": "psconrl.report.monitor"}


def render(report: dict[str, Any], live: bool) -> str:
    """The page as text; ``live``: it asks for what is new, every two seconds."""
    parts = {
        "css": "\n".join(map(_asset, STYLES)),
        "script": "\n".join(map(_asset, SCRIPTS)),
        "data": as_json(report | {"live": live}),
    }
    # One pass, so that a name like {{css}} inside the data stays a name.
    return re.sub(r"\{\{(css|script|data)\}\}", lambda found: parts[found[1]], _asset("monitor:monitor.html"))


def write(report: dict[str, Any], path: Path) -> None:
    """Write the page as it is now to a file, which appears whole or not at all."""
    page = render(report, live=False).encode()
    write_atomically(path, lambda f: f.write(page), ConfigError)


def _asset(name: str) -> str:
    home, _, file = name.partition(":")
    return resources.files(HOMES[home]).joinpath("assets", file).read_text(encoding="utf-8")
