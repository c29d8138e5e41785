"""``plan``: from a model to a certified plan, whatever the structure of the model.

Only the part reachable from the initial distribution is planned. If it has one end component, oracle and master find
the optimum. Otherwise they use an oracle that plans each component separately. The policy is then evaluated exactly and
the candidate certified. If no stationary policy attains the bound, a mixture policy does. If the proof fails, the model
is planned again on the scale of the costs that the policy meets, then with HiGHS, and if it is small, in rational
arithmetic.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Ints
from psconrl.base.escaping import quoted
from psconrl.base.sizes import LAST_RESORT_STATES, SECOND_OPINION_STATES
from psconrl.errors import ConfigError, ModelError, SolverError, unknown_name
from psconrl.model.cmdp import CMDP, need_model
from psconrl.model.matrix_product import product
from psconrl.planning.candidate import Candidate
from psconrl.planning.exact.judgement import joined
from psconrl.planning.exact.last_resort import asked_for, is_open, need_exact_size, settled
from psconrl.planning.infeasibility import Infeasibility, explain_infeasibility
from psconrl.planning.methods import LP, METHODS, MIXTURE, find_candidate, unproven
from psconrl.planning.mixture.known import KnownPolicies
from psconrl.planning.plan import Plan
from psconrl.planning.problem import Problem
from psconrl.planning.progress import Progress, Watch
from psconrl.planning.proof.candidate_to_plan import certified, certified_as_played, unevaluated
from psconrl.planning.proof.certificate import Status
from psconrl.planning.proof.certificate_units import units
from psconrl.planning.reductions import solved
from psconrl.planning.restriction import Restriction
from psconrl.planning.scaling import Scaling
from psconrl.planning.tolerances import PROVEN_POLICY, ROUNDED_ENTRY

# Number of times a model whose proof failed is planned again, on the scale of the costs that its policy meets.
RESCALINGS = 2
# The excess of a second infeasible plan must be open by less than this share of that of the first, to replace it.
LESS_OPEN = 0.5


def plan_model(
    cmdp: CMDP,
    method: str = "mixture",
    start: Plan | None = None,
    progress: Callable[[Progress], object] | None = None,
    exact: bool = False,
) -> Plan:
    """Plan a model; see ``psconrl.plan``, which also plans systems.

    >>> import psconrl
    >>> plan_model(psconrl.load("marsrover-4x4")).status.value
    'optimal'
    """
    need_model(cmdp, "plan")
    if method not in METHODS:
        raise ConfigError(unknown_name("method", method, METHODS))
    if progress is not None and not callable(progress):
        raise ConfigError(f"progress must be a function, such as print; got {quoted(progress)}")
    if not isinstance(exact, bool):
        raise ConfigError(f"exact must be True or False; got {quoted(exact)}")
    result = plan_settled(cmdp, method, start, Watch(progress, cmdp.maximise), exact)
    if result.status is Status.INFEASIBLE:
        result = replace(result, infeasibility=_explained(cmdp, result, method))
    return result.of_model(cmdp)


def plan_unexplained(
    cmdp: CMDP,
    method: str = MIXTURE,
    start: Plan | None = None,
    watch: Watch | None = None,
    known: KnownPolicies | None = None,
) -> Plan:
    """Plan without explaining infeasibility, which takes further plans.

    ``known``: policies evaluated for plans under other thresholds, to which this plan adds.
    """
    reached, watch = Restriction(cmdp), watch or Watch(None, cmdp.maximise)
    policies = _start_policies(reached, start)
    return solved(reached, lambda part: _in_doubles(part, method, policies, watch, known))


def plan_settled(
    cmdp: CMDP, method: str = MIXTURE, start: Plan | None = None, watch: Watch | None = None, exact: bool = False
) -> Plan:
    """Plan without explaining infeasibility; if the proof stays open, or on request, in rational arithmetic."""
    reached, watch = Restriction(cmdp), watch or Watch(None, cmdp.maximise)
    policies = _start_policies(reached, start)
    return solved(reached, lambda part: _in_doubles_or_exactly(part, method, policies, watch, exact))


def _in_doubles_or_exactly(part: CMDP, method: str, start: Sequence[Ints], watch: Watch, exact: bool) -> Plan:
    """Plan a model whose states are all reachable; if the proof stays open, or on request, in rational arithmetic."""
    if exact:
        need_exact_size(part)
    result = _in_doubles(part, method, start, watch)
    if watch.stopped:
        return result
    try:
        if exact:
            return asked_for(part, result)
        if is_open(part, result, method) or _has_needless_excess(part, result):
            return settled(part, result)
    except KeyboardInterrupt:  # the plan in doubles stays
        if watch.follow is None:
            raise
        watch.interrupted()
        result = replace(result, note=joined(result.note, "rational arithmetic was stopped by hand"))
    return result


def _in_doubles(
    part: CMDP, method: str, start: Sequence[Ints], watch: Watch, known: KnownPolicies | None = None
) -> Plan:
    """Plan a model whose states are all reachable in double and double-double precision."""
    problem = Problem.of(part)
    result = _attempt(part, problem, method, start, watch, known)
    for _ in range(RESCALINGS):
        if result.status is not Status.UNCERTIFIED or watch.stopped or not np.isfinite(result.costs).all():
            break
        # The policy is judged on the scale of the costs that it meets: plan again on that scale.
        middle = np.append(result.costs[0], part.thresholds)
        scaling = Scaling(middle, units(part, result.occupancy))
        problem = Problem.scaled(problem.transition, part.costs, part.thresholds, part.available, scaling)
        result = _better(result, _attempt(part, problem, method, result.columns, watch))
    unsettled = result.status in (Status.UNCERTIFIED, Status.NOT_ATTAINED)
    needs_more = result.mixture is not None if result.feasible else not _is_least_excess(part, result)
    if (unsettled or needs_more) and result.method != LP and part.n_states <= SECOND_OPINION_STATES:
        result = _second_opinion(part, problem, result)
    return result


def _explained(cmdp: CMDP, infeasible: Plan, method: str) -> Infeasibility:
    """Explain why no policy meets the thresholds, by planning relaxations of the model with the same method."""

    def least(relaxed: CMDP) -> float | None:
        found = plan_settled(relaxed, method)
        if found.status is Status.INFEASIBLE:
            return None
        # If no single policy attains the bound, a mixture or ever rarer switches approach it.
        return float(found.certificate.lower if found.status is Status.NOT_ATTAINED else found.costs[0])

    return explain_infeasibility(cmdp, infeasible.costs[1:], infeasible.multipliers, least)


class ScaledModel(NamedTuple):
    """A model, all of whose states are reachable, with scaled costs; its solutions are checked in the user's units."""

    part: CMDP
    problem: Problem
    watch: Watch

    def apply(self) -> Problem:
        """Return the scaled problem."""
        return self.problem

    def invert(self, candidate: Candidate) -> Plan:
        """Return the certified plan of a candidate."""
        watch = self.watch
        return watch.finish(lambda: certified_as_played(self.part, self.problem, candidate, stopped=watch.stopped))


def _attempt(
    part: CMDP,
    problem: Problem,
    method: str,
    start: Sequence[Ints],
    watch: Watch,
    known: KnownPolicies | None = None,
) -> Plan:
    """Return the certified plan of a method, or an unproven plan if the method fails."""
    try:
        return solved(
            ScaledModel(part, problem, watch), lambda scaled: find_candidate(part, scaled, method, start, watch, known)
        )
    except SolverError as error:
        candidate = unproven(problem, method, str(error))
        try:
            return certified(part, problem, candidate)
        except SolverError:
            return unevaluated(part, candidate)


def _better(first: Plan, second: Plan) -> Plan:
    """Return the second plan if it is proven, else the one with the smaller gap; a gap of nan means no bound."""
    if second.status is not Status.UNCERTIFIED:
        return second
    return second if abs(second.gap) <= abs(first.gap) or first.gap != first.gap else first


def _open_excess(infeasible: Plan) -> float:
    """Return by how much the weighted excess of an infeasible plan may exceed the least possible one."""
    return product(infeasible.multipliers, infeasible.certificate.excess) - infeasible.certificate.margin


def _is_least_excess(part: CMDP, infeasible: Plan) -> bool:
    """Whether the policy of an infeasible plan is proven to have the least weighted excess, up to rounding of costs."""
    size = product(infeasible.multipliers, units(part, infeasible.occupancy)[1:])
    largest = np.abs(np.where(part.available, part.costs[1:], 0.0)).max(axis=(1, 2))
    rounding = ROUNDED_ENTRY * product(infeasible.multipliers, largest)
    return bool(_open_excess(infeasible) <= max(PROVEN_POLICY * size, rounding))


def _has_needless_excess(part: CMDP, found: Plan) -> bool:
    """Whether a plan is infeasible with more than the least excess; only of models that are planned again."""
    return not found.feasible and part.n_states <= LAST_RESORT_STATES and not _is_least_excess(part, found)


def _second_opinion(part: CMDP, problem: Problem, first: Plan) -> Plan:
    """Plan with HiGHS a model for which the mixture found no optimal plan; return that plan if it proves more."""
    second = _attempt(part, problem, LP, [], Watch(None, part.maximise))
    spoiled = first.status is Status.UNCERTIFIED
    if first.feasible:
        proves_more = second.status is Status.OPTIMAL or (spoiled and second.status is not Status.UNCERTIFIED)
        why = "rounding spoiled the proof of the mixture" if spoiled else "the mixture fell into several classes"
    else:
        proves_more = not second.feasible and _open_excess(second) < LESS_OPEN * _open_excess(first)
        why = "the excess of the mixture was not the least"
    if proves_more:
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
