"""Status and certificate of a plan: what it claims and the proof."""

import enum
from dataclasses import dataclass

from psconrl.base.arrays import Floats


class Status(enum.Enum):
    """Outcome of planning; ``advice`` explains it to the user."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    NOT_ATTAINED = "not attained"
    STOPPED = "stopped"
    UNCERTIFIED = "uncertified"

    @property
    def advice(self) -> str:
        """One sentence for the user."""
        return _ADVICE[self]


_ADVICE = {
    Status.OPTIMAL: "The policy meets every threshold, and no policy that does so is better.",
    Status.INFEASIBLE: "No policy meets all thresholds.",
    Status.NOT_ATTAINED: "The bound mixes classes of states that this policy cannot mix; the note says what it does.",
    Status.STOPPED: "The search was stopped: the policy meets every threshold, but may miss the optimum by the gap.",
    Status.UNCERTIFIED: "Rounding spoiled the proof: the averages are exact, but a better policy may exist.",
}


@dataclass(frozen=True, eq=False)
class Certificate:
    """A proof that can be checked with one product P h. All figures are in the user's units, as costs.

    For any multipliers and potential h, ``lower`` bounds the objective of every policy within the thresholds. For an
    infeasible model a positive ``margin`` shows that no policy keeps the weighted excess at or below zero (Farkas).
    """

    lower: float  # no policy within the thresholds has a smaller average objective
    upper: float  # exact average objective of the plan's policy
    excess: Floats  # (m,) averages of the policy minus thresholds; feasible if <= 0
    flow_residual: float  # L1 distance of the occupancy from stationarity
    policy_error: float  # largest difference between averages of occupancy and policy, in ``certificate.units``
    dual_residual: float  # loss of a multichain proof whose gains are not exactly subharmonic
    margin: float  # of the infeasibility proof; 0 if none is claimed
    tolerance: float  # largest gap that counts as closed; if infeasible, the margin must exceed it
    limit_tolerances: Floats  # (m,) largest excess over each threshold that counts as rounding
    holds: bool  # whether the status of the plan is proven, within tolerance

    @property
    def gap(self) -> float:
        """Upper minus lower bound."""
        return self.upper - self.lower
