"""``plan``: from a model to a certified plan, whatever the structure of the model.

The part reachable from the initial law is planned. If it has one end component, oracle and master find the optimum;
otherwise the multichain program does. The policy is then evaluated exactly, and the claim certified. If the proof
fails, the model is planned again on the scale of the costs that the policy meets, and then HiGHS is asked.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from psconrl.arrays import Ints
from psconrl.errors import ConfigError, ModelError, SolverError, unknown_name
from psconrl.model import _doubled, _kernels
from psconrl.model.chain import evaluate
from psconrl.model.cmdp import CMDP
from psconrl.model.structure import reachable
from psconrl.planning.certify import POLICY_TOL, Dual, check, units
from psconrl.planning.claim import Claim, find_claim, unproven
from psconrl.planning.connect import between_classes, reaches, repairs
from psconrl.planning.infeasibility import explain
from psconrl.planning.plan import Plan, Status
from psconrl.planning.problem import Problem

METHODS = ("mixture", "lp")

# How often a model whose proof failed is planned again, on the scale of what its policy meets.
RESCALINGS = 2

# HiGHS is asked for a second opinion on models of up to 2,000 states; beyond, it may take minutes.
SECOND_OPINION_STATES = 2000


def plan(cmdp: CMDP, method: str = "mixture", start: Plan | None = None) -> Plan:
    """The cheapest policy within the thresholds, with its shadow prices and a certificate.

    ``method``: ``"mixture"`` (default; fast) or ``"lp"`` (the referee, on HiGHS). ``start``: an earlier plan of a model
    with the same states and actions; its policies are tried first.

    >>> import psconrl
    >>> p = psconrl.plan(psconrl.load("marsrover-4x4"))
    >>> p.status.value, round(p.value, 9), p.multipliers.round(9).tolist()
    ('optimal', 0.775, [0.5])
    """
    if not isinstance(cmdp, CMDP):
        raise ModelError(f"plan needs a CMDP; psconrl.load reads one from a file. Got {type(cmdp).__name__}")
    if method not in METHODS:
        raise ConfigError(unknown_name("method", method, METHODS))
    result = plan_unexplained(cmdp, method, start)
    if result.status is Status.INFEASIBLE:
        result = replace(result, infeasibility=explain(cmdp, result, plan_unexplained))
    return result


def plan_unexplained(cmdp: CMDP, method: str = METHODS[0], start: Plan | None = None) -> Plan:
    """The plan without the explanation of an infeasible one, which takes further plans."""
    states = _reachable_states(cmdp)
    part = cmdp if states.size == cmdp.n_states else cmdp.restricted(states)
    problem = Problem.of(part)
    result = _attempt(part, problem, method, _start_policies(cmdp, states, start))
    for _ in range(RESCALINGS):
        if result.status is not Status.UNCERTIFIED:
            break
        # What the policy meets is the scale on which it is judged: plan once more on that scale.
        problem = problem.rescaled(part, float(result.costs[0]), units(part, result.occupancy))
        result = _better(result, _attempt(part, problem, method, result.columns))
    doubtful = result.status in (Status.UNCERTIFIED, Status.NOT_ATTAINED) and result.method != METHODS[1]
    if doubtful and part.n_states <= SECOND_OPINION_STATES:
        result = _second_opinion(part, problem, result)
    return result if part is cmdp else _embedded(cmdp, states, result)


def _attempt(part: CMDP, problem: Problem, method: str, start: Sequence[Ints]) -> Plan:
    """The certified plan of a method, or one that nothing is proven about if the method fails."""
    try:
        return _certified(part, problem, find_claim(part, problem, method, start))
    except SolverError as error:
        return _certified(part, problem, unproven(problem, method, str(error)))


def _better(first: Plan, second: Plan) -> Plan:
    """Of two plans without a proof, the one that is nearer to its bound; a gap that is no number is none."""
    if second.status is not Status.UNCERTIFIED:
        return second
    return second if abs(second.gap) <= abs(first.gap) or first.gap != first.gap else first


def _second_opinion(part: CMDP, problem: Problem, first: Plan) -> Plan:
    """What HiGHS makes of a model on which the mixture ended without an optimal plan, if it can prove more."""
    second = _attempt(part, problem, METHODS[1], [])
    spoiled = first.status is Status.UNCERTIFIED
    if second.status is Status.OPTIMAL or (spoiled and second.status is not Status.UNCERTIFIED):
        why = "rounding spoiled the proof of the mixture" if spoiled else "the mixture fell into several classes"
        return replace(second, note="; ".join(filter(None, (second.note, f"planned by HiGHS, since {why}"))))
    return first


def _reachable_states(cmdp: CMDP) -> Ints:
    P = cmdp.transition
    if isinstance(P, np.ndarray) and _kernels.strongly_connected(P, cmdp.n_actions):
        return np.arange(cmdp.n_states)
    return reachable(cmdp)


def _start_policies(cmdp: CMDP, states: Ints, start: Plan | None) -> list[Ints]:
    if start is None:
        return []
    if start.policy.shape != (cmdp.n_states, cmdp.n_actions):
        raise ModelError(
            f"start must be a plan of a model with {cmdp.n_states} states and {cmdp.n_actions} actions; "
            f"got {start.policy.shape[0]} and {start.policy.shape[1]}"
        )
    everywhere = np.arange(cmdp.n_states)
    return [column[states] for column in start.columns if cmdp.available[everywhere, column].all()]


def _certified(part: CMDP, problem: Problem, claim: Claim) -> Plan:
    """Translate a claim to the user's units, evaluate its policy, and say what is proven."""
    if claim.feasible:
        unit = problem.scale[0]
        multipliers = problem.user_multipliers(claim.multipliers)
        shift = problem.shift[0] + multipliers @ problem.shift[1:]
    else:  # a Farkas proof has no scale of its own: its largest weight becomes 1
        raw = claim.multipliers / problem.scale[1:]
        unit = 1.0 / raw.max() if raw.any() else 1.0
        multipliers = raw * unit
        shift = multipliers @ problem.shift[1:]
    potential, low_potential = _doubled.combine(
        np.array([unit]), claim.potential[None, :], claim.low_potential[None, :]
    )
    gains = None if claim.gains is None else claim.gains * unit + shift

    occupancy, policy, note = claim.occupancy, claim.policy, claim.note
    status = Status.OPTIMAL if claim.feasible else Status.INFEASIBLE
    exact = evaluate(part, policy)
    dual = Dual(multipliers, potential, low_potential, gains)
    proof = check(part, status, occupancy, dual, exact)
    if not proof.holds:
        split = claim.feasible and len(exact.classes) > 1 and reaches(part, occupancy, multipliers, proof.lower)
        status = Status.NOT_ATTAINED if split else Status.UNCERTIFIED
    if status is Status.INFEASIBLE and len(exact.classes) > 1 and proof.policy_error > POLICY_TOL:
        policy, occupancy, note = between_classes(part, occupancy)
        exact = evaluate(part, policy)
        proof = check(part, status, occupancy, dual, exact)
    if status is Status.NOT_ATTAINED:
        # The frequencies are right, but the policy does not move between its classes, or chooses others at the start.
        for repair in repairs(part, problem, claim, exact, proof.lower):
            policy, occupancy, note = repair
            exact = evaluate(part, policy)
            if check(part, Status.OPTIMAL, occupancy, dual, exact).holds:
                status = Status.OPTIMAL
                break
        proof = check(part, status, exact.occupancy, dual, exact)
    return Plan(
        status, exact.value, exact.costs, policy, occupancy, *dual, proof, claim.method, note, None, claim.columns,
    )  # fmt: skip


def _embedded(cmdp: CMDP, states: Ints, part: Plan) -> Plan:
    """A plan of the reachable part as one of the whole model; elsewhere, where nothing leads, any action is played."""
    S = cmdp.n_states
    idle = np.eye(cmdp.n_actions)[cmdp.available.argmax(axis=1)]

    def spread(values: Any, fill: Any) -> Any:
        full = fill.copy()
        full[states] = values
        return full

    missing = f"{S - states.size} of {S} states cannot be reached and were left out"
    return replace(
        part,
        policy=spread(part.policy, idle),
        occupancy=spread(part.occupancy, np.zeros_like(idle)),
        potential=spread(part.potential, np.zeros(S)),
        low_potential=spread(part.low_potential, np.zeros(S)),
        gains=None if part.gains is None else spread(part.gains, np.zeros(S)),
        columns=tuple(spread(column, idle.argmax(axis=1)) for column in part.columns),
        note="; ".join(filter(None, (part.note, missing))),
    )
