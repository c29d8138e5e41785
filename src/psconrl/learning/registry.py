"""The agents by name: classes to restore them from files, and recipes to make them."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from psconrl.arrays import Floats
from psconrl.errors import AgentError, ConfigError, unknown_name
from psconrl.learning.agent import Agent
from psconrl.learning.c_ucrl import CUCRL
from psconrl.learning.cmdp_psrl import CMDPPSRL
from psconrl.learning.fha import FHA
from psconrl.learning.lagrangian import LagrangianPSRL
from psconrl.learning.psconrl import PSConRL
from psconrl.learning.saving import read
from psconrl.learning.span_fha import SpanFHA
from psconrl.learning.ucrl_cmdp import UCRLCMDP
from psconrl.learning.yardsticks import FixedPolicy, Uniform

CLASSES: dict[str, type[Agent]] = {
    agent.name: agent
    for agent in (PSConRL, CMDPPSRL, CUCRL, UCRLCMDP, FHA, SpanFHA, LagrangianPSRL, FixedPolicy, Uniform)
}


@dataclass(frozen=True)
class Recipe:
    """A way to make an agent, and what it is."""

    build: Callable[..., Agent]
    summary: str
    learns_costs: bool = False  # even if they are known
    needs_horizon: bool = False  # must be told how many rounds there will be


RECIPES: dict[str, Recipe] = {
    "psconrl": Recipe(
        PSConRL, "posterior sampling, exploring while samples are infeasible (this library's default prior)"
    ),
    "psconrl-paper": Recipe(PSConRL.paper, "the same with the paper's prior, Dirichlet(0.1)"),
    "psconrl-repaying": Recipe(PSConRL.repaying, "the default, paying back what it overspends while it learns"),
    "psconrl-published": Recipe(PSConRL.published, "what the authors' published code runs", learns_costs=True),
    "cmdp-psrl": Recipe(CMDPPSRL, "posterior sampling that ignores the limits while a sample is infeasible (ergodic)"),
    "c-ucrl": Recipe(CUCRL, "optimistic objective, pessimistic limits, blocks of a baseline policy"),
    "ucrl-cmdp": Recipe(UCRLCMDP, "best policy in the best model of a confidence box", needs_horizon=True),
    "fha": Recipe(FHA, "finite-horizon approximation with optimism", needs_horizon=True),
    "span-fha": Recipe(SpanFHA, "the same with span constraints: at most 4 states, approximate", needs_horizon=True),
    "lagrangian": Recipe(LagrangianPSRL, "posterior sampling, multipliers by online gradient"),
    "uniform": Recipe(Uniform, "every action with equal probability: a yardstick"),
}


def load_agent(path: Any, agent_class: type[Agent] | None = None) -> tuple[Agent, dict[str, Any]]:
    """An agent of whatever kind from a file, and what else was saved with it. One of your own class needs the class."""
    saved = read(path)
    if agent_class is None and saved.agent not in CLASSES:
        name = unknown_name("agent", saved.agent, CLASSES)
        raise AgentError(f"{path}: {name}; if it is of your own class, give agent_class=...")
    return (agent_class or CLASSES[saved.agent]).rebuilt(saved, path), saved.extra


def make_agent(
    name: str,
    n_states: int,
    n_actions: int,
    thresholds: ArrayLike,
    costs: Floats | None = None,
    seed: int | Sequence[int] | None = None,
    horizon: int | None = None,
    **options: Any,
) -> Agent:
    """An agent by its name in the list of ``psconrl agents``. The horizon goes only to those that must know it.

    >>> make_agent("psconrl-paper", 16, 4, [0.2]).name
    'psconrl'
    """
    if name not in RECIPES:
        raise ConfigError(unknown_name("agent", name, RECIPES))
    recipe = RECIPES[name]
    known: dict[str, Any] = {} if costs is None or recipe.learns_costs else {"costs": costs}
    if recipe.needs_horizon and horizon is not None:
        known["horizon"] = horizon
    allowed = option_names(recipe)
    for option in options:
        if option not in allowed:
            raise ConfigError(f"{name}: {unknown_name('option', option, allowed)}")
    try:
        return recipe.build(n_states, n_actions, thresholds, **known, seed=seed, **options)
    except TypeError as error:
        raise ConfigError(f"{name}: {str(error).split('() ', 1)[-1]}") from None


def with_reward_hint(name: str, best_reward: float, options: dict[str, Any]) -> dict[str, Any]:
    """The options of an agent that has to learn rewards, with the largest one there can be, if it can be told.

    Untried pairs count as free, which is no reason to try them where everything else pays.
    """
    hint = {"optimistic_cost": -best_reward} if "optimistic_cost" in option_names(RECIPES[name]) else {}
    return hint | options


def option_names(recipe: Recipe) -> list[str]:
    """The names of an agent's own options."""
    preset = recipe.build in (PSConRL.paper, PSConRL.repaying, PSConRL.published)
    return list(inspect.signature(PSConRL if preset else recipe.build).parameters)[4:]
