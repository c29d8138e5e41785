r"""Regret and constraint violation of a run, in the variants used in the literature.

.. math:: R(T) = \sum_{t \le T} (c_0(s_t, a_t) - J^*), \qquad V_i(T) = \sum_{t \le T} (c_i(s_t, a_t) - \tau_i)

Both are signed: a run may be ahead of :math:`J^*` by violating a constraint. The paper's BR+ takes the positive part of
every single step, which for 0/1 costs grows linearly even for the optimal policy; the paper's plots show another
quantity, see ``paper_regret``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from psconrl.arrays import Floats, Ints
from psconrl.errors import ConfigError
from psconrl.planning.plan import Plan
from psconrl.planning.proof import Status
from psconrl.simulation.trace import Trace

THRESHOLD_ROUNDING = 1e-12  # relative error of a threshold that was written and read again, or converted to other units


@dataclass(frozen=True, eq=False)
class Regret:
    """Regret and violation at the checkpoints of a trace."""

    rounds: Ints  # (n,)
    regret: Floats  # (n,) signed, of the objective as a cost
    violation: Floats  # (n, m) signed
    worst_violation: Floats  # (n, m) largest over all rounds so far, not only checkpoints; at least 0
    strong: Floats | None  # (m+1,) sum over policies of T_k [J(pi_k) - target]+, if they were evaluated

    @property
    def positive_regret(self) -> Floats:
        """Positive part of the cumulative regret."""
        return np.maximum(self.regret, 0.0)

    @property
    def positive_violation(self) -> Floats:
        """Positive part of the cumulative violation."""
        return np.maximum(self.violation, 0.0)

    @property
    def final(self) -> tuple[float, Floats]:
        """Regret and violations at the end."""
        if not self.rounds.size:
            return 0.0, np.zeros(self.violation.shape[1])
        return float(self.regret[-1]), self.violation[-1]


def regret(trace: Trace, plan: Plan) -> Regret:
    """Return the regret and the violations of a run, relative to the optimal plan of the model it was played on.

    ``trace``: the result of ``psconrl.simulate``. ``plan``: the plan of that model. A plan of another model, or for
    other thresholds, is refused. For a run in a Gymnasium environment, whose model is unknown, only the sizes are
    compared.

    >>> import psconrl
    >>> model = psconrl.load("marsrover-4x4")
    >>> best = psconrl.plan(model)
    >>> trace = psconrl.simulate(model, psconrl.PSConRL(16, 4, model.thresholds, model.costs, seed=0), 1000, seed=0)
    >>> bool(psconrl.regret(trace, best).regret[-1] < 300)
    True
    """
    if not isinstance(trace, Trace):
        raise ConfigError(f"regret needs a trace, as psconrl.simulate returns it; got {type(trace).__name__}")
    if not isinstance(plan, Plan):
        raise ConfigError(f"regret needs a plan of the model, as psconrl.plan returns it; got {type(plan).__name__}")
    if plan.status is Status.INFEASIBLE:
        raise ConfigError("regret needs an optimum; this plan is infeasible")
    _need_same_model(trace, plan)
    aims = targets(plan.costs[0], trace.thresholds)
    signed = signed_regret(trace.cumulative, trace.rounds, aims)
    log, strong = trace.policies, None
    if len(log):
        strong = strong_regret(log.costs, log.length, aims, np.array([sum(log.length)]))[-1]
    return Regret(trace.rounds, signed[:, 0], signed[:, 1:], trace.largest_excess, strong)


def paper_regret(traces: Sequence[Trace], plan: Plan, window: int) -> tuple[Ints, Floats]:
    """Return the curves of the paper's figures, only for comparison with them: (rounds, curves (n, m+1)).

    A curve sums over rounds the positive part of a difference: the mean over runs of a cost, averaged over the last
    ``window`` rounds, minus its target. All traces must share evenly spaced checkpoints.
    """
    rounds = traces[0].rounds
    if any(not np.array_equal(trace.rounds, rounds) for trace in traces):
        raise ConfigError("paper_regret needs traces with the same checkpoints")
    for trace in traces:
        _need_same_model(trace, plan)
    mean = np.mean([trace.cumulative for trace in traces], axis=0)
    aims = targets(plan.costs[0], traces[0].thresholds)
    curves = [paper_curve(moving_average(mean[:, i], rounds, window), aim, rounds) for i, aim in enumerate(aims)]
    return rounds, np.column_stack(curves)


def _need_same_model(trace: Trace, plan: Plan) -> None:
    """Raise an error if the plan is recognisably of another model than the trace."""
    if plan.costs.size != trace.cumulative.shape[1]:
        raise ConfigError(f"the plan has {plan.costs.size} costs, the trace {trace.cumulative.shape[1]}")
    known = trace.provenance
    played = known.get("states", plan.policy.shape[0]), known.get("actions", plan.policy.shape[1])
    if played != plan.policy.shape:
        raise ConfigError(
            f"the plan is of a model with {plan.policy.shape[0]} states and {plan.policy.shape[1]} actions, the run "
            f"was played on one with {played[0]} and {played[1]}; give psconrl.plan of the model that was played"
        )
    if "model" not in known:
        return
    if plan.model and plan.model != known["model"]:
        raise ConfigError(
            "the plan is of a model of the same size with other transitions or costs; give psconrl.plan of the model "
            "that was played"
        )
    if not np.allclose(plan.thresholds, trace.thresholds, rtol=THRESHOLD_ROUNDING, atol=0.0):
        raise ConfigError(
            f"the plan is for thresholds {plan.thresholds.tolist()}, the run was played under "
            f"{trace.thresholds.tolist()}; give psconrl.plan of the model that was played"
        )


# The arithmetic, on arrays in place of traces and plans.


def targets(optimum: ArrayLike, thresholds: ArrayLike) -> Floats:
    """Return the target of each cost, (..., m+1): the optimum, then the thresholds."""
    return np.concatenate([np.asarray(optimum, dtype=np.float64)[..., None], np.asarray(thresholds)], axis=-1)


def signed_regret(cumulative: Floats, rounds: ArrayLike, aims: Floats) -> Floats:
    """Return regret and violations (..., n, m+1): cumulative costs after ``rounds`` (n,) minus ``rounds * aims``."""
    return cumulative - np.asarray(rounds)[..., None] * aims[..., None, :]


def largest_excess(cumulative: Floats, rounds: ArrayLike, thresholds: Floats) -> Floats:
    """Return the largest violation over the checkpoints so far, at least 0: (n, m)."""
    excess = np.asarray(cumulative).reshape(-1, thresholds.size + 1)[:, 1:] - np.asarray(rounds)[:, None] * thresholds
    return np.asarray(np.maximum.accumulate(np.maximum(excess, 0.0), axis=0))


def strong_regret(costs: ArrayLike, lengths: ArrayLike, aims: Floats, rounds: Ints) -> Floats:
    r"""Return the strong regret at ``rounds``: :math:`\sum_k T_k [J_i(\pi_k) - \text{aim}_i]_+`, (n, m+1).

    ``costs``: (K, m+1), the exact averages of all policies played, each for ``lengths`` rounds. The regret grows
    linearly while a policy is played.
    """
    excess, length = np.maximum(np.asarray(costs) - aims, 0.0), np.asarray(lengths)
    ends = np.append(0, np.cumsum(length))
    totals = np.vstack([np.zeros(excess.shape[1]), np.cumsum(length[:, None] * excess, axis=0)])
    return np.column_stack([np.interp(rounds, ends, total) for total in totals.T])


def moving_average(totals: Floats, rounds: Ints, window: int) -> Floats:
    """Return averages (..., n) over the last ``window`` rounds, from cumulative sums (..., n) after ``rounds``."""
    grid = np.append(0, rounds)
    lag = np.maximum(rounds - window, 0)
    rows = totals.reshape(-1, rounds.size)
    before = np.array([np.interp(lag, grid, np.append(0.0, row)) for row in rows]).reshape(totals.shape)
    return np.asarray((totals - before) / (rounds - lag))


def paper_curve(moving: Floats, aim: float, rounds: Ints) -> Floats:
    """Return the paper's curve (n,): the excess of a moving average (n,) over its aim, summed over rounds."""
    return np.asarray(np.cumsum(np.maximum(moving - aim, 0.0) * np.diff(rounds, prepend=0)))
