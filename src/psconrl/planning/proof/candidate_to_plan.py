"""From a candidate to a certified plan: named steps, tried in order until one of them has an answer.

A step takes a case, which is a candidate with all that is needed to check it. It returns a plan, or None if it does not
apply. ``STEPS`` lists them. The last one always has an answer: a plan about which nothing is proven. Whether a gap is
small enough to be called optimal is decided in ``certify``.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.kernels.chains.occupancy import one_hot
from psconrl.markov.evaluation import Evaluation, evaluate_policy
from psconrl.model.cmdp import CMDP
from psconrl.planning.candidate import Candidate, Dual, without_residue
from psconrl.planning.initial_randomisation import initially_randomised
from psconrl.planning.plan import Plan
from psconrl.planning.problem import Problem
from psconrl.planning.proof.certificate import Certificate, Status
from psconrl.planning.proof.certify import certificate_of
from psconrl.planning.proof.corrected_potential import corrected, is_coarse
from psconrl.planning.repair import between_classes, reaches, repairs
from psconrl.planning.settling import rounds_to_settle
from psconrl.planning.tolerances import PROVEN_POLICY


class Case:
    """A candidate for a model, and whether the search for it was stopped by the user."""

    def __init__(self, part: CMDP, problem: Problem, candidate: Candidate, stopped: bool) -> None:
        self.part, self.problem, self.candidate, self.stopped = part, problem, candidate, stopped
        self.dual: Dual = problem.scaling.invert_dual(candidate.dual, candidate.feasible)  # in the user's units
        self.exact: Evaluation = evaluate_policy(part, candidate.policy)
        status = Status.OPTIMAL if candidate.feasible else Status.INFEASIBLE
        self.found = self.judged(status, candidate.policy, candidate.occupancy, candidate.note)  # as it claims to be

    @cached_property
    def is_split(self) -> bool:
        """Whether the occupancy attains the bound, but the policy does not move between its classes."""
        found, candidate = self.found, self.candidate
        if found.certificate.holds or not candidate.feasible:
            return False
        several = len(self.exact.classes) > 1 or candidate.dual.gains is not None
        return several and reaches(self.part, candidate.occupancy, self.dual.multipliers, found.certificate.lower)

    @property
    def is_elsewhere(self) -> bool:
        """Whether infeasibility is proven, but the policy does not have the occupancy of the least excess."""
        if self.candidate.feasible:
            return False
        proof = self.found.certificate
        return proof.holds and proof.policy_error > PROVEN_POLICY

    def judged(self, status: Status, policy: Floats, occupancy: Floats | None = None, note: str = "") -> Plan:
        """Evaluate a policy and check it; the occupancy is the policy's own unless another one is given."""
        part, candidate = self.part, self.candidate
        exact = self.exact if policy is candidate.policy else evaluate_policy(part, policy)
        occupancy = exact.occupancy if occupancy is None else occupancy
        proof = certificate_of(part, status, occupancy, self.dual, exact)
        return Plan(
            status, exact.value, exact.costs, part.thresholds, policy, occupancy, *self.dual, proof, candidate.method,
            note, None, candidate.columns, part.names, settles=rounds_to_settle(part, exact),
        )  # fmt: skip


def as_found(case: Case) -> Plan | None:
    """The candidate, if its proof holds."""
    return case.found if case.found.certificate.holds and not case.is_elsewhere else None


def best_so_far(case: Case) -> Plan | None:
    """The first policy of a stopped search that is proven to meet the thresholds.

    Early policies may have no state in common. A policy between them then differs from what the search expected, and
    one of them alone may do.
    """
    if not case.stopped or not case.candidate.feasible or case.is_split:
        return None
    note = "; ".join(filter(None, (case.candidate.note, "stopped by hand")))
    columns = (one_hot(column, case.part.n_actions) for column in case.candidate.columns)
    for policy in (case.candidate.policy, *columns):
        outcome = case.judged(Status.STOPPED, policy, note=note)
        if outcome.certificate.holds:
            return outcome
    return None


def repaired(case: Case) -> Plan | None:
    """The first repair of a split policy that is optimal, or the last one, which does not attain the bound."""
    if not case.is_split:
        return None
    outcome = case.found
    for policy, occupancy, note in repairs(
        case.part, case.problem, case.candidate, case.exact, case.found.certificate.lower
    ):
        outcome = case.judged(Status.OPTIMAL, policy, occupancy, note)
        if outcome.certificate.holds:
            lacks_nothing = case.candidate.dual.gains is not None
            return replace(outcome, note=case.candidate.note) if lacks_nothing else outcome
    return case.judged(Status.NOT_ATTAINED, outcome.policy, note=outcome.note)


def drawn_between_regimes(case: Case) -> Plan | None:
    """The policy as it is, if its mixture attains the bound but one double cannot hold how rarely it must switch.

    The policies of the mixture are in regimes that are never left in practice. A run draws one of them, unless one of
    them alone attains the bound, as with ties.
    """
    found, candidate = case.found, case.candidate
    several = candidate.feasible and candidate.shares is not None and candidate.shares.size > 1
    if not several or found.certificate.policy_error <= PROVEN_POLICY:
        return None
    if not reaches(case.part, candidate.occupancy, case.dual.multipliers, found.certificate.lower):
        return None
    for column in candidate.columns:
        alone = case.judged(Status.OPTIMAL, one_hot(column, case.part.n_actions), note=candidate.note)
        if alone.certificate.holds:
            return alone
    note = "the bound needs switches between regimes that are rarer than a double can express"
    return replace(found, status=Status.NOT_ATTAINED, note=note)


def least_excess_as_played(case: Case) -> Plan | None:
    """The policy of least excess of a multichain model, with the occupancy that it has itself."""
    if not case.is_elsewhere or case.candidate.dual.gains is None or case.candidate.shares is not None:
        return None
    return case.judged(Status.INFEASIBLE, case.candidate.policy, note=case.candidate.note)


def least_excess_between_classes(case: Case) -> Plan | None:
    """A policy near the least excess that moves between the classes that this needs."""
    if not case.is_elsewhere or case.candidate.dual.gains is not None or len(case.exact.classes) < 2:
        return None
    return case.judged(Status.INFEASIBLE, *between_classes(case.part, case.candidate.occupancy))


def least_excess_as_found(case: Case) -> Plan | None:
    """The proof of infeasibility, with the policy as it is."""
    return case.found if case.is_elsewhere else None


def with_corrected_potential(case: Case) -> Plan | None:
    """The candidate, proven by a potential of one of its policies that belongs to the shadow prices as rounded."""
    part, candidate, found = case.part, case.candidate, case.found
    if (
        not candidate.feasible
        or case.dual.gains is not None
        or not is_coarse(part, case.dual, found.certificate.tolerance)
    ):
        return None
    for actions in candidate.columns:
        dual = corrected(part, case.dual, actions, float(case.exact.costs[0]))
        if dual is not None:
            proof = certificate_of(part, Status.OPTIMAL, candidate.occupancy, dual, case.exact)
            if proof.holds:
                return replace(found, potential=dual.potential, low_potential=dual.low_potential, certificate=proof)
    return None


def uncertified(case: Case) -> Plan | None:
    """The candidate, without a proof."""
    return replace(case.found, status=Status.UNCERTIFIED)


STEPS: tuple[Callable[[Case], Plan | None], ...] = (
    as_found,
    best_so_far,
    repaired,
    drawn_between_regimes,
    least_excess_as_played,
    least_excess_between_classes,
    least_excess_as_found,
    with_corrected_potential,
    uncertified,
)


def certified(part: CMDP, problem: Problem, candidate: Candidate, *, stopped: bool = False) -> Plan:
    """Translate a candidate to the user's units, evaluate its policy, and return the plan with what is proven of it.

    ``stopped``: the user stopped the search, so that the gap may be open.
    """
    case = Case(part, problem, candidate, stopped)
    found = next(filter(None, (step(case) for step in STEPS)))
    needs_mixture = found.status is Status.NOT_ATTAINED or case.is_elsewhere
    return initially_randomised(part, candidate, found) if needs_mixture else found


def certified_as_played(part: CMDP, problem: Problem, candidate: Candidate, *, stopped: bool = False) -> Plan:
    """Return the certified plan, without shares that are rounding residue if it is proven without them.

    No run plays a share of 1e-16, but such a share may join classes that the policy never moves between, and make units
    so small that no proof holds.
    """
    found = certified(part, problem, candidate, stopped=stopped)
    clean = without_residue(candidate) if candidate.feasible and found.mixture is None else None
    if clean is None:
        return found
    cleaned = certified(part, problem, clean, stopped=stopped)
    return cleaned if cleaned.status is Status.OPTIMAL else found


def unevaluated(part: CMDP, candidate: Candidate) -> Plan:
    """Return a plan about which nothing is known, if not even its policy could be evaluated; its averages are nan."""
    unknown = np.full(part.n_constraints + 1, np.nan)
    proof = Certificate(-np.inf, np.nan, unknown[1:], np.nan, np.nan, 0.0, 0.0, np.nan, unknown[1:], False)
    return Plan(
        Status.UNCERTIFIED, np.nan, unknown, part.thresholds, candidate.policy, candidate.occupancy, *candidate.dual,
        proof, candidate.method, candidate.note, None, candidate.columns, part.names,
    )  # fmt: skip
