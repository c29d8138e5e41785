r"""A baseline for the agent ``safe``: a policy with its slack and span, computed from a model.

The agent needs to know a ``slack`` and a ``span`` of its baseline :math:`\pi_b` for every constraint. They state that
some function :math:`0 \le h \le span` of the states satisfies

.. math:: c_b + P_b h - h \le \tau - slack

in every state. Then n rounds from any state cost at most :math:`n (\tau - slack) + span` in expectation. The slack is
how far the baseline stays below the threshold in the long run. The span is what it may cost to recover. The least such
function is

.. math:: h = \max(0,\ c_b - (\tau - slack) + P_b h),

the most the baseline can overspend before it is stopped. A smaller slack gives a smaller span.
"""

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.errors import AgentError, BaselineWarning
from psconrl.learning.argument_checks import as_amounts, as_distributions, as_numbers, need_all_actions
from psconrl.markov.chain import Chain, chain_of
from psconrl.markov.evaluation import evaluate_policy
from psconrl.model.cmdp import CMDP
from psconrl.model.policy_validation import as_policy
from psconrl.model.simulation_tables import Tables
from psconrl.planning.plan import Plan
from psconrl.planning.planner import plan_unexplained
from psconrl.planning.scaling import cost_units
from psconrl.planning.tolerances import FEASIBLE

SHARES = (0.25, 0.5, 0.75, 0.9)  # candidate slacks, as shares of the largest
BASELINE_SWEEPS = 20_000
STILL = 1e-9  # change at which the iteration stops, in ranges of the cost
SLACK_HALVINGS = 12  # bisection steps for the largest slack common to all constraints


def known_baseline(
    model: CMDP, policy: Any = None, *, by_state: bool = False, emission: str = "deterministic"
) -> dict[str, Any]:
    """Return the options ``baseline``, ``slack``, ``span`` and ``ranges`` of an agent ``safe``, computed from a model.

    ``policy``: (S, A), an action for every state, or a plan; by default the safest policy. Several pairs (slack, span)
    are valid; the result is the pair that allows most exploration from the start. ``by_state``: return the function h
    itself as the span, (m, S), which allows more where the agent knows which states may follow, as it does in a system.
    ``ranges`` matter only if costs are learned; ``emission``: how they are then drawn, as in ``psconrl.simulate``.

    >>> import psconrl
    >>> known = known_baseline(psconrl.load("marsrover-4x4"))
    >>> known["baseline"].shape, known["slack"].round(3).tolist(), known["span"].round(3).tolist()
    ((16, 4), [0.2], [0.0])
    """
    if not isinstance(model, CMDP):
        raise AgentError(f"known_baseline needs a model, a CMDP; got {type(model).__name__}")
    distributions = _given_or_safest(model, policy)
    found = evaluate_policy(model, distributions)
    slack, span = np.empty(model.n_constraints), np.empty((model.n_constraints, model.n_states))
    for i in range(model.n_constraints):
        tau, cost = float(model.thresholds[i]), model.costs[i + 1]
        whole = tau - float(found.gains[i + 1].max())
        if whole <= 0:
            raise AgentError(
                f"the baseline must keep {quoted(model.cost_names[i + 1])} below {tau:g}; its average is "
                f"{tau - whole:.6g}"
            )
        chain, played = chain_of(model.transition, distributions), (distributions * cost).sum(axis=1)
        unit = float(np.ptp(cost)) or 1.0
        pairs = [recovery(chain, played, tau - share * whole, unit) for share in SHARES]
        pairs.append((tau - whole, found.biases[i + 1]))
        slack[i], span[i] = most_exploring(pairs, tau, float(cost.max()))
    spans = span if by_state else np.ptp(span, axis=1)
    return {"baseline": distributions, "slack": slack, "span": spans, "ranges": outcome_ranges(model, emission)}


def baseline_policy(model: CMDP, policy: Any = None) -> Floats:
    """Return a policy (S, A) that meets all constraints, from any state: a given one, by default the safest.

    This is all that the agent ``c-ucrl`` assumes. An average may be equal to its threshold.
    """
    distributions = _given_or_safest(model, policy)
    averages = evaluate_policy(model, distributions).gains[1:].max(axis=1)
    tolerances = FEASIBLE * cost_units(model.costs[1:])
    for i in np.flatnonzero(averages > model.thresholds + tolerances):
        raise AgentError(
            f"the baseline must keep {quoted(model.cost_names[i + 1])} at most at {model.thresholds[i]:g}; its average "
            f"is {averages[i]:.6g}"
        )
    return distributions


def _given_or_safest(model: CMDP, policy: Any) -> Floats:
    need_all_actions(model.available)
    return safest_policy(model) if policy is None else as_policy(model, getattr(policy, "policy", policy))


def most_exploring(pairs: Iterable[tuple[float, Floats]], tau: float, highest: float) -> tuple[float, Floats]:
    """Return the slack and the span by state (S,), from 0 on, that allow most exploration from the start.

    ``pairs``: upper bounds of the baseline's average, and functions h that prove them. ``highest``: cost of a round.
    """
    safe = [(tau - average, float(np.ptp(h)), h) for average, h in pairs if average < tau]
    slack, _, h = max(safe, key=lambda one: (_share(one[0], one[1], highest - tau), -one[1], one[0]))
    return slack, h - h.min()


def _share(slack: float, span: float, over: float) -> float:
    """Return the share of rounds in which a cost ``over`` the threshold may be tried; see ``agents.safe``."""
    return 1.0 if over + span <= 0.0 else slack / (over + span + slack)


def outcome_ranges(model: CMDP, emission: str) -> Floats:
    """Return the lowest and highest outcome of every cost, (m+1, 2), if costs are emitted in this way.

    Costs within [0, 1] get the whole of it, since they may be probabilities of a Bernoulli cost. Uniform noise exceeds
    the least and the largest mean by half of their difference. Counts have no highest value and get that of the means.
    """
    means = Tables.of(model, "deterministic").outcomes
    low, high = means.min(axis=1), means.max(axis=1)
    probabilities = (low >= 0.0) & (high <= 1.0)
    lowest, highest = np.where(probabilities, 0.0, low), np.where(probabilities, 1.0, np.maximum(high, low + 1.0))
    if emission == "uniform":
        noise = 0.5 * (high - low)
        lowest, highest = np.minimum(lowest, low - noise), np.maximum(highest, high + noise)
    return np.column_stack([lowest, highest])


def recovery(chain: Chain, played: Floats, average: float, unit: float) -> tuple[float, Floats]:
    """Return an average close to the wanted one, and the least function h (S,) that certifies it.

    ``played`` (S,): cost of a round in every state; ``unit``: the range of the cost.
    """
    cost, h = played - average, np.zeros(played.size)
    for _ in range(BASELINE_SWEEPS):
        new = np.maximum(0.0, cost + chain @ h)
        still = float(np.abs(new - h).max()) <= STILL * unit
        h = new
        if still:
            break
    missed = float((cost + chain @ h - h).max())  # the iteration is from below, so h is slightly too small
    return average + max(missed, 0.0), h


def safest_policy(model: CMDP) -> Floats:
    """Return the policy (S, A) whose smallest distance below a threshold, in ranges of the cost, is largest.

    That distance is the Slater gap, up to 1/4096 (``planning.slater.slater_gap``, which computes it with one
    linear program). Constraints that no pair can violate are left out in both, so that they take no distance from the
    others. If the policy is
    not the only one, that of least total cost, in ranges, is preferred, since its span is smaller.
    """
    limited = model.costs[1:].reshape(model.n_constraints, model.costs[0].size)
    able = np.flatnonzero(limited.max(axis=1) > model.thresholds)
    if able.size < model.n_constraints:
        costs = model.costs[np.concatenate([[0], 1 + able])]
        model = CMDP(model.transition, costs, model.thresholds[able], initial=model.initial)
        limited = limited[able]
    if model.n_constraints == 0:
        return plan_unexplained(model).policy
    if model.n_constraints == 1:
        return plan_unexplained(CMDP(model.transition, model.costs[1:], initial=model.initial)).policy
    ranges = np.ptp(limited, axis=1)
    low, high, best = 0.0, 1.0, _within(model, model.thresholds)
    for _ in range(SLACK_HALVINGS):
        share = 0.5 * (low + high)
        found = _within(model, model.thresholds - share * ranges)
        if found is None:
            high = share
        else:
            low, best = share, found
    if best is None:
        raise AgentError("no policy keeps the limits of this model, so none can be a baseline")
    # Of those as far below, one that minimises a single cost does not move between classes, which takes a large span.
    total = (model.costs[1:] / np.where(ranges > 0, ranges, 1.0)[:, None, None]).sum(axis=0)
    cheapest = plan_unexplained(CMDP(model.transition, total[None], initial=model.initial)).policy
    if _least_distance(model, cheapest, ranges) >= _least_distance(model, best, ranges):
        return cheapest
    return best


def _least_distance(model: CMDP, policy: Floats, ranges: Floats) -> float:
    """Return the smallest distance of a policy below a threshold from any state, in ranges of the cost."""
    below = model.thresholds - evaluate_policy(model, policy).gains[1:].max(axis=1)
    return float((below / np.where(ranges > 0, ranges, 1.0)).min())


def _within(model: CMDP, limits: Floats) -> Floats | None:
    found: Plan = plan_unexplained(model.with_thresholds(limits))
    return found.policy if found.policy_meets_constraints else None


def as_baseline(given: Any, n_states: int, n_actions: int) -> Floats:
    """Return the baseline of an agent as a policy (S, A), after a check."""
    if given is None:
        raise AgentError(
            "a baseline must be given: a policy (S, A), or a plan, that is known to keep the limits, and its slack"
        )
    distributions = as_distributions(getattr(given, "policy", given), "baseline", n_states, n_actions)
    return np.asarray(distributions / distributions.sum(axis=1, keepdims=True))


def as_slack(given: Any, m: int) -> Floats:
    """Return the slack for every constraint, (m,), after a check."""
    if given is None and m:
        raise AgentError("slack must be given: by how much the baseline stays below each limit")
    slack = np.broadcast_to(as_amounts(0.0 if given is None else given, "slack", m), (m,)).copy()
    if not (slack > 0).all():
        raise AgentError(f"slack must be above 0: by how much the baseline stays below each limit; got {quoted(given)}")
    return slack


def warn_of_impossible_slack(promised: Floats, least: Floats) -> None:
    """Warn if the averages promised for the baseline, (m,), are below the least costs of any round, (m,)."""
    for i in np.flatnonzero(promised < least - STILL * np.maximum(1.0, np.abs(least))):
        warnings.warn(
            f"slack is too large: the baseline cannot cost {promised[i]:.6g} a round on average, since no round costs "
            f"less than {least[i]:.6g} (constraint {i + 1}); nothing that this agent certifies can be trusted",
            BaselineWarning,
            stacklevel=3,
        )


def as_span(given: Any, m: int, n_states: int, *, by_state: bool) -> Floats | None:
    """Return the span for every constraint, (m,), or for every constraint and state, (m, S), after a check.

    ``by_state``: whether the latter is allowed.
    """
    if given is None:
        return None
    if np.ndim(given) < 2 or not by_state:
        return np.broadcast_to(as_amounts(given, "span", m), (m,)).copy()
    span: Floats = np.ascontiguousarray(as_numbers(given, "span"))
    if span.shape != (m, n_states) or not ((span >= 0) & np.isfinite(span)).all():
        raise AgentError(
            f"span must hold numbers from 0 on: one, one per threshold ({m}), or one per threshold and state, "
            f"{(m, n_states)}; got shape {span.shape}"
        )
    return span
