"""Titles of a user's own agents: the attribute ``title`` of their classes, for figures and tables.

A sweep notes them in its results file, since reading a file runs no code.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from psconrl.base.named_code import AGENTS, find_object, from_package, is_code
from psconrl.experiment.job import Job
from psconrl.experiment.store import Store
from psconrl.learning.registry import RECIPES, titles_of

TITLES = "titles "  # start of the keys in meta


def user_titles(jobs: Iterable[Job]) -> dict[str, str]:
    """Return the titles of the agents that are the user's and have one, by label.

    The point of a grid is part of the title: that of ``margin margin=0.5`` is ``Margin margin=0.5``.
    """
    found = {}
    for job in {job.label: job for job in jobs if job.agent not in RECIPES}.values():
        made = find_object(job.agent) if is_code(job.agent) else from_package(AGENTS, job.agent)
        title = getattr(made, "title", None)
        if isinstance(title, str) and title.strip():
            found[job.label] = f"{' '.join(title.split())}{grid_point(job.label, job.agent_options)}"
    return found


def grid_point(label: str, options: Mapping[str, Any]) -> str:
    """Return the point of a grid at the end of a label: values of options.

    >>> grid_point("margin margin=0.5", {"margin": 0.5}), grid_point("margin", {"margin": 0.5})
    (' margin=0.5', '')
    """
    point = ""
    for key, value in reversed(list(options.items())):
        text = f" {key}={value}"
        if label.removesuffix(point).endswith(text):
            point = text + point
    return point


def shown_titles(store: Store, labels: Iterable[str]) -> dict[str, str]:
    """Return the titles of all agents of a results file; labels that would share a title keep their own names."""
    titles = titles_of(labels)
    rows = store.query("SELECT key, value FROM meta WHERE key LIKE ? ORDER BY key", (f"{TITLES}%",))
    noted: dict[str, str] = {}
    for key, text in rows:
        for label, title in store.columns.table(text, f"the {key}").items():
            noted[label] = store.columns.text(title, f"a title in the {key}")
    noted = {label: title for label, title in noted.items() if label in titles}
    number = Counter((titles | noted).values())
    return {label: noted[label] if number[noted.get(label, "")] == 1 else title for label, title in titles.items()}
