r"""Regret and constraint violation of a run, in the variants used in the literature.

.. math:: R(T) = \sum_{t \le T} (c_0(s_t, a_t) - J^*), \qquad V_i(T) = \sum_{t \le T} (c_i(s_t, a_t) - \tau_i)

Both are signed: a run may be ahead of :math:`J^*` by violating a constraint. The paper's BR+ takes the positive part of
every single step, which for 0/1 costs grows linearly even for the optimal policy; the paper's plots show another
quantity, see ``paper_regret``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats, Ints
from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError
from psconrl.learning.argument_checks import as_count
from psconrl.planning.plan import Plan
from psconrl.planning.proof.certificate import Status
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
    _need_comparable("regret", trace, plan)
    aims = targets(plan.costs[0], trace.thresholds)
    signed = signed_regret(trace.cumulative, trace.rounds, aims)
    log, strong = trace.policies, None
    if len(log):
        strong = strong_regret(log.costs, log.length, aims, np.array([sum(log.length)]))[-1]
    return Regret(trace.rounds, signed[:, 0], signed[:, 1:], trace.largest_excess, strong)


def paper_regret(traces: Sequence[Trace], plan: Plan, window: int) -> tuple[Ints, Floats]:
    """Return the curves of the paper's figures, only for comparison with them: (rounds, curves (runs, n, m+1)).

    Each run has its own curves: the positive part of a difference, summed over rounds. The difference is the run's
    average cost over the last ``window`` rounds minus the target, from the first round with a full window on. The
    paper shows the mean and the standard deviation over runs. All traces must share their checkpoints.
    """
    window = as_count(window, "window", ConfigError)
    if not isinstance(traces, Sequence) or not traces:
        raise ConfigError(f"paper_regret needs a list of traces, at least one; got {quoted(traces)}")
    for trace in traces:
        _need_comparable("paper_regret", trace, plan)
    rounds = traces[0].rounds
    if any(not np.array_equal(trace.rounds, rounds) for trace in traces):
        raise ConfigError("paper_regret needs traces with the same checkpoints")
    totals = np.array([trace.cumulative for trace in traces])
    aims = targets(plan.costs[0], traces[0].thresholds)
    curves = [paper_curve(totals[:, :, i], rounds, window, aim) for i, aim in enumerate(aims)]
    return rounds, np.stack(curves, axis=-1)


def _need_comparable(measure: str, trace: Any, plan: Any) -> None:
    """Raise an error that names the measure unless a trace and an optimal plan of its model are given."""
    if not isinstance(trace, Trace):
        raise ConfigError(f"{measure} needs a trace, as psconrl.simulate returns it; got {type(trace).__name__}")
    if not isinstance(plan, Plan):
        raise ConfigError(f"{measure} needs a plan of the model, as psconrl.plan returns it; got {type(plan).__name__}")
    if plan.status is Status.INFEASIBLE:
        raise ConfigError(f"{measure} needs an optimum; this plan is infeasible")
    _need_same_model(trace, plan)


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


def paper_curve(totals: Floats, rounds: Ints, window: int, aim: ArrayLike) -> Floats:
    r"""Return the paper's curves (..., n) of runs with cumulative costs ``totals`` (..., n) and aims (...).

    .. math:: \sum_{t = w}^{T} \Big[ \frac{1}{w} \sum_{u = t - w + 1}^{t} c(s_u, a_u) - \text{aim} \Big]_+

    Windows that are not full are left out, so that a curve is 0 before round :math:`w`. It is exact if every round is
    a checkpoint. Otherwise the cost counts as the same in all rounds between two checkpoints.
    """
    if not totals.size or window > rounds[-1]:
        return np.zeros_like(totals)
    grid = np.unique(np.concatenate([[window], rounds, rounds + window]))  # where a moving average may bend
    grid = grid[(grid >= window) & (grid <= rounds[-1])]
    known, ends = np.append(0, rounds), np.stack([grid, grid - window])
    sums = np.array([np.interp(ends, known, np.append(0.0, row)) for row in totals.reshape(-1, rounds.size)])
    excess = (sums[:, 0] - sums[:, 1]) / window - np.broadcast_to(aim, totals.shape[:-1]).reshape(-1, 1)
    parts = positive_sums(excess[:, :-1], excess[:, 1:], np.diff(grid))
    curve = np.cumsum(np.column_stack([np.zeros(len(sums)), np.maximum(excess[:, 0], 0.0), parts]), axis=1)
    return np.asarray(curve[:, np.searchsorted(grid, rounds, side="right")]).reshape(totals.shape)


def positive_sums(first: Floats, last: Floats, n: Ints) -> Floats:
    r"""Return :math:`\sum_{j=1}^n [x_0 + j (x_n - x_0) / n]_+` for :math:`x_0` = ``first``, :math:`x_n` = ``last``.

    >>> positive_sums(np.array([-1.0, 3.0]), np.array([3.0, -1.0]), np.array([4, 4])).tolist()  # 0 + 1 + 2 + 3, 2 + 1
    [6.0, 3.0]
    """
    slope = (last - first) / n
    crossing = np.divide(-first, slope, out=np.zeros_like(slope), where=first * last < 0)
    begin = np.where(first < 0, np.floor(crossing) + 1, 1)
    end = np.where(last < 0, np.ceil(crossing) - 1, n)
    total = (end - begin + 1) * (first + slope * (begin + end) / 2)
    return np.asarray(np.where((first > 0) | (last > 0), np.maximum(total, 0.0), 0.0))
