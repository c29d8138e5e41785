"""The verdict on a plan of a tiny model, in rational arithmetic: right, unproven or wrong, with a reason.

What a plan claims is compared with the optimum of the reference solver (``exact``): its status, the averages of the
policy or mixture that it returns, every threshold, and the bound of its certificate. The tolerances are those that the
planner states (``planning.tolerances``), in its units. Without a reference, for models with too many policies, the
certificate is recomputed: policy and bound in rational arithmetic prove each other.
"""

import re
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from exact import (
    averages,
    in_rationals,
    multipliers,
    optimum,
    points,
    rational_bound,
    rational_bound_by_components,
    rationals,
)
from exact_attainment import is_attained
from exact_simplex import ZERO
from psconrl import Status
from psconrl.planning.proof.certificate_units import excess_units, units
from psconrl.planning.proof.proof_files import plain_model
from psconrl.planning.restriction import Restriction
from psconrl.planning.tolerances import LARGEST_PRICES, PROVEN_EXCESS, PROVEN_GAP, PROVEN_POLICY

RIGHT, WITHIN, INFEASIBLE, NOT_ATTAINED = "right", "within tolerance", "rightly infeasible", "rightly not attained"
UNPROVEN, WRONG, ESCAPED = "unproven", "WRONG", "ESCAPED"
KINDS = (RIGHT, WITHIN, INFEASIBLE, NOT_ATTAINED, UNPROVEN, WRONG, ESCAPED)
ROUNDING = Fraction(1, 10**12)  # times the unit of a figure: what is closer is right, not only within tolerance
UNDERFLOW = 8 * Fraction(5e-324)  # rounding of numbers near the smallest double
ULPS = 32 * np.finfo(float).eps  # times the costs that a policy meets: the rounding of its averages


@dataclass(frozen=True)
class Verdict:
    """What a plan turned out to be, and why."""

    kind: str
    reason: str = ""
    detail: str = ""

    @property
    def is_failure(self) -> bool:
        """Whether the plan is wrong or there is none."""
        return self.kind in (WRONG, ESCAPED)


class Reference:
    """The exact optimum of a model, from its deterministic policies."""

    def __init__(self, cmdp):
        self.points = points(cmdp)
        self.best, self.excess = optimum(cmdp, self.points)


class Judge:
    """Compares one plan with the reference; the first claim that fails decides."""

    def __init__(self, cmdp, plan, reference):
        self.cmdp, self.plan, self.reference = cmdp, plan, reference
        reached = Restriction(cmdp)
        part, occupancy = reached.apply(), np.ascontiguousarray(plan.occupancy[reached.states])
        unit = units(part, occupancy)
        self.unit = rationals(unit)
        self.excess_unit = rationals(excess_units(part, occupancy, unit))
        met = np.einsum("sa,isa->i", plan.occupancy, np.abs(cmdp.costs))
        self.ulps = rationals(ULPS * np.maximum(met, np.abs(plan.costs)))
        self.multipliers = multipliers(plan)
        objective = ZERO if plan.status is Status.INFEASIBLE else Fraction(1)
        self.size = sum((w * u for w, u in zip([objective, *self.multipliers], self.unit, strict=True)), ZERO)
        self.exact = True  # whether no deviation so far is larger than rounding
        self.averages = played_averages(cmdp, plan)

    def verdict(self):
        """Return the verdict on the plan."""
        check = {
            Status.OPTIMAL: self._optimal,
            Status.INFEASIBLE: self._infeasible,
            Status.NOT_ATTAINED: self._not_attained,
            Status.UNCERTIFIED: self._unproven,
        }[self.plan.status]
        return self._reported() or check()

    def _off(self, deviation, tolerance, unit):
        """Whether a deviation is beyond its tolerance; remember if it is more than rounding."""
        self.exact &= deviation <= ROUNDING * unit + UNDERFLOW
        return deviation > Fraction(tolerance) * unit + UNDERFLOW

    def _wrong(self, reason, deviation=None):
        return Verdict(WRONG, reason, "" if deviation is None else f"{float(deviation):.3g}")

    def _reported(self):
        """The averages that the plan reports, under any status."""
        if not np.isfinite(self.plan.costs).all():
            return self._wrong("reported averages are not finite")
        for i, (given, exact) in enumerate(zip(self.plan.costs, self.averages, strict=True)):
            away = abs(Fraction(float(given)) - exact)
            if self._off(away - self.ulps[i], PROVEN_POLICY, self.unit[i]):
                return self._wrong(f"reported average differs from that of the policy ({self.plan.status.value})", away)
        if self.plan.value != self.plan.costs[0]:
            return self._wrong("value is not the average objective")
        return None

    def _bound(self):
        """The lower bound that the plan reports, against the optimum and the recomputed certificate."""
        lower = self.plan.certificate.lower
        if np.isnan(lower) or lower == -np.inf:
            return None
        given = Fraction(lower) if np.isfinite(lower) else None
        best = None if self.reference is None else self.reference.best
        if best is not None:
            away = Fraction(10**9) if given is None else given - best
            if self._off(away, PROVEN_GAP, self.size):
                return self._wrong(f"reported bound is above the optimum ({self.plan.status.value})", away)
        return None

    def _excess(self):
        """The averages of what is played, against the thresholds."""
        for i, tau in enumerate(rationals(self.cmdp.thresholds)):
            over = self.averages[i + 1] - tau
            if self._off(over, PROVEN_EXCESS, self.excess_unit[i]):
                return self._wrong("exceeds a threshold", over)
        return None

    def _optimal(self):
        wrong = self._excess() or self._bound()
        if wrong:
            return wrong
        best = None if self.reference is None else self.reference.best
        largest_gap = min(self.size, Fraction(LARGEST_PRICES) * self.unit[0])
        if best is not None:
            above = self.averages[0] - best
            if self._off(above, PROVEN_GAP, largest_gap):
                return self._wrong("not the optimum", above)
            # At a jump of the optimum, rounding of an average decides on which side it is.
            rounded = all(
                x - tau <= ulps
                for x, tau, ulps in zip(self.averages[1:], rationals(self.cmdp.thresholds), self.ulps[1:], strict=True)
            )
            if self._off(-above, PROVEN_EXCESS, self.size) and not rounded:
                return self._wrong(
                    "below the optimum: thresholds are exceeded by much in units of the objective", above
                )
        elif self.reference is not None:
            self.exact = False  # infeasible, by less than the tolerance that the policy keeps
        proven = self._recomputed(1)
        if proven is None:
            return self._wrong("the certificate has no bound")
        missing = self.averages[0] - proven
        self.exact &= missing <= ROUNDING * largest_gap
        if self._off(missing - self._rounded_terms(), 2 * PROVEN_GAP, largest_gap):
            return self._wrong("the certificate does not prove the value", missing)
        return Verdict(RIGHT if self.exact else WITHIN, self._why_a_mixture())

    def _why_a_mixture(self):
        """Say whether a plan that is a mixture could have been a stationary policy."""
        if self.plan.mixture is None:
            return ""
        if self.reference is None or self.reference.best is None:
            return "mixture"
        needless = is_attained(self.cmdp, self.reference.best)
        return "mixture, although a stationary policy attains the optimum" if needless else "mixture"

    def _infeasible(self):
        if self.reference is not None and self.reference.best is not None:
            return self._wrong("infeasible, but some policy meets all thresholds")
        margin = self._recomputed(0)
        if margin is None or margin <= 0:
            return self._wrong("the certificate does not prove infeasibility", margin)
        return self._explained() or Verdict(INFEASIBLE)

    def _explained(self):
        """The least average of every constrained cost alone, and with one threshold the excess of the policy."""
        if self.reference is None:
            return None
        alone = [min(p[i + 1] for p in self.reference.points) for i in range(self.cmdp.n_constraints)]
        scales = plain_model(self.cmdp).scales[1:]  # of plans that minimise one cost alone
        for i, (given, exact) in enumerate(zip(self.plan.infeasibility.alone, alone, strict=True)):
            away = abs(Fraction(float(given)) - exact)
            if away - self.ulps[i + 1] > Fraction(PROVEN_POLICY) * max(self.unit[i + 1], scales[i].unit(exact)):
                return self._wrong("explanation: the least average of a cost alone", away)
        if len(alone) == 1 and self.averages[1] - alone[0] > Fraction(PROVEN_POLICY) * self.unit[1]:
            return self._wrong("the policy of an infeasible plan has not the least excess", self.averages[1] - alone[0])
        return None

    def _not_attained(self):
        wrong = self._bound()
        if wrong or self.reference is None:
            return wrong or Verdict(UNPROVEN, "not attained, without a reference")
        if self.reference.best is None:
            return self._wrong("not attained, but infeasible")
        below = self.reference.best - Fraction(self.plan.certificate.lower)
        if self._off(below, PROVEN_GAP, self.size):
            return self._wrong("not attained, and the bound is below the optimum", below)
        if is_attained(self.cmdp, self.reference.best):
            return self._wrong("not attained, but some stationary policy attains the optimum")
        return Verdict(NOT_ATTAINED)

    def _unproven(self):
        return self._bound() or Verdict(UNPROVEN, self._what_is_missing())

    def _what_is_missing(self):
        """Name the part of the proof that fails."""
        proof = self.plan.certificate
        missing = []
        if any(x > Fraction(PROVEN_EXCESS) * u for x, u in zip(rationals(proof.excess), self.excess_unit, strict=True)):
            missing.append("excess")
        if not np.isfinite(proof.lower):
            missing.append("no bound")
        elif abs(proof.gap) > PROVEN_GAP * float(min(self.size, Fraction(LARGEST_PRICES) * self.unit[0])):
            missing.append("gap")
        if proof.policy_error > PROVEN_POLICY:
            missing.append("policy error")
        truth = ""
        if self.reference is not None:
            truth = "feasible: " if self.reference.best is not None else "infeasible: "
        note = re.sub(r"[-+]?\d[\d.e+-]*", "#", self.plan.note)
        return truth + " and ".join(missing or ["unknown"]) + (f" ({note})" if note else "")

    def _rounded_terms(self):
        """The rounding of a reduced cost, whose terms may be much larger than their sum."""
        largest = np.abs(self.cmdp.costs).max(axis=(1, 2)) + np.abs(np.append(0.0, self.cmdp.thresholds))
        terms = largest[0] + self.plan.multipliers @ largest[1:] + np.abs(self.plan.potential).max()
        return Fraction(float(np.finfo(float).eps * terms))

    def _recomputed(self, objective):
        """The bound of the certificate without rounding; None if it has none."""
        plan = self.plan
        if in_rationals(plan):
            several = min(plan.exact.gains) < max(plan.exact.gains)
        elif not (np.isfinite(plan.potential).all() and np.isfinite(plan.low_potential).all()):
            return None
        else:
            several = plan.gains is not None
        if min(multipliers(plan), default=ZERO) < 0:
            return None
        bound = rational_bound_by_components if several else rational_bound
        return bound(self.cmdp, plan, objective)


def played_averages(cmdp, plan):
    """The exact averages of what a plan plays: its mixture if it has one, else its policy."""
    if plan.mixture is None:
        return averages(cmdp, plan.policy)
    total = [ZERO] * len(cmdp.costs)
    shares = rationals(plan.mixture.shares)
    for share, actions in zip(shares, plan.mixture.policies, strict=True):
        one = averages(cmdp, np.eye(cmdp.n_actions)[actions])
        total = [x + share * y / sum(shares, ZERO) for x, y in zip(total, one, strict=True)]
    return total


def judged(cmdp, plan, reference):
    """Return the verdict on a plan; ``reference`` is None if the model has too many policies for one."""
    return Judge(cmdp, plan, reference).verdict()
