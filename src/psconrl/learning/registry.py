"""The registry of agents: one table from which they are built, listed, drawn and restored. Add new agents here.

``psconrl agents``, specs, the titles in figures and tables, ``load_agent`` and the table in docs/agents use it.
(Classes are exported in ``psconrl.agents`` separately.)
"""

import inspect
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from psconrl.base.arrays import Floats
from psconrl.base.caps import LARGEST_COST
from psconrl.base.escaping import quoted
from psconrl.base.named_code import AGENTS, find_code, from_package, installed, is_code
from psconrl.base.saved_fields import in_field, integer, read_fields, reals
from psconrl.errors import AgentError, ConfigError, unknown_name
from psconrl.learning.agent import Agent
from psconrl.learning.agents.fixed_policy import FixedPolicy
from psconrl.learning.agents.psconrl import PSConRL
from psconrl.learning.agents.psconrl_2023 import PSConRL2023
from psconrl.learning.agents.psconrl_account import PSConRLAccount
from psconrl.learning.agents.tilted import TiltedOptimism
from psconrl.learning.agents.uniform import Uniform
from psconrl.learning.part import Part, argument_names, same_data
from psconrl.learning.parts.fallbacks import Explore, LeastExcess, Unconstrained, Uniformly
from psconrl.learning.parts.ledger import Repay
from psconrl.learning.parts.planning_horizons import Endless
from psconrl.learning.parts.schedules import Doubling, Ouyang, Published
from psconrl.learning.parts.tightened import Tightened
from psconrl.learning.posterior.cost_beliefs import EmpiricalMeans, PublishedMeans
from psconrl.learning.posterior.transition_beliefs import Dirichlet, FlooredCounts
from psconrl.learning.recipe import Recipe
from psconrl.learning.rivals.c_ucrl import CUCRL
from psconrl.learning.rivals.fha import FHA
from psconrl.learning.rivals.lagrangian import LagrangianPSRL
from psconrl.learning.rivals.lagrangian_published import PublishedLagrangian
from psconrl.learning.rivals.lagrangian_theorem import TheoremLagrangian
from psconrl.learning.rivals.pd_lscvi_ucb import PDLSCVIUCB
from psconrl.learning.rivals.pd_lsvi_ucb import PDLSVIUCB
from psconrl.learning.rivals.pdnac import PDNAC
from psconrl.learning.rivals.pmevi_dt import PMEVIDT
from psconrl.learning.rivals.po_cmdp import POCMDP
from psconrl.learning.rivals.sa_cvi_ucb import SACVIUCB
from psconrl.learning.rivals.span_fha import SpanFHA
from psconrl.learning.rivals.triple_qa import TripleQA
from psconrl.learning.rivals.tsde import TSDE
from psconrl.learning.rivals.uc_curl import UCCURL
from psconrl.learning.rivals.ucrl2 import UCRL2
from psconrl.learning.rivals.ucrl_cmdp import UCRLCMDP
from psconrl.learning.runtime.adapter import Adapted, adapt, name_of
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import Learner
from psconrl.learning.runtime.persistence import Saved, in_file, need_sizes, read_saved, rebuilt, restored
from psconrl.learning.runtime.player import Player
from psconrl.learning.safe.baseline import outcome_ranges
from psconrl.learning.safe.safe_start import SafeStart
from psconrl.learning.user_agents import UserRecipe
from psconrl.model.cmdp import CMDP
from psconrl.model.simulation_tables import EMISSIONS

# As in the paper.
PLAIN: dict[str, Part | None] = {
    "schedule": Ouyang(),
    "cost_belief": EmpiricalMeans(),
    "ledger": None,
    "planning_horizon": Endless(),
    "commitment": None,
    "doubt": None,
    "fallback": Explore(),
}

TABLE = (
    Recipe(
        "psconrl", PSConRL, "PSConRL",
        "posterior sampling, exploring while samples are infeasible; learned prior, limits met over the whole run",
    ),
    Recipe(
        "psconrl-paper", PSConRL, "PSConRL (paper)",
        "the paper's version: Dirichlet(0.1), Ouyang et al.'s episodes, no ledger",
        parts={"belief": Dirichlet(0.1), **PLAIN},
    ),
    Recipe(
        "psconrl-plain", PSConRL, "PSConRL (prior 1/S)", "the paper's version with prior 1/S instead of 0.1",
        parts={"belief": Dirichlet(), **PLAIN},
    ),
    Recipe(
        "psconrl-repaying", PSConRL, "PSConRL (prior 1/S), repaying",
        "psconrl-plain with a ledger: pays back what it overspends while it learns",
        parts={"belief": Dirichlet(), **PLAIN, "ledger": Repay(0.1)},
    ),
    Recipe(
        "psconrl-published", PSConRL, "PSConRL (authors' code, learns costs)", "as in the authors' published code",
        parts={
            "belief": FlooredCounts(0.05), **PLAIN, "schedule": Published(), "fallback": Uniformly(),
            "cost_belief": PublishedMeans(),
        },
        learns_costs=True,
    ),
    Recipe(
        "psconrl-published-2023", PSConRL2023, "PSConRL (authors' code of 2023)",
        "as in the authors' code of August 2023: floor 0.001, uniform play where the plan has no frequency",
        learns_costs=True,
    ),
    Recipe(
        "psconrl-account", PSConRLAccount, "PSConRL (account)",
        "posterior sampling, plans over state and running violation; one limit", needs_horizon=True,
    ),
    Recipe(
        "cmdp-psrl", PSConRL, "CMDP-PSRL",
        "posterior sampling that ignores the limits while a sample is infeasible (ergodic)",
        parts={"belief": Dirichlet(), **PLAIN, "schedule": Doubling(), "fallback": Unconstrained()},
    ),
    Recipe(
        "ps-curl", PSConRL, "PS-CURL", "posterior sampling with limits tightened by a vanishing margin (ergodic)",
        parts={
            "belief": Dirichlet(), **PLAIN, "schedule": Doubling(), "fallback": LeastExcess(), "ledger": Tightened(),
        },
    ),
    Recipe("uc-curl", UCCURL, "UC-CURL", "optimism over a confidence box, with limits tightened by a vanishing margin"),
    Recipe("c-ucrl", CUCRL, "C-UCRL", "optimistic objective, pessimistic limits, alternating with a baseline policy"),
    Recipe(
        "safe", SafeStart, "safe start", "plays only policies certified to keep the limits, starting from a known one",
    ),
    Recipe("ucrl-cmdp", UCRLCMDP, "UCRL-CMDP", "best policy in the best model of a confidence box", needs_horizon=True),
    Recipe(
        "tilted", TiltedOptimism, "tilted optimism",
        "one optimistic plan per episode, at a price that is tilted by the violation; one limit", needs_horizon=True,
    ),
    Recipe("fha", FHA, "FHA", "finite-horizon approximation with optimism", needs_horizon=True),
    Recipe(
        "span-fha", SpanFHA, "SpanFHA", "FHA with span constraints: at most 4 states, approximate",
        needs_horizon=True,
    ),
    Recipe(
        "sa-cvi-ucb", SACVIUCB, "SA-CVI-UCB",
        "optimistic value iteration over state and running violation; one limit", needs_horizon=True,
    ),
    Recipe(
        "pd-lscvi-ucb", PDLSCVIUCB, "PD-LSCVI-UCB", "optimistic value iteration over short blocks, with multipliers",
        needs_horizon=True,
    ),
    Recipe(
        "pd-lsvi-ucb", PDLSVIUCB, "PD-LSVI-UCB", "optimistic value iteration with softmax policies and multipliers",
        needs_horizon=True,
    ),
    Recipe(
        "po-cmdp", POCMDP, "PO-CMDP", "policy optimisation by mirror descent, with multipliers (ergodic)",
        needs_horizon=True,
    ),
    Recipe("pdnac", PDNAC, "PDNAC", "natural actor-critic with multipliers, model-free (ergodic)", needs_horizon=True),
    Recipe("lagrangian", LagrangianPSRL, "Lagrangian PSRL", "posterior sampling, multipliers by online gradient"),
    Recipe(
        "lagrangian-published", PublishedLagrangian, "Lagrangian PSRL (authors' code)",
        "as in the authors' published code: a constant step on the average excess of an episode", learns_costs=True,
    ),
    Recipe(
        "lagrangian-theorem", TheoremLagrangian, "Lagrangian PSRL (theorem)",
        "posterior sampling, multipliers by projected gradient, short episodes; regret T^(2/3) is proven",
    ),
    Recipe(
        "triple-qa", TripleQA, "Triple-QA", "model-free: optimistic Q-learning with virtual queues",
        needs_horizon=True,
    ),
    Recipe("tsde", TSDE, "TSDE", "posterior sampling that ignores all limits, for comparison"),
    Recipe("ucrl2", UCRL2, "UCRL2", "optimism over L1 balls that ignores all limits, for comparison"),
    Recipe(
        "pmevi-dt", PMEVIDT, "PMEVI-DT", "optimism with bounds on the bias that ignores all limits, for comparison",
        needs_horizon=True,
    ),
    Recipe("uniform", Uniform, "uniform", "every action with equal probability, for comparison"),
    Recipe("fixed", FixedPolicy, "fixed policy", "plays one given policy, for comparison", listed=False),
)  # fmt: skip

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in TABLE if recipe.listed}
CLASSES: dict[str, type[Agent]] = {recipe.cls.name: recipe.cls for recipe in TABLE}

# Titles of the labels in shipped specs that are not names of agents.
VARIANTS = {
    "resampling-psconrl": "PSConRL, resampling",
    "resampling-cmdp-psrl": "CMDP-PSRL, resampling",
    "psconrl-covered": "PSConRL, closest to the proof",
    "psconrl-same-prior": "PSConRL, closest to the proof, same prior",
    "triple-qa-each": "Triple-QA, separate hats",
    "c-ucrl-safe": "C-UCRL, safe baseline",
}


def title_of(label: str) -> str:
    """Return the title of an agent, for figures, tables and pages; that of an unknown label is the label.

    >>> title_of("c-ucrl"), title_of("mine")
    ('C-UCRL', 'mine')
    """
    return RECIPES[label].title if label in RECIPES else VARIANTS.get(label, label)


def titles_of(labels: Iterable[str]) -> dict[str, str]:
    """Return the titles of all agents of a results file; labels that would share a title keep their own names.

    >>> titles_of(["fha", "psconrl", "PSConRL"])
    {'fha': 'FHA', 'psconrl': 'psconrl', 'PSConRL': 'PSConRL'}
    """
    titles = {label: title_of(label) for label in labels}
    number = Counter(titles.values())
    return {label: title if number[title] == 1 else label for label, title in titles.items()}


def recipe_for(name: str, folder: Path | None = None) -> Recipe | UserRecipe:
    """Return the recipe of an agent: from the table, an entry point, or your own code as ``module:Class``."""
    if isinstance(name, str) and name in RECIPES:
        return RECIPES[name]
    if isinstance(name, str) and name in installed(AGENTS):
        return _own_recipe(name, from_package(AGENTS, name))
    if is_code(name):
        return _own_recipe(name, find_code(name, folder))
    known = [*RECIPES, *installed(AGENTS)]
    raise ConfigError(unknown_name("agent", name, known) + " (one of your own is module:Class)")


def _own_recipe(name: str, made: Any) -> Recipe | UserRecipe:
    if isinstance(made, type) and issubclass(made, Agent):
        summary = (inspect.getdoc(made) or "").partition("\n")[0]
        horizon = "horizon" in argument_names(made)
        return Recipe(name, made, str(getattr(made, "title", made.__name__)), summary, needs_horizon=horizon)
    return UserRecipe(name, made)


def make_agent(
    name: str,
    n_states: int,
    n_actions: int,
    thresholds: Thresholds,
    costs: Floats | None = None,
    seed: int | Sequence[int] | None = None,
    horizon: int | None = None,
    **options: Any,
) -> Player:
    """Build an agent by its name in ``psconrl agents``, or your own agent by its location, ``"mine:MyAgent"``.

    The horizon is passed only to agents that must know it. Options are plain data, as in a spec: a part by its name or
    as a table, and options of parts on their own.

    >>> agent = make_agent("psconrl-paper", 16, 4, [0.2], schedule="doubling")
    >>> agent.recipe, agent.belief, agent.schedule
    ('psconrl-paper', Dirichlet(prior=0.1), Doubling())
    """
    recipe = recipe_for(name)
    known: dict[str, Any] = {} if costs is None or recipe.learns_costs else {"costs": costs}
    if recipe.needs_horizon and horizon is not None:
        known["horizon"] = horizon
    return recipe.build(n_states, n_actions, thresholds, **known, seed=seed, **options)


def with_hints(name: str, model: CMDP, options: dict[str, Any], emission: str = "deterministic") -> dict[str, Any]:
    """Return the options of an agent that learns the costs of a model, with hints on them that it may have.

    ``optimistic_cost`` is minus the largest reward: without it untried pairs count as better than the best so far by
    the range of what was met, which may be far from the largest reward. ``ranges`` are the lowest and highest values of
    every cost, for agents that need them: without noise for agents that only scale costs by them, else for costs that
    are drawn by the ``emission``.
    """
    recipe = recipe_for(name)
    known = recipe.option_names()
    hints: dict[str, Any] = {}
    if model.maximise and "optimistic_cost" in known:
        hints["optimistic_cost"] = float(model.costs[0].min())
    if "ranges" in known:
        noise = emission if recipe.ranges_include_noise else EMISSIONS[0]
        hints["ranges"] = outcome_ranges(model, noise).tolist()
    return hints | options


def load_agent(path: Any, agent: type[Agent] | Learner | None = None) -> Any:
    """Load an agent of any kind from a file, and return it.

    ``path``: a file written by ``agent.save``. ``agent``: your own class, or a fresh object to restore into, if the
    agent is not one of this library's. Files name agents and never contain code. The ``extra`` of the agent holds what
    else was saved with it.
    """
    saved = read_saved(path)
    if agent is None:
        if saved.agent not in CLASSES:
            name = unknown_name("agent", saved.recipe, CLASSES)
            raise AgentError(f"{path}: {name}; if it is your own, give agent=, its class or a fresh object")
        return rebuilt(CLASSES[saved.agent], saved, path)
    if isinstance(agent, type):
        if not issubclass(agent, Agent):
            raise AgentError(f"{agent.__name__} is no subclass of Agent; give a fresh object of it")
        return rebuilt(agent, saved, path)
    return restored(_fresh(agent, saved, path), saved, path)


def _fresh(agent: Learner, saved: Saved, path: Any) -> Player:
    """Return the object to restore into, as a player of the saved sizes."""
    if isinstance(agent, Agent):
        own, theirs = agent.name, saved.agent
    else:
        own = agent.recipe if isinstance(agent, Adapted) else name_of(agent)
        theirs = saved.recipe if saved.agent == Adapted.name else saved.agent
    ours, was_foreign = isinstance(agent, Agent), saved.agent == Adapted.name
    if own != theirs or ours == was_foreign:
        raise AgentError(f"{path}: holds an agent {quoted(theirs)}, not {quoted(own)}")
    with in_file(path):
        need_sizes(saved)
        with in_field("config"):
            thresholds = reals((None,), -LARGEST_COST, LARGEST_COST)
            sizes = read_fields(
                saved.config, {"n_states": integer(1), "n_actions": integer(1), "thresholds": thresholds}
            )
    player = adapt(agent, **sizes)
    same = (player.n_states, player.n_actions) == (sizes["n_states"], sizes["n_actions"])
    same = same and player.thresholds.shape == sizes["thresholds"].shape
    others = _other_options(player, saved.config) if isinstance(player, Agent) else []
    if not same:
        raise AgentError(f"{path}: holds an agent of other sizes than the one to restore into")
    if others:
        raise AgentError(f"{path}: holds an agent made with other {others[0]} than the one to restore into")
    if isinstance(player, Adapted):
        player.check_memory()
    return player


def _other_options(agent: Agent, config: dict[str, Any]) -> list[str]:
    """Return the names of options that differ from those in a file; thresholds may have been changed since."""
    own = agent.config()
    return [key for key in own if key != "thresholds" and not (key in config and same_data(own[key], config[key]))]
