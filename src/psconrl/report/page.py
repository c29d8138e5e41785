"""The report as one HTML page that works offline: data, style and script are in a single file, nothing is fetched.

Names come from users. They are embedded as JSON that cannot close its block, and the script inserts them as text.
"""

import base64
import html
import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.base.files import write_atomically
from psconrl.errors import ConfigError
from psconrl.report.style import Look, looks_of

DIGITS = 6  # significant digits of means and of numbers in tables: more than a curve or a reader can use
DISTANCE_DIGITS = 3  # significant digits of the distance from a mean to an end of its interval
LINE = 2  # width of a curve in pixels, the unit of dash lengths
EXACT = 2**53  # from here on JavaScript's numbers skip integers
SCRIPTS = (
    "dom.js",
    "scales.js",
    "state.js",
    "cursor.js",
    "download.js",
    "chart.js",
    "sections.js",
    "controls.js",
    "page.js",
)
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&"}


def render_report(report: dict[str, Any]) -> str:
    """Return the page as text; ``report`` is a plain dict of titles, experiments (panels, tables, maps), provenance.

    Numbers may be NumPy's; a number that is not finite becomes null. The page omits parts whose keys are missing.

    >>> page = render_report({"title": "Four agents", "experiments": []})
    >>> "<title>Four agents</title>" in page, "https://" in page
    (True, False)
    """
    return fill_page(str(report.get("title") or "Report"), ("page.css",), SCRIPTS, _data(report))


def fill_page(title: str, styles: Sequence[str], scripts: Sequence[str], data: str) -> str:
    """Return a page as text, from the names of its assets and its data as JSON."""
    parts = {
        "title": html.escape(title).encode("ascii", "xmlcharrefreplace").decode(),
        "css": "\n".join(map(_asset, styles)),
        "script": "\n".join(map(_asset, scripts)),
        "data": data,
    }
    # A single pass, so that a name like {{css}} inside the data is not replaced.
    return re.sub(r"\{\{(title|css|script|data)\}\}", lambda found: parts[found[1]], _asset("page.html"))


def write_report(report: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the page to a file atomically."""
    page = render_report(report).encode()
    write_atomically(Path(path), lambda f: f.write(page), ConfigError)


def _asset(name: str) -> str:
    return resources.files("psconrl.report").joinpath("assets", name).read_text(encoding="utf-8")


def _data(report: dict[str, Any]) -> str:
    grids: list[Any] = []
    plain = _fields(report, but=("experiments",))
    plain["experiments"] = [_experiment(e, grids) for e in report.get("experiments") or ()]
    plain["grids"] = grids
    plain["looks"] = _looks(report)
    return _json(plain)


def as_json(value: Any) -> str:
    """Return a value as JSON that is safe in a page: no name can become markup, and what is not finite is null.

    >>> as_json({"name": "</script>", "mean": [1.0, float("nan")]})
    '{"name":"\\\\u003c/script\\\\u003e","mean":[1,null]}'
    """
    return _json(_plain(value, _rounded))


def _json(plain: Any) -> str:
    # ASCII only: this also escapes U+2028, U+2029 and the lone surrogates of odd file names.
    return json.dumps(plain, separators=(",", ":"), allow_nan=False, default=str).translate(_ESCAPES)


def _looks(report: dict[str, Any]) -> list[list[str]]:
    """Return the colour and the dash of every agent, as in the figures of the same results."""
    panels = [panel for e in report.get("experiments") or () for panel in e.get("panels") or ()]
    looks = looks_of(str(series["agent"]) for panel in panels for series in panel.get("series") or ())
    return packed_looks(looks)


def packed_looks(looks: Mapping[str, Look]) -> list[list[str]]:
    """Return names, colours and dashes in the form that the scripts of a page expect."""
    return [[name, look.colour, " ".join(f"{LINE * x:g}" for x in look.dash)] for name, look in looks.items()]


def _experiment(experiment: dict[str, Any], grids: list[Any]) -> dict[str, Any]:
    result = _fields(experiment, but=("panels", "maps"))
    result["panels"] = [_panel(p, grids) for p in experiment.get("panels") or ()]
    result["maps"] = [{"title": str(m["title"]), "src": _image(m["svg"])} for m in experiment.get("maps") or ()]
    return result


def _image(svg: str) -> str:
    """Return a picture as a data URL: inside an <img> it can neither run scripts nor fetch anything."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode("utf-8", "replace")).decode()


def _panel(panel: dict[str, Any], grids: list[Any]) -> dict[str, Any]:
    result = _fields(panel, but=("series",))
    result["series"] = [_series(s, grids) for s in panel.get("series") or ()]
    return result


def _series(series: dict[str, Any], grids: list[Any]) -> dict[str, Any]:
    """Pack a curve: checkpoints as an index into ``grids``, which curves share, and intervals as distances.

    ``below`` and ``above`` are the distances from the mean to the ends of its interval; a symmetric interval has no
    ``above``.
    """
    x = _plain(series["x"], _exact)
    if x not in grids:
        grids.append(x)
    mean, low, high = (_floats(series.get(key)) for key in ("mean", "low", "high"))
    result = _fields(series, but=("mean", "low", "high"))
    result |= {"x": grids.index(x), "mean": _plain(mean, _rounded)}
    if low.size and high.size:
        with np.errstate(invalid="ignore"):  # infinities cancel to nan, as they should
            below, above = mean - low, high - mean
        result["below"] = _plain(below, _distance)
        if not np.allclose(below, above, rtol=10.0**-DISTANCE_DIGITS, atol=0.0, equal_nan=True):
            result["above"] = _plain(above, _distance)
    return result


def _floats(values: Any) -> NDArray[np.float64]:
    return np.array([] if values is None else values, dtype=np.float64)


def _fields(record: dict[str, Any], but: tuple[str, ...]) -> dict[str, Any]:
    return {str(k): _plain(v, _rounded) for k, v in record.items() if k not in but}


def _plain(value: Any, number: Callable[[float], float | int | None]) -> Any:
    """Return the value in JSON's types, with ``number`` applied to every float."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(k): _plain(v, number) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v, number) for v in value]
    if isinstance(value, int) and abs(value) >= EXACT:
        return str(value)  # a long seed must not lose its last digits in the browser
    return number(value) if isinstance(value, float) else value


def _exact(value: float) -> float | int | None:
    """Return the value without a needless ``.0``; None if it is not finite.

    >>> [_exact(v) for v in (3.0, 0.25, float("nan"))]
    [3, 0.25, None]
    """
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < EXACT else value


def _rounded(value: float) -> float | int | None:
    """Return the value rounded to six significant digits.

    >>> [_rounded(v) for v in (1234567.0, 0.123456789, float("inf"))]
    [1234567, 0.123457, None]
    """
    if math.isfinite(value) and abs(value) >= 10**DIGITS:
        return _exact(float(round(value)))  # keep all digits of the whole part
    return _exact(float(f"{value:.{DIGITS}g}"))


def _distance(value: float) -> float | int | None:
    return _exact(float(f"{value:.{DISTANCE_DIGITS}g}"))
