"""The agents by name: classes to restore them from files, and recipes to make them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from psconrl.arrays import Floats
from psconrl.errors import ConfigError, unknown_name
from psconrl.learning.agent import Agent
from psconrl.learning.psconrl import PSConRL

CLASSES: dict[str, type[Agent]] = {agent.name: agent for agent in (PSConRL,)}


@dataclass(frozen=True)
class Recipe:
    """A way to make an agent, and what it is."""

    build: Callable[..., Agent]
    summary: str
    learns_costs: bool = False  # even if they are known


RECIPES: dict[str, Recipe] = {
    "psconrl": Recipe(
        PSConRL, "posterior sampling, exploring while samples are infeasible (this library's default prior)"
    ),
    "psconrl-paper": Recipe(PSConRL.paper, "the same with the paper's prior, Dirichlet(0.1)"),
    "psconrl-published": Recipe(PSConRL.published, "what the authors' published code runs", learns_costs=True),
}


def agent_class(name: str) -> type[Agent]:
    """The class of a saved agent."""
    if name not in CLASSES:
        raise ConfigError(unknown_name("agent", name, CLASSES))
    return CLASSES[name]


def make_agent(
    name: str,
    n_states: int,
    n_actions: int,
    thresholds: ArrayLike,
    costs: Floats | None = None,
    seed: int | Sequence[int] | None = None,
    **options: Any,
) -> Agent:
    """An agent by its name in the list of ``psconrl agents``.

    >>> make_agent("psconrl-paper", 16, 4, [0.2]).name
    'psconrl'
    """
    if name not in RECIPES:
        raise ConfigError(unknown_name("agent", name, RECIPES))
    recipe = RECIPES[name]
    known = {} if costs is None or recipe.learns_costs else {"costs": costs}
    try:
        return recipe.build(n_states, n_actions, thresholds, **known, seed=seed, **options)
    except TypeError as error:
        raise ConfigError(f"{name}: {str(error).split('() ', 1)[-1]}") from None
