"""References of the library and of its agents, as BibTeX: the entries are in ``references.bib``.

The entries hold what the documentation of the agents says and no more: most have family names alone.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from psconrl.base.named_code import is_code
from psconrl.errors import ConfigError, unknown_name
from psconrl.experiment.store import Store
from psconrl.learning.registry import TABLE

LIBRARY = ("psconrl", "provodin2024efficient")  # keys of the library itself
_PAPER = ("provodin2024efficient",)
_LAGRANGIAN = ("provodin2022empirical",)
_FINITE = ("chen2022learning",)
_CONCAVE = ("agarwal2022concave",)
# Keys of the entries of every agent; those without an own one are this library's.
AGENT_REFERENCES: dict[str, tuple[str, ...]] = {
    "psconrl": _PAPER,
    "psconrl-paper": _PAPER,
    "psconrl-plain": _PAPER,
    "psconrl-repaying": _PAPER,
    "psconrl-published": _PAPER,
    "psconrl-published-2023": _PAPER,
    "psconrl-account": ("psconrl", "yu2026augmented", "ouyang2017learning"),
    "cmdp-psrl": ("agarwal2022regret",),
    "ps-curl": _CONCAVE,
    "uc-curl": _CONCAVE,
    "c-ucrl": ("zheng2020constrained",),
    "safe": ("psconrl", "liu2021learning", "bura2022dope"),
    "ucrl-cmdp": ("singh2020learning",),
    "tilted": ("psconrl", "cheung2019exploration", "chen2022learning", "singh2020learning"),
    "fha": _FINITE,
    "span-fha": _FINITE,
    "sa-cvi-ucb": ("yu2026augmented",),
    "pd-lscvi-ucb": ("yu2026learning",),
    "pd-lsvi-ucb": ("ghosh2023achieving",),
    "po-cmdp": _FINITE,
    "pdnac": ("xu2025global",),
    "lagrangian": _LAGRANGIAN,
    "lagrangian-published": _LAGRANGIAN,
    "lagrangian-theorem": ("psconrl", "provodin2022empirical", "cheung2019exploration"),
    "triple-qa": ("wei2022provably",),
    "tsde": ("ouyang2017learning",),
    "ucrl2": ("jaksch2010near",),
    "pmevi-dt": ("boone2024achieving",),
    "uniform": ("psconrl",),
    "fixed": ("psconrl",),
}
_ENTRY = re.compile(r"^@(\w+)\{(\w+),\n(.*?)^\}\n", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^  (\w+) = \{(.*)\},$", re.MULTILINE)


class BibEntry(NamedTuple):
    """An entry of the bibliography."""

    key: str
    kind: str  # article, inproceedings, misc, software
    fields: dict[str, str]
    text: str  # as BibTeX


@cache
def bibliography() -> dict[str, BibEntry]:
    """Return all entries, by key."""
    text = resources.files("psconrl.experiment").joinpath("references.bib").read_text(encoding="utf-8")
    found = (
        BibEntry(entry[2], entry[1], dict(_FIELD.findall(entry[3])), entry[0].rstrip())
        for entry in _ENTRY.finditer(text)
    )
    return {reference.key: reference for reference in found}


def agents_cited(names: Sequence[str]) -> list[str]:
    """Return the agents that names of agents and of results files stand for.

    Of a results file: the agents of its current runs, including the user's own.
    """
    titles = {recipe.title.lower(): recipe.name for recipe in TABLE}
    agents: list[str] = []
    for name in names:
        if name in AGENT_REFERENCES:
            agents.append(name)
        elif name.lower() in titles:
            agents.append(titles[name.lower()])
        elif Path(name).is_file():
            with Store(name) as store:
                agents += [
                    store.columns.text(agent, "an agent")
                    for (agent,) in store.query("SELECT DISTINCT agent FROM runs WHERE current ORDER BY id")
                ]
        else:
            raise ConfigError(f"{unknown_name('agent', name, AGENT_REFERENCES)} (or the name of a results file)")
    return list(dict.fromkeys(agents))


def citations(agents: Iterable[str]) -> str:
    """Return BibTeX of the library and of agents; each entry once, and a comment for every agent that has none.

    >>> print(citations(["ucrl2"]).count("@"))
    3
    """
    keys, comments = dict.fromkeys(LIBRARY), []
    for agent in agents:
        keys |= dict.fromkeys(AGENT_REFERENCES.get(agent, ()))
        if agent not in AGENT_REFERENCES:
            where = "your own" if is_code(agent) else "of another package"
            comments.append(f"% {' '.join(agent.split())}: no entry, since it is {where}")
    return "\n\n".join([*(bibliography()[key].text for key in keys), *comments])
