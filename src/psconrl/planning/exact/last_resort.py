"""When a plan is made in rational arithmetic: if doubles leave its proof open, or if the user asks for it."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from psconrl.base.sizes import EXACT_STATES, LAST_RESORT_STATES
from psconrl.errors import ConfigError, SolverError
from psconrl.markov.evaluation import Evaluation
from psconrl.model.cmdp import CMDP
from psconrl.model.matrix_product import product
from psconrl.planning.candidate import Dual
from psconrl.planning.exact.judgement import joined, plan_exactly
from psconrl.planning.methods import LP, MIXTURE
from psconrl.planning.plan import Plan
from psconrl.planning.problem import Problem
from psconrl.planning.proof.certificate import Status
from psconrl.planning.proof.certificate_units import accepted, units
from psconrl.planning.proof.certify import EPS, certificate_of
from psconrl.planning.proof.shortfall import shortfall
from psconrl.planning.tolerances import ACCURATE_AVERAGE, DOUBTFUL_AVERAGE, DOUBTFUL_EXCESS, ROUNDED_ENTRY

ASKED = "planned in rational arithmetic"
DECIDED = "rounding left the plan in doubles open; planned in rational arithmetic"


def need_exact_size(part: CMDP) -> None:
    """Raise an error if a model is too large for rational arithmetic."""
    if part.n_states > EXACT_STATES:
        raise ConfigError(
            f"exact=True is for models of up to {EXACT_STATES} reachable states; got {part.n_states:,}. "
            "plan(model) is certified in double precision, up to 1e-9 of the costs"
        )


def is_open(part: CMDP, found: Plan, method: str = MIXTURE) -> bool:
    """Whether a plan in doubles lacks a proof or accurate averages, or exceeds a threshold by more than rounding.

    ``method`` is the requested one: the linear program, as a reference, needs no mixture of policies.
    """
    proof = found.certificate
    if found.status is Status.NOT_ATTAINED:
        return method != LP
    if not proof.holds or _cannot_be_saved(part, found):
        return True
    if proof.policy_error > DOUBTFUL_AVERAGE and not _is_accurate(part, found):
        return True
    each = zip(proof.excess.tolist(), part.thresholds.tolist(), strict=True)  # faster than arrays of few numbers
    if found.status is not Status.OPTIMAL or all(x <= ROUNDED_ENTRY * abs(tau) for x, tau in each):
        return False
    allowed = DOUBTFUL_EXCESS * units(part, found.occupancy)[1:]
    return bool((proof.excess > allowed).any()) or hopeless(part, found) >= 0


def _cannot_be_saved(part: CMDP, found: Plan) -> bool:
    """Whether ``check_proof`` would refuse an optimal plan; only of models that are planned again."""
    if found.status is not Status.OPTIMAL or part.n_states > LAST_RESORT_STATES:
        return False
    proof, value = found.certificate, found.certificate.upper
    if value - proof.lower <= EPS * abs(value) and not (proof.excess > EPS * np.abs(part.thresholds)).any():
        return False  # rounding, which is small in every unit
    return not accepted(part, [Fraction(x) for x in found.costs.tolist()], Fraction(proof.lower))


def _is_accurate(part: CMDP, found: Plan) -> bool:
    """Whether the averages are those of the frequencies; elimination finds frequencies to nearly all digits."""
    costs, mass = part.costs.reshape(len(part.costs), -1), found.occupancy.ravel()
    off = np.abs(product(costs, mass) - found.costs)
    return bool((off <= ACCURATE_AVERAGE * product(np.abs(costs), mass)).all())


def settled(part: CMDP, found: Plan) -> Plan:
    """Return an open plan made again in rational arithmetic if the model is small, else with what is proven anyway."""
    if part.n_states <= LAST_RESORT_STATES:
        try:
            return plan_exactly(part, Problem.of(part), found.columns, DECIDED)
        except SolverError as error:
            found = replace(found, note=joined(found.note, f"rational arithmetic failed: {error}"))
    if hopeless(part, found) >= 0:
        return by_least_entries(part, found)
    if found.status is Status.UNCERTIFIED:
        return replace(found, note=joined(found.note, shortfall(part, found)))
    return found


def asked_for(part: CMDP, found: Plan) -> Plan:
    """Return a plan made again in rational arithmetic."""
    need_exact_size(part)
    return plan_exactly(part, Problem.of(part), found.columns, ASKED)


def hopeless(part: CMDP, found: Plan) -> int:
    """Return a constraint whose cost is above the threshold in every pair, or -1 if there is none."""
    for i in np.flatnonzero(found.certificate.excess > 0.0).tolist():
        beyond = part.costs[i + 1] - part.thresholds[i]  # of the right sign without rounding
        if (beyond > ROUNDED_ENTRY * abs(part.thresholds[i]))[part.available].all():
            return i
    return -1


def by_least_entries(part: CMDP, found: Plan) -> Plan:
    """Return a plan as infeasible, by a threshold below every entry of its cost."""
    multipliers = np.zeros(part.n_constraints)
    multipliers[hopeless(part, found)] = 1.0
    nothing = np.zeros(part.n_states)
    dual = Dual(multipliers, nothing, nothing, None)
    exact = Evaluation(found.costs, found.occupancy, np.empty(0), np.empty(0), ())
    proof = certificate_of(part, Status.INFEASIBLE, found.occupancy, dual, exact)
    return replace(
        found, status=Status.INFEASIBLE, multipliers=multipliers, potential=nothing, low_potential=nothing, gains=None,
        certificate=proof,
    )  # fmt: skip
