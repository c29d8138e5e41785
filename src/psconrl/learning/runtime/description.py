"""One-line description of an agent: its class, its sizes, options other than the defaults, and rounds played."""

import inspect
from typing import Any

from psconrl.learning.part import Part, argument_names, same_data, shown_value

SIZES = ("n_states", "n_actions", "thresholds", "costs")  # described separately
MOST_CHARACTERS = 60  # characters of an option, at most


def described(agent: Any) -> str:
    """Return the description; only the class if the agent is incomplete because its constructor failed."""
    name = type(agent).__name__
    try:
        return f"{name}({', '.join([*_sizes(agent), *_options(agent), _played(agent)])})"
    except Exception:  # a repr in a debugger must not hide the original error
        return f"<incomplete {name}>"


def _sizes(agent: Any) -> list[str]:
    m = agent.thresholds.size
    sizes = [f"{agent.n_states:,} states", f"{agent.n_actions:,} actions", f"{m} constraint{'' if m == 1 else 's'}"]
    if hasattr(agent, "costs"):
        sizes.append("costs learned" if agent.costs is None else "costs known")
    return sizes


def _options(agent: Any) -> list[str]:
    """Return the options that differ from the defaults of the class, if the agent has them as attributes."""
    cls: Any = type(agent)
    try:
        parameters = inspect.signature(cls.__init__).parameters
        names = [name for name in argument_names(cls) if name not in SIZES and hasattr(agent, name)]
    except Exception:  # the constructor does not name its arguments
        return []
    shown = []
    for name in names:
        value, usual = getattr(agent, name), parameters[name].default
        if name in getattr(agent, "parts", {}) and usual is None:
            usual = agent.parts[name]
        if usual is parameters[name].empty or not _alike(value, usual, agent):
            shown.append(f"{name}={_short(value)}")
    return shown


def _alike(value: Any, usual: Any, agent: Any) -> bool:
    if isinstance(value, Part) and isinstance(usual, Part):
        made = usual.made_for(agent.n_states, agent.n_actions, agent.thresholds.size)
        return type(value) is type(usual) and same_data(value.to_dict(), made.to_dict())
    return same_data(value, usual)


def _short(value: Any) -> str:
    text = " ".join(shown_value(value).split())
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"


def _played(agent: Any) -> str:
    play = agent._play
    rounds = agent.rounds + (0 if play is None else play.record.steps)
    return f"{rounds:,} round{'' if rounds == 1 else 's'} played"
