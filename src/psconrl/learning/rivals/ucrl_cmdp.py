r"""UCRL-CMDP (Singh, Gupta and Shroff 2020): the best policy in the best model of a confidence box.

Episodes have fixed length :math:`\lceil T^\alpha \rceil`. Regret and violation :math:`\tilde O(T^{2/3})` in ergodic
models. The PSConRL paper could run it on its smallest grid only, since it solved the joint program over policies and
models as a non-linear one; ``planning.optimism.average`` solves it exactly in milliseconds.

In a model that is not ergodic the best mixture may have several recurrent classes. Each episode then plays one of its
columns, drawn at random.
"""

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from numpy.typing import ArrayLike

from psconrl.errors import SolverError
from psconrl.kernels.arithmetic import special
from psconrl.learning.agent import Agent
from psconrl.learning.argument_checks import as_count, as_fraction, as_optimistic_cost
from psconrl.learning.part import Part
from psconrl.learning.parts.radii import Box, Hoeffding, Radius, Scaled
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import Episode
from psconrl.learning.runtime.episode_plan import EpisodePlan
from psconrl.planning.optimism.average import plan_in_box

WHOLE_LENGTH_TOL = 1e-12  # so that a power that is an integer up to rounding errors is not rounded up


class UCRLCMDP(Agent):
    """UCRL-CMDP, optimism over a box of models. It must know the horizon.

    ``exponent``: episodes last T^exponent rounds (1/3 by the paper's analysis, recalled from memory). ``radius``:
    ``Scaled(coef)`` as in the experiments, or ``Hoeffding(delta)``. ``optimistic_cost``: as in PSConRL.
    """

    name: ClassVar[str] = "ucrl-cmdp"
    table_bytes: ClassVar[float] = 40.0  # counts, frequencies, radii and the planned model
    parts: ClassVar[Mapping[str, Part | None]] = {"radius": Scaled(0.1)}
    theory: ClassVar[type[Part] | None] = Hoeffding

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: Thresholds,
        costs: ArrayLike | None = None,
        *,
        horizon: int,
        exponent: float = 1 / 3,
        radius: Radius | None = None,
        optimistic_cost: float | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.horizon, self.exponent = as_count(horizon, "horizon"), as_fraction(exponent, "exponent")
        self.radius: Radius = self._part("radius", radius)
        self.optimistic_cost = as_optimistic_cost(optimistic_cost)

    def begin(self, state: int) -> Episode:
        """Return the best policy in the best model of the box."""
        box = Box.of(self.counts, self.radius, self._log_term)
        power = special.exp(self.exponent * special.log(self.horizon))
        length = math.ceil(power * (1.0 - WHOLE_LENGTH_TOL))
        try:
            costs = self._known_or_hopeful_costs()
            plan = plan_in_box(box.low, box.high, costs, self.thresholds)
        except SolverError:
            return Episode.uniform(self.n_states, self.n_actions, length, kind="unsettled")
        kind = "optimal" if plan.feasible else "least excess"
        policy = plan.policy(self.n_actions, self.rng)
        basis = EpisodePlan(None, costs, self.thresholds, plan.prices)
        return Episode(policy, length, None, kind, plan.value, basis)

    def _log_term(self, delta: float) -> float:
        r""":math:`\log(2 S^2 A T / \delta)`."""
        S, A = self.n_states, self.n_actions
        return special.log(2 * S * S * A * self.horizon / delta)
