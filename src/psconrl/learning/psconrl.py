r"""PSConRL: posterior sampling for constrained reinforcement learning (Provodin, Kaptein and Pechenizkiy, ICML 2024).

Each episode draws transitions from the posterior. If some policy of the sampled model meets the thresholds, the optimal
one is played; if none does, the agent explores: it takes the shortest path to the state visited least, which makes
infeasible samples ever rarer. Bayesian regret :math:`\tilde O(D S \sqrt{A T})` for every cost in communicating CMDPs
(Theorem 4.1). Needs neither horizon, span, mixing time nor a safe policy.

The stopping rule is Ouyang et al.'s; see ``schedule.ouyang`` for how the paper's text differs.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.arrays import Floats
from psconrl.errors import ConfigError, SolverError, unknown_name
from psconrl.learning.agent import Agent
from psconrl.learning.checks import as_share, saved_floats, saved_policies
from psconrl.learning.counts import Record
from psconrl.learning.episode import Episode
from psconrl.learning.episode_planner import Choice, EpisodePlanner
from psconrl.learning.options import check_optimistic_cost
from psconrl.learning.posterior import Dirichlet, FlooredCounts
from psconrl.learning.repayment import Ledger
from psconrl.learning.schedule import schedule_named
from psconrl.model.transition import Transition

EXPLORE_ACTIONS = ("shortest", "least_tried")
IF_INFEASIBLE = ("explore", "uniform", "unconstrained")
BELIEFS = {"dirichlet": Dirichlet, "floored": FlooredCounts}


class PSConRL(Agent):
    """Posterior sampling with exploration whenever the sampled model is infeasible.

    ``prior``: Dirichlet parameter of every transition, a number or an (S, A, S) array in which 0 means impossible; by
    default 1/S, so that all next states together weigh as much as one observation (docs/prior.md has the study).
    ``costs``: (m+1, S, A) if known; else they are learned as empirical means, untried pairs counting as free. That is
    optimistic while costs are not negative; if the objective is a reward, give minus the largest possible reward as
    ``optimistic_cost``, which then counts as one observation of every pair. ``explore_action``: what to play in the
    target of an exploration once it is reached, ``"shortest"`` (the paper's: whatever returns soonest) or
    ``"least_tried"``. ``schedule``: when to think again. ``if_infeasible``: all but ``"explore"`` for comparison.
    ``repay``: about the share, from 0 to 1, of what was spent beyond a limit so far that the next episode shall make up
    for; 0, as in the paper, plans for the limits themselves (``psconrl.learning.repayment``).
    """

    name: ClassVar[str] = "psconrl"

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: ArrayLike,
        costs: ArrayLike | None = None,
        *,
        prior: ArrayLike | None = None,
        explore_action: str = "shortest",
        schedule: str = "ouyang",
        if_infeasible: str = "explore",
        belief: str = "dirichlet",
        optimistic_cost: float | None = None,
        repay: float = 0.0,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.explore_action = _one_of("explore_action", explore_action, EXPLORE_ACTIONS)
        self.if_infeasible = _one_of("if_infeasible", if_infeasible, IF_INFEASIBLE)
        self.belief_name = _one_of("belief", belief, tuple(BELIEFS))
        self.belief = BELIEFS[belief](1.0 / n_states if prior is None else prior, n_states, n_actions)
        self.optimistic_cost = check_optimistic_cost(optimistic_cost)
        self.repay = as_share(repay, "repay")
        self.ledger = Ledger(self.thresholds.size)
        self.schedule_name = schedule
        self.schedule = schedule_named(schedule)
        self.planner = EpisodePlanner(n_states, n_actions)
        self.sampled: Transition | None = None  # the transitions (S*A, S) behind the present episode, to look at
        self._last_length = 1

    @classmethod
    def paper(cls, n_states: int, n_actions: int, thresholds: ArrayLike, **options: Any) -> "PSConRL":
        """The paper's algorithm with the paper's prior, Dirichlet(0.1) whatever the number of states."""
        return cls(n_states, n_actions, thresholds, **({"prior": 0.1} | options))

    @classmethod
    def repaying(cls, n_states: int, n_actions: int, thresholds: ArrayLike, **options: Any) -> "PSConRL":
        """The same, paying back what it overspends while it learns: see docs/agents/psconrl.md for what it costs."""
        return cls(n_states, n_actions, thresholds, **({"repay": 0.1} | options))

    @classmethod
    def published(cls, n_states: int, n_actions: int, thresholds: ArrayLike, **options: Any) -> "PSConRL":
        """What the authors' published code runs, for comparison with their figures.

        Parameters max(N, 0.05), episodes that end when a pair has been visited 3 (1 + N) times, a uniform policy when
        the sample is infeasible, costs learned.
        """
        preset: dict[str, Any] = {
            "prior": 0.05,
            "belief": "floored",
            "schedule": "published",
            "if_infeasible": "uniform",
        }
        return cls(n_states, n_actions, thresholds, **(preset | options))

    def _begin(self, state: int) -> Episode:
        P = self.sampled = self.belief.sample(self.counts, self.rng)
        costs = self._known_or_mean_costs()
        max_steps, caps = self.schedule(self.counts, self._last_length)
        unsettled = False
        try:
            planned = self._planned(P, costs, state)
        except SolverError:  # a sample beyond floating point: whatever is played, something is learned
            planned, unsettled = None, True
        if planned is not None:
            kind, choice = planned
            return Episode(choice.policy, max_steps, caps, kind, choice.value)
        if self.if_infeasible == "explore":
            kind = "unsettled" if unsettled else "explore"
            return Episode(self._exploration(P, state), max_steps, caps, kind)
        kind = "unsettled" if unsettled else "uniform"
        return Episode.uniform(self.n_states, self.n_actions, max_steps, caps, kind)

    def _planned(self, P: Transition, costs: Floats, state: int) -> tuple[str, Choice] | None:
        """The kind of the episode and its plan; None if no policy of the sampled model keeps the limits."""
        limits = self.ledger.targets(self.thresholds, self.repay, self.rounds) if self.repay else [self.thresholds]
        for targets in limits:
            choice = self.planner.optimal(P, costs, targets, state)
            if choice is not None:
                return "optimal" if targets is self.thresholds else "repay", choice
        if self.if_infeasible == "unconstrained":
            free = self.planner.optimal(P, costs[:1], np.empty(0), state)
            return None if free is None else ("unconstrained", free)
        return None

    def _end(self, record: Record) -> None:
        self._last_length = record.steps
        if self.repay:
            self.ledger.enter(record, self.thresholds)

    def _limits_changed(self, playing: Record | None) -> None:
        """Debts under the old limits are forgotten."""
        self.ledger = Ledger(self.thresholds.size)
        if self.repay and playing is not None:
            self.ledger.exempt(playing, self.thresholds)

    def _exploration(self, P: Transition, state: int) -> Floats:
        """The policy towards the least visited of the states that the sampled model can reach.

        Every action alike if the way there takes longer than floating point can tell.
        """
        visits = self.counts.pairs.sum(axis=1).astype(np.float64)
        visits[~P.reachable_from(np.arange(self.n_states) == state)] = np.inf
        target = int(self.rng.choice(np.flatnonzero(visits == visits.min())))
        try:
            actions = self.planner.towards(P, target)
        except SolverError:
            return Episode.uniform(self.n_states, self.n_actions).policy
        if self.explore_action == "least_tried":
            actions[target] = int(self.counts.pairs[target].argmin())
        return np.eye(self.n_actions)[actions]

    def config(self) -> dict[str, Any]:
        """The arguments that build an agent like this one, seed aside."""
        return super().config() | {
            "prior": self.belief.prior,
            "explore_action": self.explore_action,
            "schedule": self.schedule_name,
            "if_infeasible": self.if_infeasible,
            "belief": self.belief_name,
            "optimistic_cost": self.optimistic_cost,
            "repay": self.repay,
        }

    def state(self) -> dict[str, Any]:
        """All that has changed since."""
        own = {"last_length": self._last_length, "last_policies": list(self.planner.last)}
        return super().state() | own | {"balance": self.ledger.balance}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        super().restore(state)
        self._last_length = int(state["last_length"])
        if "balance" in state:  # not in the first files
            self.ledger.balance = saved_floats(state["balance"], self.thresholds.shape, "balance")
        self.planner.last = saved_policies(state["last_policies"], self.n_states, self.n_actions)


def _one_of(option: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise ConfigError(unknown_name(option, value, known))
    return value
