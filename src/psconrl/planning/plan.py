"""The one return type of every planner: what to do, what it costs, what the limits are worth, and the proof."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.errors import InfeasibleError, PolicyError
from psconrl.model.names import Names
from psconrl.planning import plan_files
from psconrl.planning.deployable import Deployable
from psconrl.planning.infeasibility import Infeasibility
from psconrl.planning.proof import Certificate, Status
from psconrl.planning.tolerances import PROVEN_EXCESS


@dataclass(frozen=True, eq=False)
class Plan(Deployable):
    """A policy with its exact averages, the price of every threshold, and a certificate.

    ``value`` is the average objective in the user's sense (a reward if the model was built from rewards);
    ``costs[i]`` the average of ``cmdp.costs[i]``. ``multipliers[i]`` is what one more unit of threshold i is worth, in
    units of the objective. If infeasible, the policy has the least possible excess and the multipliers are Farkas'.
    ``act`` plays it; ``save`` and ``Plan.load`` keep it; ``to_csv`` and ``to_json`` write it for other programs.
    """

    status: Status
    value: float
    costs: Floats  # (m+1,)
    thresholds: Floats  # (m,) the limits that were planned for
    policy: Floats  # (S, A)
    occupancy: Floats  # (S, A)
    multipliers: Floats  # (m,)
    potential: Floats  # (S,) the h of the certificate
    low_potential: Floats  # (S,) to be added to it: what one double a state cannot hold; mostly zero
    gains: Floats | None  # (S,) the g of a multichain certificate
    certificate: Certificate
    method: str  # "mixture" or "lp"
    note: str  # what was done beyond the ordinary; empty if nothing
    infeasibility: Infeasibility | None
    columns: tuple[Ints, ...]  # deterministic policies to start a later plan from
    names: Names  # of states, actions and costs

    @property
    def feasible(self) -> bool:
        """Are there policies within the thresholds?"""
        return self.status is not Status.INFEASIBLE

    @property
    def keeps_limits(self) -> bool:
        """Is the policy within the thresholds? An optimal one is; one that is not attained may not be."""
        allowed = PROVEN_EXCESS * np.abs(self.thresholds)
        return self.status is Status.OPTIMAL or bool((self.certificate.excess <= allowed).all())

    @property
    def gap(self) -> float:
        """Proven distance from the optimum, in units of the objective; nan if infeasible."""
        return self.certificate.gap if self.feasible else float("nan")

    @property
    def randomised_states(self) -> Ints:
        """Visited states in which the policy tosses a coin; at most m are needed."""
        several = (self.policy > 0).sum(axis=1) > 1
        return np.flatnonzero(several & (self.occupancy.sum(axis=1) > 0))

    def required(self) -> "Plan":
        """This plan, or an error if it is infeasible: for code that cannot do without one."""
        if not self.feasible:
            raise InfeasibleError(str(self.infeasibility or "no policy meets the thresholds"))
        return self

    def act(self, state: Any, rng: np.random.Generator | None = None) -> Any:
        """The action in a state, given by name or number; a plan that breaks the limits has to be asked otherwise."""
        if not self.feasible:
            why = self.infeasibility or "no policy meets the thresholds."
            raise InfeasibleError(f"{why} The policy of least excess is in plan.policy")
        if not self.keeps_limits:
            raise PolicyError(
                f"the policy of this plan, which is {self.status.value}, exceeds its limits by "
                f"{self.certificate.excess.max():.3g}; see plan.note. It is in plan.policy"
            )
        return super().act(state, rng)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Keep the plan in an ``.npz`` file, written whole or not at all."""
        plan_files.save(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "Plan":
        """A plan that was saved."""
        return Plan(**plan_files.load(path))

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write everything for other programs, in names and units: what ``psconrl solve --json`` prints."""
        plan_files.write_json(self, path)

    def record(self) -> dict[str, Any]:
        """The same as plain data; what is not a number becomes None."""
        return plan_files.record(self)

    def __repr__(self) -> str:
        costs = ", ".join(f"{c + 0.0:.6g}" for c in (self.names.signs * self.costs)[1:])
        return f"Plan({self.status.value}, value={self.value:.8g}, costs=[{costs}], gap={abs(self.gap):.1e})"
