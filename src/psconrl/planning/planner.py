"""``plan``: from a model to a certified plan, whatever the structure of the model.

Only the part reachable from the initial distribution is planned. If it has one end component, oracle and master find
the optimum. Otherwise they use an oracle that plans each component separately. The policy is then evaluated exactly and
the candidate certified. If no stationary policy attains the bound, a mixture policy does. If the proof fails, the model
is planned again on the scale of the costs that the policy meets, and then with HiGHS.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.errors import ConfigError, ModelError, SolverError, unknown_name
from psconrl.kernels.occupancy import one_hot
from psconrl.markov.evaluation import Evaluation, evaluate_policy
from psconrl.model.cmdp import CMDP, need_model
from psconrl.model.fingerprint import fingerprint
from psconrl.planning.candidate import Candidate, Dual, without_residue
from psconrl.planning.certificate import check, units
from psconrl.planning.infeasibility import Infeasibility, explain
from psconrl.planning.initial_randomisation import initially_randomised
from psconrl.planning.methods import LP, METHODS, MIXTURE, find_candidate, unproven
from psconrl.planning.plan import Plan
from psconrl.planning.problem import Problem
from psconrl.planning.progress import Progress, Watch
from psconrl.planning.proof import Certificate, Status
from psconrl.planning.repair import between_classes, reaches, repairs
from psconrl.planning.restriction import Restriction
from psconrl.planning.scaling import Scaling
from psconrl.planning.settling import rounds_to_settle
from psconrl.planning.tolerances import PROVEN_POLICY

# Number of times a model whose proof failed is planned again, on the scale of the costs that its policy meets.
RESCALINGS = 2

# Unproven models of up to 2,000 states are also planned with HiGHS; beyond, it may take minutes.
SECOND_OPINION_STATES = 2000


def plan(
    cmdp: CMDP,
    method: str = "mixture",
    start: Plan | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> Plan:
    """Return the cheapest policy within the thresholds, with its shadow prices and a certificate.

    ``method``: ``"mixture"`` (default; fast) or ``"lp"`` (the reference, on HiGHS). ``start``: an earlier plan of a
    model with the same states and actions; its policies are tried first. ``progress``: called repeatedly with the value
    and the bound so far if a plan takes long, for example ``print``. Ctrl-C then returns the best plan so far, with its
    proven gap.

    >>> import psconrl
    >>> p = psconrl.plan(psconrl.load("marsrover-4x4"))
    >>> p.status.value, round(p.value, 9), p.multipliers.round(9).tolist()
    ('optimal', 0.775, [0.5])
    """
    need_model(cmdp, "plan")
    if method not in METHODS:
        raise ConfigError(unknown_name("method", method, METHODS))
    if progress is not None and not callable(progress):
        raise ConfigError(f"progress must be a function, such as print; got {progress!r}")
    result = plan_unexplained(cmdp, method, start, Watch(progress, cmdp.maximise))
    if result.status is Status.INFEASIBLE:
        result = replace(result, infeasibility=_explained(cmdp, result, method))
    return replace(result, model=fingerprint(cmdp))


def plan_unexplained(cmdp: CMDP, method: str = MIXTURE, start: Plan | None = None, watch: Watch | None = None) -> Plan:
    """Plan without explaining infeasibility, which takes further plans."""
    watch = watch or Watch(None, cmdp.maximise)
    reached = Restriction(cmdp)
    part = reached.apply()
    problem = Problem.of(part)
    result = _attempt(part, problem, method, _start_policies(reached, start), watch)
    for _ in range(RESCALINGS):
        if result.status is not Status.UNCERTIFIED or watch.stopped:
            break
        # The policy is judged on the scale of the costs that it meets: plan again on that scale.
        middle = np.append(result.costs[0], part.thresholds)
        scaling = Scaling(middle, units(part, result.occupancy))
        problem = Problem.scaled(problem.transition, part.costs, part.thresholds, part.available, scaling)
        result = _better(result, _attempt(part, problem, method, result.columns, watch))
    unsettled = result.status in (Status.UNCERTIFIED, Status.NOT_ATTAINED)
    doubtful = (unsettled or (result.feasible and result.mixture is not None)) and result.method != LP
    if doubtful and part.n_states <= SECOND_OPINION_STATES:
        result = _second_opinion(part, problem, result)
    return reached.invert(result)


def _explained(cmdp: CMDP, infeasible: Plan, method: str) -> Infeasibility:
    """Explain why no policy meets the thresholds, by planning relaxations of the model with the same method."""

    def least(relaxed: CMDP) -> float | None:
        found = plan_unexplained(relaxed, method)
        if found.status is Status.INFEASIBLE:
            return None
        # If no single policy attains the bound, a mixture or ever rarer switches approach it.
        return float(found.certificate.lower if found.status is Status.NOT_ATTAINED else found.costs[0])

    return explain(cmdp, infeasible.costs[1:], infeasible.multipliers, least)


def _attempt(part: CMDP, problem: Problem, method: str, start: Sequence[Ints], watch: Watch) -> Plan:
    """Return the certified plan of a method, or an unproven plan if the method fails."""
    try:
        candidate = find_candidate(part, problem, method, start, watch)
        return watch.finish(lambda: _certified_as_played(part, problem, candidate, watch.stopped))
    except SolverError as error:
        return _certified(part, problem, unproven(problem, method, str(error)))


def _better(first: Plan, second: Plan) -> Plan:
    """Return the second plan if it is proven, else the one with the smaller gap; a gap of nan means no bound."""
    if second.status is not Status.UNCERTIFIED:
        return second
    return second if abs(second.gap) <= abs(first.gap) or first.gap != first.gap else first


def _second_opinion(part: CMDP, problem: Problem, first: Plan) -> Plan:
    """Plan with HiGHS a model for which the mixture found no optimal plan; return that plan if it proves more."""
    second = _attempt(part, problem, LP, [], Watch(None, part.maximise))
    spoiled = first.status is Status.UNCERTIFIED
    if second.status is Status.OPTIMAL or (spoiled and second.status is not Status.UNCERTIFIED):
        why = "rounding spoiled the proof of the mixture" if spoiled else "the mixture fell into several classes"
        return replace(second, note="; ".join(filter(None, (second.note, f"planned by HiGHS, since {why}"))))
    return first


def _start_policies(reached: Restriction, start: Plan | None) -> list[Ints]:
    if start is None:
        return []
    cmdp = reached.whole
    if not isinstance(start, Plan):
        raise ModelError(f"start must be an earlier plan, as psconrl.plan returns it; got {type(start).__name__}")
    if start.policy.shape != (cmdp.n_states, cmdp.n_actions):
        raise ModelError(
            f"start must be a plan of a model with {cmdp.n_states} states and {cmdp.n_actions} actions; "
            f"got {start.policy.shape[0]} and {start.policy.shape[1]}"
        )
    everywhere = np.arange(cmdp.n_states)
    return [reached.apply_to_policy(c) for c in start.columns if cmdp.available[everywhere, c].all()]


def _best_so_far(part: CMDP, dual: Dual, policies: list[Floats]) -> tuple[Floats, Evaluation, Certificate] | None:
    """Return the first policy of a stopped search that is proven to meet the thresholds.

    Early policies may have disjoint classes. A stationary policy between them then lacks the averages of the mixture,
    but one of them alone may be feasible.
    """
    for policy in policies:
        exact = evaluate_policy(part, policy)
        proof = check(part, Status.STOPPED, exact.occupancy, dual, exact)
        if proof.holds:
            return policy, exact, proof
    return None


def _certified_as_played(part: CMDP, problem: Problem, candidate: Candidate, stopped: bool) -> Plan:
    """Return the certified plan, without shares that are rounding residue if the plan is proven without them.

    No run plays a share of 1e-16. But such a share may connect classes between which the policy never moves, and make
    units so small that no proof holds.
    """
    found = _certified(part, problem, candidate, stopped=stopped)
    clean = without_residue(candidate) if candidate.feasible and found.mixture is None else None
    if clean is None:
        return found
    cleaned = _certified(part, problem, clean, stopped=stopped)
    return cleaned if cleaned.status is Status.OPTIMAL else found


def _certified(part: CMDP, problem: Problem, candidate: Candidate, *, stopped: bool = False) -> Plan:
    """Convert a candidate to the user's units, evaluate its policy, and determine what is proven.

    ``stopped``: the user stopped the search, so the gap may be open.
    """
    occupancy, policy, note = candidate.occupancy, candidate.policy, candidate.note
    dual = problem.scaling.invert_dual(candidate.dual, candidate.feasible)
    status = Status.OPTIMAL if candidate.feasible else Status.INFEASIBLE
    exact = evaluate_policy(part, policy)
    proof = check(part, status, occupancy, dual, exact)
    if not proof.holds:
        # A policy of a multichain model may leave the classes in which it should remain.
        several = candidate.feasible and (len(exact.classes) > 1 or candidate.dual.gains is not None)
        split = several and reaches(part, occupancy, dual.multipliers, proof.lower)
        status = Status.NOT_ATTAINED if split else Status.UNCERTIFIED
    if status is Status.UNCERTIFIED and stopped and candidate.feasible:
        so_far = _best_so_far(part, dual, [policy, *(one_hot(column, part.n_actions) for column in candidate.columns)])
        if so_far is not None:
            status, (policy, exact, proof) = Status.STOPPED, so_far
            occupancy, note = exact.occupancy, "; ".join(filter(None, (note, "stopped by hand")))
    elsewhere = status is Status.INFEASIBLE and proof.policy_error > PROVEN_POLICY
    if elsewhere and candidate.dual.gains is not None and candidate.shares is None:
        occupancy = exact.occupancy  # the candidate's frequencies are those of a mixture, not of its policy
        proof = check(part, status, occupancy, dual, exact)
    elif elsewhere and len(exact.classes) > 1 and candidate.dual.gains is None:
        policy, occupancy, note = between_classes(part, occupancy)
        exact = evaluate_policy(part, policy)
        proof = check(part, status, occupancy, dual, exact)
    if status is Status.NOT_ATTAINED:
        # The frequencies are optimal, but the policy does not move between its classes, or enters others initially.
        for repair in repairs(part, problem, candidate, exact, proof.lower):
            policy, occupancy, note = repair
            exact = evaluate_policy(part, policy)
            proof = check(part, Status.OPTIMAL, occupancy, dual, exact)
            if proof.holds:
                status = Status.OPTIMAL
                note = candidate.note if candidate.dual.gains is not None else note  # the repaired policy is optimal
                break
        else:
            occupancy = exact.occupancy
            proof = check(part, status, occupancy, dual, exact)
    result = Plan(
        status, exact.value, exact.costs, part.thresholds, policy, occupancy, *dual, proof, candidate.method, note,
        None, candidate.columns, part.names, settles=rounds_to_settle(part, exact),
    )  # fmt: skip
    return initially_randomised(part, candidate, result) if status is Status.NOT_ATTAINED or elsewhere else result
