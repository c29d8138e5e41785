r"""A test of a system's costs: are the realised averages those that plans are made with?

In every round the system promises the expected cost :math:`\bar c_{\theta}(s,a)` of its state and action. If it is
right, what was paid beyond that is a martingale at the true parameters,

.. math:: M(\theta) = \sum_i \big(c_i - \bar c_\theta(s_i,a_i)\big).

A mean over 20 scales :math:`\lambda_j = 2^{-j} / b`, with the largest range b of the cost in a pair, gives the e-value

.. math:: E = \frac1{40} \sum_{j < 20} \exp\big(\lambda_j |M| - \lambda_j^2 V\big), \qquad
          V = (e - 2) \sum_i \mathrm{Var}_\theta(c_i) + \tfrac12 \sum_k (M_k - M_{k-1})^2,

since :math:`e^x \le 1 + x + (e-2) x^2` for :math:`x \le 1` (Freedman 1975). The second sum, over episodes, allows for
costs that were measured with a symmetric error (de la Pena 1999), and for a variance that is not well known yet.

The true parameter is unknown. It lies in an interval :math:`\{\theta: m(n) < K e^{\ell_\theta(n)} / \alpha\}`
uniformly over time (``dependence`` has m and the log-likelihood), and |M| is lowered by how much it varies over the
intervals, one parameter after the other. So an error of learning is no alarm; an interval is as wide as what was
seen of its noise is little. With several unknown parameters in one cost, products of their errors are neglected.

**Found**: a cost whose average, in the states and actions that occurred, is not that of its rule. Without noise and
with a constant error, that takes about 25 episodes of equal length.
**Not found**: averages that are missed because other states occur than a plan expects; the tests of the noise and the
``Watchdog`` are for these.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.saved_fields import read_fields, reals
from psconrl.kernels.arithmetic import special
from psconrl.learning.posterior.checks.dependence import log_sum_exp
from psconrl.learning.posterior.checks.distribution_check import FALSE_ALARMS
from psconrl.learning.posterior.counts import LARGEST_SUM, Counts
from psconrl.model.matrix_product import product
from psconrl.systems.events import EventClock
from psconrl.systems.randomness import Parameters
from psconrl.systems.structure import Structure
from psconrl.systems.vocabulary import Vocabulary

SCALES = 20  # number of the lambda
QUADRATIC = math.e - 2.0
LEAST_RANGE = 0.1  # of a cost, relative to its size: so large is that of a cost without noise taken to be
COSTS_AT_ONCE = 1_000_000

Intervals = Callable[[float], dict[str, list[Floats]]]  # given log(1/alpha): by parameter, the ends of its set


class CostCheck:
    """The test of every cost."""

    def __init__(self, structure: Structure, words: Vocabulary | None) -> None:
        self._structure = structure
        m = len(structure.fixed_costs)
        self._names = tuple(f"cost {i}" for i in range(m)) if words is None else words.costs
        self._signs = np.ones(m) if words is None else np.array(words.signs)
        self._beyond: Floats = np.zeros(m)  # M at the last call of note
        self._squares: Floats = np.zeros(m)  # sum of its squared changes
        self._lambdas: Floats | None = None  # (m, SCALES)

    def update(self, doubts: dict[str, str], counts: Counts, near: Parameters, intervals: Intervals) -> None:
        """Put costs that are not as expected into the table of doubts."""
        logs, expected = self.evidence(counts, near, intervals)
        n, paid = float(counts.visits.sum()), counts.cost_sums.sum(axis=1)
        bound = special.log(2.0 * len(self._names) / FALSE_ALARMS)
        known = (counts.unknown_costs == 0) & (not counts.noise.sojourns)  # sojourns have costs of their own
        for i, name in enumerate(self._names):
            if known[i] and logs[i] >= bound and f"cost {name}" not in doubts:
                doubts[f"cost {name}"] = (
                    f"{name} was {self._signs[i] * paid[i] / n:.4g} a round on average, and by the system's own rules "
                    f"it is {self._signs[i] * expected[i] / n:.4g} in the states and actions that occurred: check its "
                    "expression, and the noise in it"
                )

    def note(self, counts: Counts, near: Parameters) -> Floats:
        """Add the rounds since the last call to M, and to the squares of its changes; return the expected sums."""
        expected = self._expected(counts, near)
        beyond = counts.cost_sums.sum(axis=1) - expected
        self._squares += (beyond - self._beyond) ** 2
        self._beyond = beyond
        return expected

    def evidence(self, counts: Counts, near: Parameters, intervals: Intervals) -> tuple[Floats, Floats]:
        """Return log E of every cost, and the sums that were expected under the parameters ``near``."""
        expected = self.note(counts, near)
        beyond = self._beyond
        spread = QUADRATIC * self._variance(counts, near) + 0.5 * self._squares
        slack = self._slack(counts, near, expected, intervals, beyond**2 > spread)
        within = np.maximum(np.abs(beyond) - slack, 0.0)
        scales = self._scales()
        logs = scales * within[:, None] - scales**2 * spread[:, None] - special.log(2.0 * SCALES)
        return np.array([log_sum_exp(row) for row in logs]), expected

    def _expected(self, counts: Counts, parameters: Parameters) -> Floats:
        costs = self._structure.costs(parameters).reshape(len(self._names), -1)
        return np.asarray(product(np.ascontiguousarray(costs), counts.visits.astype(np.float64)))

    def _slack(self, counts: Counts, near: Parameters, expected: Floats, intervals: Intervals, wanted: Any) -> Floats:
        """Return how far the expected sums may be from those at the true parameters; nothing if none is wanted."""
        slack = np.zeros(len(expected))
        priors = self._structure.randomness.priors
        if not priors or not wanted.any():
            return slack
        for key, ends in intervals(special.log(2.0 * len(priors) / FALSE_ALARMS)).items():
            clock = self._structure.randomness
            if isinstance(clock, EventClock):
                ends = [np.minimum(end, clock.largest(key, near)) for end in ends]
            moved = [np.abs(self._expected(counts, near | {key: end}) - expected) for end in ends]
            slack += np.max(moved, axis=0)
        return slack

    def _variance(self, counts: Counts, near: Parameters) -> Floats:
        """Return the sum of the variances of every cost in all rounds."""
        structure, total = self._structure, np.zeros(len(self._names))
        visited = np.flatnonzero(counts.visits)
        table = structure.table(near)
        step = COSTS_AT_ONCE // table.shape[1] + 1
        for i in range(len(total)):
            every = structure.paid(i)
            if every is None:
                continue
            for k in range(0, visited.size, step):
                pairs = visited[k : k + step]
                shares, paid, ones = table[structure.contexts[pairs]], every[pairs], np.ones(table.shape[1])
                means = product(shares * paid, ones)
                variances = np.maximum(product(shares * paid**2, ones) - means**2, 0.0)
                total[i] += float(product(variances, counts.visits[pairs].astype(np.float64)))
        return total

    def _scales(self) -> Floats:
        """Return the lambda of every cost, which depend on the system only."""
        if self._lambdas is None:
            structure = self._structure
            costs = np.abs(structure.costs(structure.randomness.initial())).reshape(len(self._names), -1)
            widest = LEAST_RANGE * np.where(costs.max(axis=1) > 0.0, costs.max(axis=1), 1.0)
            possible = structure.randomness.possible()[structure.contexts]
            for i in range(len(self._names)):
                paid = structure.paid(i)
                if paid is not None:
                    high = np.where(possible, paid, -np.inf).max(axis=1)
                    widest[i] = max(widest[i], float((high - np.where(possible, paid, np.inf).min(axis=1)).max()))
            self._lambdas = 0.5 ** np.arange(SCALES, dtype=np.float64) / widest[:, None]
        return self._lambdas

    def state(self) -> dict[str, Any]:
        """Return what the test remembers."""
        return {"beyond": self._beyond, "squares": self._squares}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        shape = self._beyond.shape
        self._beyond, self._squares = read_fields(
            state, {"beyond": reals(shape, -LARGEST_SUM, LARGEST_SUM), "squares": reals(shape, 0.0)}
        ).values()
