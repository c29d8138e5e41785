r"""FHA (Chen, Jain and Luo 2022, Algorithm 3): the average criterion approximated by a finite horizon.

The T rounds are split into blocks of H. Each block is an episodic CMDP from its first state, with budgets
:math:`H \tau_i + sp_i`. It is planned optimistically over a confidence set, from which every step may choose a
different model. Regret and violation :math:`\tilde O(T^{2/3})` in weakly communicating models, if the span sp is known.

``planning.optimism.horizon`` solves this by backward recursion, where the occupancy program has H S^2 A variables. The
published code plays the most likely action of its policy; this implementation plays the randomised policy itself.
"""

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.caps import need
from psconrl.errors import AgentError, SolverError
from psconrl.kernels.arithmetic import special
from psconrl.learning.agent import Agent
from psconrl.learning.argument_checks import as_amounts, as_count, as_optimistic_cost
from psconrl.learning.part import Part
from psconrl.learning.parts.radii import Bernstein, Box, Radius, Scaled
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import Episode
from psconrl.model.matrix_product import product
from psconrl.planning.optimism.horizon import solve_horizon
from psconrl.planning.scaling import Scaling


class FHA(Agent):
    """FHA, finite-horizon approximation with optimism. It must know the horizon and a bound on the span of the bias.

    ``H``: length of a block, by default (T / (S^2 A))^(1/3). ``span``: the slack sp_i of each budget, a number or (m,),
    in units of the costs. ``radius``: ``Scaled(coef)`` as in the experiments, or ``Bernstein(delta)``.
    ``optimistic_cost``: as in PSConRL.
    """

    name: ClassVar[str] = "fha"
    theory_constants: ClassVar[tuple[str, ...]] = ("span",)
    table_bytes: ClassVar[float] = 40.0  # counts, frequencies, radii and the planned model
    parts: ClassVar[Mapping[str, Part | None]] = {"radius": Scaled(0.1)}
    theory: ClassVar[type[Part] | None] = Bernstein

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: Thresholds,
        costs: ArrayLike | None = None,
        *,
        horizon: int,
        H: int | None = None,
        span: ArrayLike = 1.0,
        radius: Radius | None = None,
        optimistic_cost: float | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.horizon = as_count(horizon, "horizon")
        self.H = self._default_block() if H is None else as_count(H, "H")
        self._check_sizes()
        need(8.0 * self.H * self.n_states**2, f"a plan for blocks of {self.H:,} rounds", AgentError)
        self.span = as_amounts(span, "span", self.thresholds.size)
        self.radius: Radius = self._part("radius", radius)
        self.optimistic_cost = as_optimistic_cost(optimistic_cost)

    def _check_sizes(self) -> None:
        """Check the sizes, for subclasses that support small problems only."""

    def _default_block(self) -> int:
        rounds_a_triple = self.horizon / (self.n_states**2 * self.n_actions)
        return max(1, math.ceil(special.cbrt(rounds_a_triple)))

    def _box(self) -> Box:
        return Box.of(self.counts, self.radius, self._log_term)

    def _log_term(self, delta: float) -> float:
        r""":math:`\log(2 S A T / \delta)`."""
        return special.log(2 * self.n_states * self.n_actions * self.horizon / delta)

    def begin(self, state: int) -> Episode:
        """Return the best policy for a block from this state, in the best model of the box."""
        S, A = self.n_states, self.n_actions
        box, costs = self._box(), self._known_or_hopeful_costs()
        budget = self.thresholds + self.span / self.H
        everything = np.ones((S, A), dtype=bool)
        scaling = Scaling.of(costs, budget, everything)
        try:
            mixture, policy = solve_horizon(box.low, box.high, *scaling.apply(costs, budget, everything), self.H, state)
        except SolverError:
            return Episode.uniform(S, A, self.H, kind="unsettled")
        value = scaling.invert(product(mixture.shares, [column.costs for column in mixture.answers]))[0]
        kind = "optimal" if mixture.feasible else "least excess"
        return Episode(policy, max_steps=self.H, kind=kind, value=float(value))
