"""What posterior samplers have in common: a belief to draw from, a schedule, and a planner that remembers."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, diags_array

from psconrl.arrays import Floats
from psconrl.errors import AgentError, CostsWarning
from psconrl.learning.agent import Agent
from psconrl.learning.checks import (
    as_optimistic_cost,
    as_weight,
    checked_distributions,
    need_all_actions,
    saved_floats,
    saved_policies,
)
from psconrl.learning.episode_planner import EpisodePlanner
from psconrl.learning.parts.schedules import Schedule
from psconrl.learning.posterior.beliefs import Belief, Dirichlet
from psconrl.learning.posterior.cost_beliefs import CostBelief, Hints
from psconrl.learning.posterior.counts import Record
from psconrl.learning.posterior.learned_mass import LearnedMass
from psconrl.learning.runtime.constraint_names import ConstraintNames, Thresholds
from psconrl.model.cmdp import CMDP
from psconrl.model.transition import Transition

# For every transition that a sample has: parameters, what drawing it takes, and the model that is planned.
ENTRY_BYTES = 40
# Seconds that planning in a sample takes, by its states if it is dense and by its entries if it is sparse, roughly; and
# how many of them are worth a warning.
PER_STATE_CUBED, PER_ENTRY = 1e-9, 1e-6
SLOW = 1.0
MOST_ENTRIES = 2**31 - 1
# Observations of a pair from which on its transitions are told rather than learned.
MUCH = 10.0
# How many observations a model may be worth, if that is to be learned.
WORTHS = (0.1, 1.0, 10.0, 100.0, 1000.0)
LEAST_WORTH = 1e-50


class Sampler(Agent):
    """Draws a model from its belief for every episode, and plans in it."""

    belief: Belief
    schedule: Schedule
    cost_belief: CostBelief

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: Thresholds,
        costs: ArrayLike | None,
        belief: Belief | None,
        schedule: Schedule | None,
        cost_belief: CostBelief | None,
        optimistic_cost: float | None,
        guessed_costs: ArrayLike | None,
        cost_weight: ArrayLike | None,
        seed: int | Sequence[int] | None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.belief = self._part("belief", belief)
        self.schedule = self._part("schedule", schedule)
        self.cost_belief = self._part("cost_belief", cost_belief)
        entries = self.belief.entries(self.n_states, self.n_actions)
        self._need(ENTRY_BYTES * entries)
        if entries >= MOST_ENTRIES:
            raise AgentError(
                f"a sample of {entries:,.0f} transitions is more than can be numbered; say which are possible"
            )
        self.optimistic_cost = as_optimistic_cost(optimistic_cost)
        self.guessed_costs = None if guessed_costs is None else self._as_costs(guessed_costs, "guessed_costs")
        self.cost_weight = None
        if cost_weight is not None:
            self.cost_weight = as_weight(cost_weight, "cost_weight", self.n_states, self.n_actions)
        self._warn_if_only_costs_are_unknown()
        self.planner = EpisodePlanner(self.n_states, self.n_actions)
        self.sampled: Transition | None = None  # the model behind the present episode, to look at

    def _warn_if_only_costs_are_unknown(self) -> None:
        """With transitions as good as known, all that is left to find out is what every pair costs, one by one."""
        told = self.belief.told()
        nothing = self.costs is None and self.guessed_costs is None and self.optimistic_cost is None
        if nothing and told >= MUCH:
            warnings.warn(
                f"the belief is worth {told:g} observations of a pair, but nothing is said of the costs, which is then "
                "what is left to learn. Give costs or guessed_costs, which may be rough; "
                "trusting(model, weight) takes both from a model",
                CostsWarning,
                stacklevel=4,
            )

    @classmethod
    def trusting(cls, model: CMDP, weight: ArrayLike | None = None, **options: Any) -> Self:
        """An agent that begins with a model of the system, worth so many observations of every pair.

        ``weight``: a number, or one for every pair, (S, A); None: how much the model is worth is learned, too. Where
        the model is wrong, experience outweighs it; what it holds for impossible is believed once it is seen. Its
        costs, if none are given as known, are guesses of the same weight, or of one that is learned, and its limits
        hold unless others are given.

        >>> import psconrl
        >>> from psconrl.agents import PSConRL
        >>> PSConRL.trusting(psconrl.load("queue"), weight=20, seed=1).belief
        Dirichlet(prior=sparse(60, 10))
        """
        known = trusted(model, weight) | {"thresholds": model.thresholds}
        if isinstance(options.get("thresholds"), Mapping):
            options["thresholds"] = model.with_thresholds(options["thresholds"]).thresholds
        if options.get("costs") is not None:  # nothing is guessed then
            del known["guessed_costs"], known["cost_weight"]
        make: Any = cls
        agent: Self = make(model.n_states, model.n_actions, **(known | options))
        agent._constraint_names = ConstraintNames.of(model.cost_names[1:], model.at_least)
        return agent

    def why_slow(self) -> str:
        """From the size of a sample, as such a plan takes on a machine of today."""
        entries = self.belief.entries(self.n_states, self.n_actions)
        dense = entries >= self.n_states**2 * self.n_actions
        seconds = PER_STATE_CUBED * self.n_states**3 if dense else PER_ENTRY * entries
        if seconds < SLOW:
            return ""
        line = f"an episode may take {seconds:.0f} s of thinking: {entries:,.0f} transitions are thought possible"
        if _of_states(vars(self.belief), "prior", "support"):  # has been said
            return f"{line}. agent.think_in_background() lets it act meanwhile"
        return f"{line}. Say which are (belief=LearnedMass(support=...), or learn --support)"

    def knows_states(self) -> str:
        """Costs, guesses of them, and a belief that is not the same for all states."""
        own = _of_states(vars(self), "costs", "guessed_costs")
        return own or _of_states(vars(self.belief), "prior", "support")

    def _draw(self) -> Transition:
        """A model from the belief; one of somebody else's is checked first."""
        drawn = self.belief.sample(self.counts, self.rng)
        self.sampled = drawn if self._trusted else checked_distributions(drawn, self.n_states, self.n_actions)
        return self.sampled

    def _episode_costs(self) -> Floats:
        """The costs to plan an episode with: known, or what the agent believes of them."""
        if self.costs is not None:
            return self.costs
        hints = Hints(self.optimistic_cost, self.guessed_costs, self.cost_weight)
        drawn = self.cost_belief.costs(self.counts, hints, self.rng)
        return drawn if self._trusted else self._as_costs(drawn, "costs of a cost_belief")

    def end(self, record: Record) -> None:
        """Learn from an episode."""
        if self.costs is None:
            self.cost_belief.learn(record, self.counts)
        super().end(record)
        self.schedule.ended(record.steps)

    def state(self) -> dict[str, Any]:
        """All that has changed since it was made."""
        last = {"last_policies": list(self.planner.last), "last_weights": self.planner.weights}
        return super().state() | last

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        super().restore(state)
        self.planner.last = saved_policies(state["last_policies"], self.n_states, self.n_actions)
        self.planner.weights = None
        if state["last_weights"] is not None:  # not before the first plan
            weights = saved_floats(state["last_weights"], (np.size(state["last_weights"]),), "last_weights")
            if (weights < 0).any():
                raise AgentError("last_weights must not be negative")
            self.planner.weights = weights


def _of_states(told: dict[str, Any], *names: str) -> str:
    """The first of some names that stands for a table of states."""
    return next((name for name in names if getattr(told.get(name), "shape", ())), "")


def trusted(model: CMDP, weight: ArrayLike | None = None) -> dict[str, Any]:
    """The options of an agent that begins with a model, worth so many observations; see ``Sampler.trusting``."""
    if not isinstance(model, CMDP):
        raise AgentError(f"trusting needs a model, a CMDP; got {type(model).__name__}")
    need_all_actions(model.available)
    P = model.transition.csr()
    if weight is None:
        return {"belief": LearnedMass(WORTHS, support=P), "guessed_costs": model.costs, "cost_weight": None}
    worth = as_weight(weight, "weight", model.n_states, model.n_actions)
    each = np.broadcast_to(worth, (model.n_states, model.n_actions)).ravel()
    if not (each > 0).all():
        raise AgentError("weight must be above 0 for every pair: of one that is worth nothing, give little")
    if not ((each >= LEAST_WORTH) & (each <= 1.0 / LEAST_WORTH)).all():
        raise AgentError(f"weight must lie between {LEAST_WORTH:g} and {1.0 / LEAST_WORTH:g}")
    return {"belief": Dirichlet(csr_array(diags_array(each) @ P)), "guessed_costs": model.costs, "cost_weight": worth}
