r"""UC-CURL (Agarwal, Bai and Aggarwal 2022, arXiv 2109.05439): optimism with tightened thresholds.

Each epoch plays the best policy in the best model of a confidence set, for thresholds tightened by a margin
:math:`K \sqrt{\ln t / t}`. It ends when a pair has been visited as often as in all epochs before. Regret
:math:`\tilde O(\sqrt T)` and no violation in the long run, in ergodic models. PS-CURL, which draws its model from a
posterior, is PSConRL with other parts, listed in the registry.

The confidence set is the box of UCRL-CMDP. If the margin is infeasible even in the best model, smaller margins are
tried (``parts.tightened``), then the thresholds themselves. If these are infeasible, too, the policy of least excess is
played.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from numpy.typing import ArrayLike

from psconrl.errors import SolverError
from psconrl.kernels.arithmetic import special
from psconrl.learning.agent import Agent
from psconrl.learning.argument_checks import as_optimistic_cost
from psconrl.learning.part import Part
from psconrl.learning.parts.ledger import Ledger
from psconrl.learning.parts.radii import Box, Hoeffding, Radius, Scaled
from psconrl.learning.parts.schedules import Doubling, Schedule
from psconrl.learning.parts.tightened import Tightened
from psconrl.learning.posterior.counts import Record
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import Episode
from psconrl.learning.runtime.episode_plan import EpisodePlan
from psconrl.planning.optimism.average import BoxPlan, plan_in_box

USUAL_LEDGER = Tightened()  # an explicit default, since None means no ledger


class UCCURL(Agent):
    """UC-CURL, optimism over a box of models with tightened thresholds. It needs no horizon.

    ``schedule``: when an epoch ends. ``radius``: as in UCRL-CMDP. ``ledger``: the thresholds to plan for, None for the
    true ones. ``optimistic_cost``: as in PSConRL.
    """

    name: ClassVar[str] = "uc-curl"
    table_bytes: ClassVar[float] = 40.0  # counts, frequencies, radii and the planned model
    parts: ClassVar[Mapping[str, Part | None]] = {
        "schedule": Doubling(),
        "radius": Scaled(0.1),
        "ledger": USUAL_LEDGER,
    }
    theory: ClassVar[type[Part] | None] = Hoeffding

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: Thresholds,
        costs: ArrayLike | None = None,
        *,
        schedule: Schedule | None = None,
        radius: Radius | None = None,
        ledger: Ledger | None = USUAL_LEDGER,
        optimistic_cost: float | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.schedule: Schedule = self._part("schedule", schedule)
        self.radius: Radius = self._part("radius", radius)
        self.ledger: Ledger | None = None if ledger is None else self._part("ledger", ledger)
        self.optimistic_cost = as_optimistic_cost(optimistic_cost)

    def begin(self, state: int) -> Episode:
        """Return the best policy in the best model of the box, for the tightest feasible thresholds."""
        max_steps, caps = self.schedule.caps(self.counts)
        try:
            kind, plan, basis = self._best(Box.of(self.counts, self.radius, self._log_term))
        except SolverError:
            return Episode.uniform(self.n_states, self.n_actions, max_steps, caps, "unsettled")
        return Episode(plan.policy(self.n_actions, self.rng), max_steps, caps, kind, plan.value, basis)

    def _best(self, box: Box) -> tuple[str, BoxPlan, EpisodePlan]:
        costs = self._known_or_hopeful_costs()
        if self.ledger is not None:
            for targets in self.ledger.targets(self.thresholds, self.rounds):
                limits = self._checked_limits(targets)
                plan = plan_in_box(box.low, box.high, costs, limits)
                if plan.feasible:
                    return self.ledger.name, plan, EpisodePlan(None, costs, limits, plan.prices)
        plan = plan_in_box(box.low, box.high, costs, self.thresholds)
        basis = EpisodePlan(None, costs, self.thresholds, plan.prices)
        return "optimal" if plan.feasible else "least excess", plan, basis

    def _log_term(self, delta: float) -> float:
        r""":math:`\log(2 S^2 A t / \delta)`: UCRL-CMDP's, with the rounds so far in place of the horizon."""
        S, A = self.n_states, self.n_actions
        return special.log(2 * S * S * A * max(self.rounds, 1) / delta)

    def end(self, record: Record) -> None:
        """Learn from an epoch, and enter it in the ledger."""
        super().end(record)
        self.schedule.ended(record.steps)
        if self.ledger is not None:
            self.ledger.enter(record, self.thresholds)

    def _limits_changed(self, playing: Record | None) -> None:
        """Reset the ledger: debts under the old thresholds are forgotten."""
        if self.ledger is not None:
            self.ledger.begin_again(playing, self.thresholds)
