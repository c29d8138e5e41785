"""The page of the monitor: one file with style and script, which polls its own server and no other.

Names come from users. They are embedded as JSON that cannot close its block, and the script inserts them as text.
"""

import re
from importlib import resources
from pathlib import Path
from typing import Any

from psconrl.base.files import write_atomically
from psconrl.errors import ConfigError
from psconrl.report.page import as_json

# Assets of the report and of the monitor.
STYLES = ("report:page.css", "monitor:monitor.css")
SCRIPTS = (
    "report:dom.js", "report:scales.js", "report:state.js", "report:cursor.js", "report:download.js",
    "report:chart.js", "report:sections.js", "monitor:strips.js", "monitor:monitor.js",
)  # fmt: skip
HOMES = {"report": "psconrl.report", "monitor": "psconrl.report.monitor"}


def render_monitor(report: dict[str, Any], live: bool) -> str:
    """Return the page as text; ``live``: it polls the server every two seconds."""
    parts = {
        "css": "\n".join(map(_asset, STYLES)),
        "script": "\n".join(map(_asset, SCRIPTS)),
        "data": as_json(report | {"live": live}),
    }
    # A single pass, so that a name like {{css}} inside the data is not replaced.
    return re.sub(r"\{\{(css|script|data)\}\}", lambda found: parts[found[1]], _asset("monitor:monitor.html"))


def write_monitor(report: dict[str, Any], path: Path) -> None:
    """Write a snapshot of the page to a file atomically."""
    page = render_monitor(report, live=False).encode()
    write_atomically(path, lambda f: f.write(page), ConfigError)


def _asset(name: str) -> str:
    home, _, file = name.partition(":")
    return resources.files(HOMES[home]).joinpath("assets", file).read_text(encoding="utf-8")
