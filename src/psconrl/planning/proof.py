"""What a plan claims, and the proof of it."""

import enum
from dataclasses import dataclass

from psconrl.arrays import Floats


class Status(enum.Enum):
    """How a plan ended; the text of each says what to do about it."""

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
    Status.OPTIMAL: "The policy meets every threshold and no policy costs less.",
    Status.INFEASIBLE: "No policy meets all thresholds.",
    Status.NOT_ATTAINED: "The bound mixes classes of states that this policy cannot; the note says what it does.",
    Status.STOPPED: "The search was stopped: the policy meets every threshold, and the gap says what may be missing.",
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
