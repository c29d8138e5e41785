r"""UCRL2 (Jaksch, Ortner and Auer 2010): the best policy in the best model of L1 balls, without constraints.

At the start of an episode, after t - 1 rounds, the ball of a pair with N visits has radius :math:`\sqrt{14 S \log(2 A t
/ \delta) / \max(1, N)}` around the frequencies; if costs are learned, their means are lowered by :math:`\sqrt{7 \log(2
S A t / \delta) / (2 \max(1, N))}` ranges. The episode plays the policy of least average cost, and ends once a pair has
been visited as often as before. Regret :math:`\tilde O(D S \sqrt{A T})` in communicating models of diameter D.
Constraints are ignored: a sanity check where none binds.

The paper plans by extended value iteration up to :math:`1/\sqrt t`; ``planning.optimism.ball`` is exact.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats
from psconrl.errors import SolverError
from psconrl.learning.agent import Agent
from psconrl.learning.argument_checks import as_failure_probability, as_positive
from psconrl.learning.part import Part
from psconrl.learning.parts.l1_region import ball_radii, lowest_objective
from psconrl.learning.parts.radii import empirical
from psconrl.learning.parts.schedules import Doubling, Schedule
from psconrl.learning.posterior.counts import Record
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import Episode
from psconrl.planning.optimism.ball import plan_in_balls


class UCRL2(Agent):
    """UCRL2, optimism over L1 balls; constraints are ignored. It needs no horizon.

    ``bonus``: a factor of all radii, 1 as published. ``delta``: failure probability. ``schedule``: when an episode
    ends. ``ranges`` (m+1, 2): the lowest and highest value of every cost, if costs are learned; by default
    0 and 1, where the objective's grow with what was met.
    """

    name: ClassVar[str] = "ucrl2"
    table_bytes: ClassVar[float] = 40.0  # counts, frequencies, radii and the planned model
    parts: ClassVar[Mapping[str, Part | None]] = {"schedule": Doubling()}

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: Thresholds,
        costs: ArrayLike | None = None,
        *,
        bonus: float = 1.0,
        delta: float = 0.05,
        schedule: Schedule | None = None,
        ranges: ArrayLike | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.bonus, self.delta = as_positive(bonus, "bonus"), as_failure_probability(delta)
        self.schedule: Schedule = self._part("schedule", schedule)
        self._scale_costs(ranges)

    def begin(self, state: int) -> Episode:
        """Return the best policy in the best model of the balls."""
        max_steps, caps = self.schedule.caps(self.counts)
        try:
            plan = plan_in_balls(empirical(self.counts), self._radius(), self._optimistic_objective())
        except SolverError:
            return Episode.uniform(self.n_states, self.n_actions, max_steps, caps, "unsettled")
        return Episode(plan.policy, max_steps, caps, "unconstrained", plan.gain)

    def _radius(self) -> Floats:
        """Return the L1 radius of the ball of every pair, (S*A,); an untried pair may have any distribution."""
        return ball_radii(self.counts, self.rounds, self.delta, self.bonus)

    def _optimistic_objective(self) -> Floats:
        """Return the known objective (S, A), or lower bounds of the learned one."""
        if self.costs is not None:
            return self.costs[0]
        return lowest_objective(self.counts, self._objective_range(), self.rounds, self.delta, self.bonus)

    def end(self, record: Record) -> None:
        """Learn from an episode."""
        super().end(record)
        self.schedule.ended(record.steps)
