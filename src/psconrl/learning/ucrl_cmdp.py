r"""UCRL-CMDP (Singh, Gupta and Shroff 2020): the best policy in the best model of a confidence box.

Episodes of fixed length :math:`\lceil T^\alpha \rceil`. Regret and violation :math:`\tilde O(T^{2/3})` in ergodic
models. The paper on PSConRL could run it on its smallest grid only, since its joint program over policies and models
was solved as a non-linear one; ``planning.optimistic`` solves it exactly in milliseconds.

In a model that is not ergodic the best mixture may live in classes that never meet. One of its columns is then drawn
by lot for each episode.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.errors import SolverError
from psconrl.learning.agent import Agent
from psconrl.learning.confidence import Box, empirical, hoeffding_radius, scaled_radius
from psconrl.learning.episode import Episode
from psconrl.learning.options import check_coef, check_delta, check_exponent, check_horizon, check_optimistic_cost
from psconrl.planning.optimism.average import optimistic_policy, solve_optimistic
from psconrl.planning.scaling import Scaling


class UCRLCMDP(Agent):
    """Optimism over a box of models. Must know the horizon.

    ``exponent``: episodes last T^exponent rounds (1/3 by the paper's analysis, recalled from memory). ``coef``: radius
    coef/sqrt(N) as in the experiments, or None for Hoeffding's with failure probability ``delta``. ``optimistic_cost``:
    as in PSConRL.
    """

    name: ClassVar[str] = "ucrl-cmdp"

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: ArrayLike,
        costs: ArrayLike | None = None,
        *,
        horizon: int,
        exponent: float = 1 / 3,
        coef: float | None = 0.1,
        delta: float = 0.05,
        optimistic_cost: float | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.horizon, self.exponent = check_horizon(horizon), check_exponent(exponent)
        self.coef, self.delta = check_coef(coef), check_delta(delta)
        self.optimistic_cost = check_optimistic_cost(optimistic_cost)

    def _begin(self, state: int) -> Episode:
        S, A = self.n_states, self.n_actions
        if self.coef is not None:
            radius = scaled_radius(self.counts.visits, self.coef)
        else:
            radius = hoeffding_radius(self.counts.visits, math.log(2 * S * S * A * self.horizon / self.delta))
        box = Box.around(empirical(self.counts), radius)
        costs = self._known_or_mean_costs()
        everything = np.ones((S, A), dtype=bool)
        scaling = Scaling.of(costs, self.thresholds, everything)
        length = math.ceil(self.horizon**self.exponent)
        try:
            mixture = solve_optimistic(box.low, box.high, *scaling.apply(costs, self.thresholds, everything))
        except SolverError:
            return Episode.uniform(S, A, length, kind="unsettled")
        value = scaling.invert(mixture.shares @ np.array([column.costs for column in mixture.answers]))[0]
        kind = "optimal" if mixture.feasible else "least excess"
        return Episode(optimistic_policy(mixture, A, self.rng), max_steps=length, kind=kind, value=float(value))

    def config(self) -> dict[str, Any]:
        """The arguments that build an agent like this one, seed aside."""
        own = {"horizon": self.horizon, "exponent": self.exponent, "coef": self.coef, "delta": self.delta}
        return super().config() | own | {"optimistic_cost": self.optimistic_cost}
