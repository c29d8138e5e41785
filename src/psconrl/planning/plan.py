"""The one return type of every planner: what to do, what it costs, what the limits are worth, and the proof."""

import enum
from dataclasses import dataclass

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.errors import InfeasibleError
from psconrl.planning.infeasibility import Infeasibility


class Status(enum.Enum):
    """How a plan ended; the text of each says what to do about it."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    NOT_ATTAINED = "not attained"
    UNCERTIFIED = "uncertified"

    @property
    def advice(self) -> str:
        """One sentence for the user."""
        return _ADVICE[self]


_ADVICE = {
    Status.OPTIMAL: "The policy meets every threshold and no policy costs less.",
    Status.INFEASIBLE: "No policy meets all thresholds.",
    Status.NOT_ATTAINED: "The bound mixes classes of states that this policy cannot; the note says what it does.",
    Status.UNCERTIFIED: "Rounding spoiled the proof: the averages are exact, but a better policy may exist.",
}


@dataclass(frozen=True, eq=False)
class Certificate:
    """A proof that anybody can check with one product P h. All figures are in the user's units, as costs.

    For any multipliers and potential h, ``lower`` bounds the objective of every policy within the thresholds; for an
    infeasible model a positive ``margin`` shows that no policy keeps the weighted excess at or below zero (Farkas).
    """

    lower: float  # no policy within the thresholds has a smaller average objective
    upper: float  # the exact average objective of the plan's policy
    excess: Floats  # (m,) by how much the policy's averages exceed the thresholds; <= 0 is within
    flow_residual: float  # L1 distance of the occupancy from a stationary law
    policy_error: float  # largest difference, in the units of ``certificate.units``, between occupancy and policy
    dual_residual: float  # what the gains of a multichain proof may lose on the way, not being quite subharmonic
    margin: float  # of the infeasibility proof; 0 if none is claimed
    holds: bool  # is the claim of the plan's status proven, within tolerance?

    @property
    def gap(self) -> float:
        """Upper minus lower bound."""
        return self.upper - self.lower


@dataclass(frozen=True, eq=False)
class Plan:
    """A policy with its exact averages, the price of every threshold, and a certificate.

    ``value`` is the average objective in the user's sense (a reward if the model was built from rewards);
    ``costs[i]`` the average of ``cmdp.costs[i]``. ``multipliers[i]`` is what one more unit of threshold i is worth, in
    units of the objective. If infeasible, the policy has the least possible excess and the multipliers are Farkas'.
    """

    status: Status
    value: float
    costs: Floats  # (m+1,)
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

    @property
    def gap(self) -> float:
        """Proven distance from the optimum, in units of the objective; nan if infeasible."""
        return float("nan") if self.status is Status.INFEASIBLE else self.certificate.gap

    @property
    def randomised_states(self) -> Ints:
        """Visited states in which the policy tosses a coin; at most m are needed."""
        several = (self.policy > 0).sum(axis=1) > 1
        return np.flatnonzero(several & (self.occupancy.sum(axis=1) > 0))

    def required(self) -> "Plan":
        """This plan, or an error if it is infeasible: for code that cannot do without one."""
        if self.infeasibility is not None:
            raise InfeasibleError(str(self.infeasibility))
        return self

    def __repr__(self) -> str:
        costs = ", ".join(f"{c:.6g}" for c in self.costs[1:])
        return f"Plan({self.status.value}, value={self.value:.8g}, costs=[{costs}], gap={abs(self.gap):.1e})"
