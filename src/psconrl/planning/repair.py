r"""Repair of candidates that do not attain the bound: a stationary policy that comes close, with a note.

In a communicating model the optimum may be to switch ever more rarely between several classes. Then
:math:`\mu_\epsilon = (1-\epsilon)\,\mu + \epsilon\,\mu_0`, with :math:`\mu_0` the occupancy of a policy that visits
all states, is the occupancy of a single stationary policy, :math:`\epsilon` away from the bound. If :math:`\mu_0` uses
only actions that are optimal at the shadow prices, nothing is lost: several policies tie, and the mixture contained
some with disjoint classes.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.errors import SolverError
from psconrl.kernels.chains.occupancy import one_hot, policy_from_occupancy
from psconrl.markov.evaluation import Evaluation, evaluate_policy
from psconrl.markov.structure import attractor_policy
from psconrl.model.cmdp import CMDP
from psconrl.model.matrix_product import product
from psconrl.planning.candidate import Candidate, Dual
from psconrl.planning.mixture.solve import solve
from psconrl.planning.problem import Problem
from psconrl.planning.proof.certificate_units import units
from psconrl.planning.tolerances import CONNECTING_SHARE, PROVEN_EXCESS, PROVEN_GAP, TIED_ACTION, TIED_SHARES


def reaches(part: CMDP, occupancy: Floats, multipliers: Floats, bound: float) -> bool:
    """Whether the occupancy attains the bound, is feasible and has closed support."""
    unit = units(part, occupancy)
    averages = product(part.costs.reshape(len(part.costs), occupancy.size), occupancy.ravel())
    size = unit[0] + product(multipliers, unit[1:])
    within = bool((averages[1:] - part.thresholds <= PROVEN_EXCESS * unit[1:]).all())
    # A leak out of the support, however small, drains all mass in the long run.
    lasting = not (occupancy.ravel() @ part.transition)[occupancy.sum(axis=1) == 0].any()
    # Without constraints a single deterministic policy attains the bound.
    return part.n_constraints > 0 and lasting and within and abs(float(averages[0]) - bound) <= PROVEN_GAP * size


def repairs(
    part: CMDP, problem: Problem, candidate: Candidate, exact: Evaluation, bound: float
) -> Iterator[tuple[Floats, Floats, str]]:
    """Yield policies to try if the candidate's policy misses the bound, each with its occupancy and a note."""
    if candidate.dual.gains is not None:
        yield candidate.policy, exact.occupancy, multichain_note(part, exact, bound)
        return
    for states in exact.classes:
        if (exact.gains[1:, states[0]] <= part.thresholds).all():  # with ties, one class alone may attain the bound
            policy = driven_to(part, candidate.policy, states)
            yield policy, evaluate_policy(part, policy).occupancy, candidate.note
    ties = optimal_actions(problem, candidate.dual)
    for share in TIED_SHARES:
        tied = connected(part, problem, ties, (), share)
        if tied is not None:
            yield *tied, candidate.note
    mixed = connected(part, problem, part.available, candidate.columns, CONNECTING_SHARE)
    kept = mixed is not None
    policy, occupancy = mixed or _blend(part, candidate.occupancy, part.available, CONNECTING_SHARE)
    note = (
        "the bound is approached by ever rarer switches between classes; this policy moves between them in a "
        f"share {CONNECTING_SHARE:g} of the time and stays {'within' if kept else 'beyond'} the thresholds"
    )
    yield policy, occupancy, note


def driven_to(part: CMDP, policy: Floats, states: Ints) -> Floats:
    """Return the policy, changed so that every state is driven to one of its classes."""
    inside = np.zeros(part.n_states, dtype=bool)
    inside[states] = True
    onward = attractor_policy(part.transition, part.available, inside, policy.argmax(axis=1))
    return np.where(inside[:, None], policy, one_hot(onward, part.n_actions))


def optimal_actions(problem: Problem, dual: Dual) -> Bools:
    """Return the actions (S, A) that are optimal at the shadow prices, up to rounding."""
    moved = problem.transition.drift(dual.potential, dual.low_potential)
    lost = problem.priced(np.append(1.0, dual.multipliers)) + moved
    tolerance = TIED_ACTION * (1.0 + np.abs(dual.potential))
    return np.asarray(lost <= (lost.min(axis=1) + tolerance)[:, None])


def connected(
    part: CMDP, problem: Problem, actions: Bools, start: Sequence[Ints], share: float
) -> tuple[Floats, Floats] | None:
    """Return policy and occupancy of a plan with these actions, mixed with the uniform policy over them.

    The thresholds are first tightened by what the uniform policy spends, so that the mixture meets the original ones.
    None if that is infeasible or the uniform policy has several classes.
    """
    base = evaluate_policy(part, _all_of(actions))
    if len(base.classes) > 1:
        return None
    tightened = (part.thresholds - share * base.costs[1:]) / (1 - share)
    try:
        plan = solve(problem.with_thresholds(tightened)._replace(available=actions), start)
    except SolverError:
        return None
    return _blend(part, plan.occupancy, actions, share) if plan.feasible else None


def between_classes(part: CMDP, occupancy: Floats) -> tuple[Floats, Floats, str]:
    """Return a policy near an occupancy with several classes, for the least excess, with its occupancy and a note."""
    policy, mixed = _blend(part, occupancy, part.available, CONNECTING_SHARE)
    note = f"the least excess needs switches between classes; this policy makes them in a share {CONNECTING_SHARE:g}"
    return policy, mixed, note


def _blend(part: CMDP, occupancy: Floats, actions: Bools, share: float) -> tuple[Floats, Floats]:
    everywhere = _all_of(actions)
    occupancy = (1 - share) * occupancy + share * evaluate_policy(part, everywhere).occupancy
    return policy_from_occupancy(occupancy, everywhere, 0.0), occupancy


def _all_of(actions: Bools) -> Floats:
    return np.asarray(actions / actions.sum(axis=1, keepdims=True))


def multichain_note(part: CMDP, exact: Evaluation, bound: float) -> str:
    """Return the note on a stationary policy that does not attain the bound of a multichain model."""
    over = exact.costs[1:] - part.thresholds
    beyond = [f"'{name}' by {x:.3g}" for name, x in zip(part.cost_names[1:], over, strict=True) if x > 0]
    excess = f" and exceeds {', '.join(beyond)}" if beyond else ""
    return (
        f"the bound {bound:.8g} needs memory or initial randomisation; "
        f"this policy has neither, costs {exact.costs[0]:.8g}{excess}"
    )
