r"""FHA (Chen, Jain and Luo 2022, Algorithm 3): the average criterion approximated by a finite horizon.

The T rounds are cut into blocks of H. Each block, from the state where it begins, is an episodic CMDP with budgets
:math:`H \tau_i + sp_i`, planned optimistically over a confidence set that may be used differently at every step. Regret
and violation :math:`\tilde O(T^{2/3})` in weakly communicating models, if the span sp is known.

``planning.horizon`` answers by backward recursion where the occupancy program has H S^2 A variables. Published code
plays the most likely action of its policy; here it is played as it is, randomised.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.errors import AgentError, SolverError
from psconrl.learning.agent import Agent
from psconrl.learning.checks import as_count
from psconrl.learning.confidence import Box, bernstein_radius, empirical, scaled_radius
from psconrl.learning.episode import Episode
from psconrl.learning.options import as_amounts, check_coef, check_delta, check_horizon, check_optimistic_cost
from psconrl.limits import need
from psconrl.planning.optimism.horizon import solve_horizon
from psconrl.planning.scaling import Scaling


class FHA(Agent):
    """Finite-horizon approximation with optimism. Must know the horizon and a bound on the span of the bias.

    ``H``: length of a block, by default (T / (S^2 A))^(1/3). ``span``: the slack sp_i of each budget, a number or (m,),
    in units of the costs. ``coef``: radius coef/sqrt(N) as in the experiments, or None for Bernstein's with ``delta``.
    ``optimistic_cost``: as in PSConRL.
    """

    name: ClassVar[str] = "fha"

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: ArrayLike,
        costs: ArrayLike | None = None,
        *,
        horizon: int,
        H: int | None = None,
        span: ArrayLike = 1.0,
        coef: float | None = 0.1,
        delta: float = 0.05,
        optimistic_cost: float | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.horizon = check_horizon(horizon)
        self.H = self._default_block() if H is None else as_count(H, "H")
        need(8.0 * self.H * self.n_states**2, f"a plan for blocks of {self.H:,} rounds", AgentError)
        self.span = as_amounts(span, "span", self.thresholds.size)
        self.coef, self.delta = check_coef(coef), check_delta(delta)
        self.optimistic_cost = check_optimistic_cost(optimistic_cost)

    def _default_block(self) -> int:
        rounds_a_triple = self.horizon / (self.n_states**2 * self.n_actions)
        return max(1, math.ceil(math.pow(rounds_a_triple, 1 / 3)))

    def _box(self) -> Box:
        p_bar = empirical(self.counts)
        if self.coef is not None:
            return Box.around(p_bar, scaled_radius(self.counts.visits, self.coef))
        log_term = math.log(2 * self.n_states * self.n_actions * self.horizon / self.delta)
        return Box.around(p_bar, bernstein_radius(p_bar, self.counts.visits, log_term))

    def _begin(self, state: int) -> Episode:
        S, A = self.n_states, self.n_actions
        box, costs = self._box(), self._known_or_mean_costs()
        budget = self.thresholds + self.span / self.H
        everything = np.ones((S, A), dtype=bool)
        scaling = Scaling.of(costs, budget, everything)
        try:
            mixture, policy = solve_horizon(box.low, box.high, *scaling.apply(costs, budget, everything), self.H, state)
        except SolverError:
            return Episode.uniform(S, A, self.H, kind="unsettled")
        value = scaling.invert(mixture.shares @ np.array([column.costs for column in mixture.answers]))[0]
        kind = "optimal" if mixture.feasible else "least excess"
        return Episode(policy, max_steps=self.H, kind=kind, value=float(value))

    def config(self) -> dict[str, Any]:
        """The arguments that build an agent like this one, seed aside."""
        own = {"horizon": self.horizon, "H": self.H, "span": self.span, "coef": self.coef, "delta": self.delta}
        return super().config() | own | {"optimistic_cost": self.optimistic_cost}
