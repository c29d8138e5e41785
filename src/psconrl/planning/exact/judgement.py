"""From the exact optimum to a plan: its policy in doubles, and what is proven of it.

The policy is evaluated exactly as the doubles that it consists of. If doubles can hold the dual point, the certificate
is the ordinary one. Otherwise the plan carries the dual point in rational numbers, and the certificate is computed with
them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.errors import SolverError
from psconrl.kernels.chains.occupancy import one_hot
from psconrl.markov.evaluation import Evaluation
from psconrl.markov.structure import attractor_policy
from psconrl.model.cmdp import CMDP
from psconrl.model.matrix_product import product
from psconrl.planning.candidate import Dual
from psconrl.planning.components.stationary import stationary
from psconrl.planning.exact.checking import certificate_in_rationals, doubles
from psconrl.planning.exact.evaluation import RationalChain
from psconrl.planning.exact.exact_plan import ExactPlan
from psconrl.planning.exact.policy_iteration import weighted_sum
from psconrl.planning.exact.rational_model import ZERO, RationalModel, fractions_of, normalised
from psconrl.planning.exact.solve import RationalSolution, dual_of, solve_rationals
from psconrl.planning.mixture_policy import PolicyMixture, mean_evaluation
from psconrl.planning.plan import Plan
from psconrl.planning.problem import Problem
from psconrl.planning.proof.certificate import Certificate, Status
from psconrl.planning.proof.certificate_units import accepted, units
from psconrl.planning.proof.certify import certificate_of
from psconrl.planning.settling import rounds_to_settle
from psconrl.planning.tolerances import PROVEN_POLICY

EXACT = "exact"  # the method of these plans
BEYOND_DOUBLES = "doubles cannot hold the proof, which is in plan.exact"


class JudgedAverages(NamedTuple):
    """What a plan plays, in doubles: its averages in rational numbers, and its certificate."""

    averages: list[Fraction]  # (m+1,)
    evaluation: Evaluation
    proof: Certificate
    in_doubles: bool  # whether the proof needs no rational numbers


class Judge:
    """Checks what a plan plays against the exact optimum of a model."""

    def __init__(self, part: CMDP, model: RationalModel, solution: RationalSolution) -> None:
        self.part, self.model, self.solution = part, model, solution
        self.status = Status.OPTIMAL if solution.feasible else Status.INFEASIBLE
        self.dual = rounded_dual(solution)

    def evaluated(self, chain: RationalChain, policy: Floats) -> Evaluation:
        """Return the evaluation of a policy in doubles, rounded from its exact one."""
        distribution, biases = doubles(chain.distribution), np.array([doubles(row) for row in chain.biases])
        return Evaluation(
            doubles(chain.averages),
            distribution[:, None] * policy,
            np.array([doubles(row) for row in chain.gains]),
            _centred(chain, distribution, biases),
            tuple(np.array(states) for states in chain.classes),
            -1.0 if self.part.maximise else 1.0,
        )

    def judged(self, averages: list[Fraction], evaluation: Evaluation, status: Status | None = None) -> JudgedAverages:
        """Return the certificate in doubles if it holds, else the one in rational numbers."""
        status = status or self.status
        with np.errstate(all="ignore"):  # numbers at the end of the range of doubles
            proof = certificate_of(self.part, status, evaluation.occupancy, self.dual, evaluation)
            if proof.holds:
                return JudgedAverages(averages, evaluation, proof, True)
            exact = certificate_in_rationals(
                self.part, self.model, self.solution.dual, status, evaluation.occupancy, averages
            )
        return JudgedAverages(averages, evaluation, exact, False)

    def settles(self, played: JudgedAverages) -> bool:
        """Whether what is played is proven, also when it is saved; if infeasible, whether it has the least excess."""
        if not played.proof.holds:
            return False
        if self.solution.feasible:
            return accepted(self.part, played.averages, self.solution.averages[0])
        with np.errstate(all="ignore"):
            unit = fractions_of(units(self.part, played.evaluation.occupancy))
        pairs = zip(played.averages, self.solution.averages, unit, strict=True)
        return all(abs(x - wanted) <= Fraction(PROVEN_POLICY) * u for x, wanted, u in pairs)


def plan_exactly(part: CMDP, problem: Problem, start: Sequence[Ints], note: str = "") -> Plan:
    """Plan a model whose states are all reachable in rational arithmetic, beginning with some policies."""
    model = RationalModel.of(part)
    solution = solve_rationals(model, [actions.tolist() for actions in start], fractions_of(problem.scaling.scale[1:]))
    judge = Judge(part, model, solution)
    attained = attained_policy(part, solution)
    policies = _policies(part, problem, solution, attained)
    policy, chain = next(policies)
    played = judge.judged(chain.averages, judge.evaluated(chain, policy))
    for other, chain in policies:
        if judge.settles(played):
            break
        tried = judge.judged(chain.averages, judge.evaluated(chain, other))
        policy, played = (other, tried) if judge.settles(tried) else (policy, played)
    mixture, settles = None, _rounds_to_settle(part, played.evaluation)
    if not judge.settles(played) and len(solution.columns) > 1:
        mixed, drawn, longest = _mixed(judge, played)
        if judge.settles(mixed):
            note = joined(note, f"each run draws one of {len(drawn)} policies; {_of_policy(judge, played)}")
            played, mixture, settles = mixed, drawn, longest
    if not played.proof.holds:
        note = joined(note, _what_is_missing(judge, played))
    elif not played.in_doubles:
        note = joined(note, BEYOND_DOUBLES)
    return Plan(
        judge.status if played.proof.holds else Status.UNCERTIFIED, played.evaluation.value, played.evaluation.costs,
        part.thresholds, policy, played.evaluation.occupancy, *judge.dual, played.proof, EXACT, note, None,
        tuple(np.array(column.actions) for column in solution.columns), part.names, mixture, settles=settles,
        exact=_exact_plan(part, solution, attained),
    )  # fmt: skip


def attained_policy(part: CMDP, solution: RationalSolution) -> list[dict[int, Fraction]] | None:
    """Return a stationary policy with exactly the optimal averages, in rational numbers, or None if none was found.

    A policy in proportion to the frequencies of the mixture has them if its chain has one closed class.
    """
    if len(solution.columns) == 1:
        return solution.columns[0].chain.policy
    policy = _proportional(part, solution)
    one_class = len(RationalChain(solution.proof.chain.model, policy).classes) == 1
    return policy if one_class else None


def _proportional(part: CMDP, solution: RationalSolution) -> list[dict[int, Fraction]]:
    """Return the policy in proportion to the frequencies of the mixture; other states are driven to those visited."""
    mass: list[dict[int, Fraction]] = [{} for _ in range(part.n_states)]
    for column, share in zip(solution.columns, solution.shares, strict=True):
        for s, frequency in enumerate(column.chain.distribution):
            if frequency:
                a = column.actions[s]
                mass[s][a] = mass[s].get(a, ZERO) + share * frequency
    visited = np.array([bool(row) for row in mass])
    largest = solution.columns[solution.shares.index(max(solution.shares))]
    onward = attractor_policy(part.transition, part.available, visited, np.array(largest.actions))
    return [
        {a: x / sum(row.values()) for a, x in row.items()} if row else {int(onward[s]): Fraction(1)}
        for s, row in enumerate(mass)
    ]


def _policies(
    part: CMDP, problem: Problem, solution: RationalSolution, attained: list[dict[int, Fraction]] | None
) -> Iterator[tuple[Floats, RationalChain]]:
    """Yield policies in doubles that may attain the optimum, each with its chain."""
    model = solution.proof.chain.model
    if len(solution.columns) == 1:
        column = solution.columns[0]
        yield one_hot(np.array(column.actions), part.n_actions), column.chain
        return
    policy = _in_doubles(part, attained or _proportional(part, solution))
    yield policy, RationalChain.of_doubles(model, policy)
    if attained is None:
        actions = [np.array(column.actions) for column in solution.columns]
        try:
            policy = stationary(part, problem, actions, doubles(solution.shares), doubles(solution.dual.weights))[1]
        except SolverError:  # an evaluation in doubles failed
            return
        yield policy, RationalChain.of_doubles(model, policy)


def _in_doubles(part: CMDP, policy: list[dict[int, Fraction]]) -> Floats:
    rounded = np.zeros((part.n_states, part.n_actions))
    for s, row in enumerate(policy):
        for a, x in row.items():
            rounded[s, a] = float(x)
    return rounded


def _mixed(judge: Judge, alone: JudgedAverages) -> tuple[JudgedAverages, PolicyMixture, float]:
    """Return the plan that draws one of the policies for each run, and the rounds until its averages settle."""
    columns = judge.solution.columns
    shares = doubles(judge.solution.shares)
    shares /= shares.sum()
    averages = weighted_sum(normalised(shares), [column.averages for column in columns])
    policies = np.array([column.actions for column in columns])
    each = [judge.evaluated(c.chain, one_hot(np.array(c.actions), judge.part.n_actions)) for c in columns]
    evaluation = replace(mean_evaluation(shares, each), costs=doubles(averages))
    distributions = np.array([one.occupancy.sum(axis=1) for one in each])
    stationary_proof = judge.judged(alone.averages, alone.evaluation, Status.NOT_ATTAINED).proof
    mixture = PolicyMixture(policies, shares, distributions, stationary_proof)
    return judge.judged(averages, evaluation), mixture, max(_rounds_to_settle(judge.part, one) for one in each)


def _centred(chain: RationalChain, distribution: Floats, biases: Floats) -> Floats:
    """Return biases (m+1, S) with a mean of zero in every class that is visited."""
    result = biases.copy()
    with np.errstate(all="ignore"):  # biases may be at the end of the range of doubles
        for k, states in enumerate(chain.classes):
            mass = float(distribution[states].sum())
            if mass > 0.0:
                mean = product(biases[:, states], distribution[states]) / mass
                result -= np.outer(mean, doubles([row[k] for row in chain.absorbed]))
    return result


def _rounds_to_settle(part: CMDP, evaluation: Evaluation) -> float:
    with np.errstate(all="ignore"):  # biases may be at the end of the range of doubles
        return rounds_to_settle(part, evaluation)


def _of_policy(judge: Judge, alone: JudgedAverages) -> str:
    return f"plan.policy is stationary, costs {float(alone.averages[0]):.8g}{_beyond(judge, alone, ' and exceeds ')}"


def _what_is_missing(judge: Judge, played: JudgedAverages) -> str:
    missing = _beyond(judge, played, "it exceeds ") or f"it costs {played.proof.gap:.3g} more"
    return f"the optimal policy is in plan.exact; rounded to doubles {missing}"


def _beyond(judge: Judge, played: JudgedAverages, verb: str) -> str:
    """Name the thresholds that are exceeded, and by how much; empty if none is."""
    names, thresholds = judge.part.cost_names[1:], judge.model.thresholds
    over = [x - tau for x, tau in zip(played.averages[1:], thresholds, strict=True)]
    exceeded = [f"'{name}' by {float(x):.3g}" for name, x in zip(names, over, strict=True) if x > 0]
    return verb + ", ".join(exceeded) if exceeded else ""


def joined(*notes: str) -> str:
    """Join the notes that are not empty."""
    return "; ".join(filter(None, notes))


def rounded_dual(solution: RationalSolution) -> Dual:
    """Return the dual point in doubles: multipliers rounded, and then the potential for these multipliers."""
    weights = [solution.dual.weights[0], *fractions_of(doubles(solution.dual.weights[1:]))]
    dual = dual_of(solution.proof, weights)
    potential = doubles(dual.potential)
    low = doubles([x - y for x, y in zip(dual.potential, fractions_of(potential), strict=True)])
    level = min(dual.gains) == max(dual.gains)
    return Dual(doubles(weights[1:]), potential, low, None if level else doubles(dual.gains))


def _exact_plan(part: CMDP, solution: RationalSolution, attained: list[dict[int, Fraction]] | None) -> ExactPlan:
    averages = solution.averages
    dual, thresholds = solution.dual, solution.proof.chain.model.thresholds
    actions = range(part.n_actions)
    return ExactPlan(
        solution.feasible,
        -averages[0] if part.maximise else averages[0],
        tuple(averages),
        tuple(x - tau for x, tau in zip(averages[1:], thresholds, strict=True)),
        tuple(dual.weights[1:]),
        tuple(dual.potential),
        tuple(dual.gains),
        None if attained is None else tuple(tuple(row.get(a, ZERO) for a in actions) for row in attained),
        tuple(column.actions for column in solution.columns),
        tuple(solution.shares),
    )
