r"""The policy with a guarantee that needs no prior: limits hold in every model of a confidence set.

The set contains the true model with probability :math:`1 - \delta`, whatever chose the actions and whenever the log was
ended (``posterior.confidence_intervals``; for a system, sets of its noise: ``posterior.noise_bounds``). For any
function h,

.. math:: q_i(s,a) = \bar c_i(s,a) + \max_{p \in \mathcal C(s,a)} p \cdot h_i, \qquad
          J_i(\pi) \le \max_s \Big\{ \sum_a \pi(a|s) q_i(s,a) - h_i(s) \Big\}

in every model of the set (``planning.robust.pessimism``). Policies are planned in the estimated model for costs that
include what uncertainty may add, :math:`q_i - \hat p \cdot h_i`, and for thresholds that are lowered by what bounds
still exceed them; the one of lowest proven objective whose limits are proven is returned. The price of the guarantee is
the difference of its expected objective to that of the recommendation of ``improvement``.

Without a system and without a ``support``, a state that was never visited might be entered for ever from anywhere, so
that nothing is proven beyond the largest costs.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Bools, Floats
from psconrl.base.sizes import SAFE_DENSE_ENTRIES
from psconrl.data.posterior.noise_posterior import NoisePosterior
from psconrl.data.rounds.recorded import Recorded
from psconrl.errors import SolverError
from psconrl.kernels.arithmetic import special
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.safe.confidence_intervals import Intervals, highest_means
from psconrl.learning.safe.confidence_sets import NoiseKnowledge, Occasion
from psconrl.model.cmdp import CMDP
from psconrl.planning.drafts import Drafts
from psconrl.planning.robust.noise_box import NoiseBox
from psconrl.planning.robust.pessimism import WorstCase, largest_means, worst_average

ROBUST_PLANS = 6  # plans, each for the uncertainty of the last


class ConfidenceSet(NamedTuple):
    """Models that a log does not exclude, and the estimated one among them."""

    distributions: Intervals | NoiseBox
    costs: Floats  # (m+1, S, A) upper bounds of what costs do not owe to the noise
    paid: tuple[Floats | None, ...]  # (m+1) of (S*A, W): what outcomes of the noise add to them, or None
    lowest: Floats  # (S, A) the same lower bounds of the objective
    model: CMDP  # the estimates

    def worst(self, policy: Floats, i: int, start: Floats | None, limit: float = -np.inf) -> WorstCase:
        """Bound an average of a policy (S, A) from above."""
        return worst_average(policy, self.costs[i], self.distributions, limit, start=start, paid=self.paid[i])

    def least(self, policy: Floats) -> float:
        """Bound the objective of a policy (S, A) from below."""
        paid = None if self.paid[0] is None else -self.paid[0]
        return -worst_average(policy, -self.lowest, self.distributions, paid=paid).bound

    def feared(self, biases: Floats) -> Floats:
        """Return the costs (m+1, S, A) with what uncertainty may add, for functions h (m+1, S)."""
        _, S, A = self.costs.shape
        found = np.empty_like(self.costs)
        for i, h in enumerate(biases):
            most = self.costs[i].ravel() + largest_means(self.distributions, h, self.paid[i])
            found[i] = np.maximum((most - self.model.transition @ h).reshape(S, A), self.model.costs[i])
        return found


@dataclass(frozen=True, eq=False)
class RobustPlan:
    """A policy whose limits are proven without a prior, and what is proven of it."""

    policy: Floats | None  # (S, A); None if the limits of no policy found are proven
    bounds: Floats  # (m+1,) the highest averages in the set, of the policy or of the one that came nearest
    today_at_least: float  # the lowest objective of today's policy in the set
    delta: float  # probability that the set fails

    @property
    def no_worse(self) -> bool:
        """True if the objective is proven to be no worse than today's."""
        return self.policy is not None and bool(self.bounds[0] <= self.today_at_least)


def set_of_rows(
    counts: Counts,
    thresholds: Floats,
    start: Floats,
    *,
    delta: float = 0.05,
    costs: Floats | None = None,
    ranges: Floats | None = None,
    support: csr_array | None = None,
) -> ConfidenceSet:
    """Return the set of a log without a system.

    ``costs`` (m+1, S, A): if they are known; else ``ranges`` (m+1, 2) of every cost in a round. ``support`` (S*A, S):
    the possible transitions, if they are known.
    """
    S, A = counts.n_states, counts.n_actions
    visits, seen = counts.visits, counts.moves
    possible = seen if support is None else csr_array(support, copy=True)
    if support is not None:
        possible.data = np.zeros(possible.nnz, dtype=np.int64)
        possible = _with_zeros(possible, seen)
    q = len(counts.cost_sums) if costs is None else len(costs)
    intervals = S * S * A if support is None else possible.nnz
    log_inverse = special.log((intervals + (0 if costs is not None else q * S * A)) / delta)
    distributions = Intervals.of_moves(possible, visits, log_inverse)
    if support is not None:
        distributions.unseen[:] = 0.0
    if costs is None:
        assert ranges is not None
        means = counts.mean_costs()
        high = highest_means(counts, ranges, log_inverse).reshape(q, S, A)
        mirrored = Counts(S, A, 1)
        mirrored.cost_sums, mirrored.visits = -counts.cost_sums[:1], visits
        low = -highest_means(mirrored, -ranges[:1, ::-1], log_inverse).reshape(S, A)
    else:
        means, high, low = costs, costs, costs[0]
    model = _estimated(counts, means, thresholds, start, possible if support is not None else None)
    return ConfidenceSet(distributions, high, (None,) * q, low, model)


def _with_zeros(pattern: csr_array, seen: csr_array) -> csr_array:
    """Return counts with the stored entries of a pattern, whose own values are zero."""
    S = pattern.shape[1]
    numbers = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr)) * S + pattern.indices
    own = np.repeat(np.arange(seen.shape[0]), np.diff(seen.indptr)) * S + seen.indices
    every, place = np.unique(np.concatenate([numbers, own]), return_inverse=True)
    times = np.zeros(every.size, dtype=np.int64)
    times[place[numbers.size :]] = seen.data
    indptr = np.searchsorted(every, np.arange(pattern.shape[0] + 1) * S)
    return csr_array((times, (every % S).astype(np.int32), indptr.astype(np.int32)), shape=pattern.shape)


def _estimated(counts: Counts, means: Floats, thresholds: Floats, start: Floats, possible: csr_array | None) -> CMDP:
    """Return the model of the frequencies; what was never tried is not available, unless its support is known."""
    S, A = counts.n_states, counts.n_actions
    if possible is None:
        tried: Bools = counts.pairs > 0
        home = int(counts.pairs.sum(axis=1).argmax())
        untried = np.flatnonzero(counts.visits == 0)
        seen = counts.moves
        rows = np.concatenate([np.repeat(np.arange(S * A), np.diff(seen.indptr)), untried])
        columns = np.concatenate([seen.indices, np.full(untried.size, home)])
        data = np.concatenate([seen.data / np.repeat(counts.visits, np.diff(seen.indptr)), np.ones(untried.size)])
        available = tried | ~tried.any(axis=1, keepdims=True)
    else:
        sizes = np.diff(possible.indptr)
        rows, columns = np.repeat(np.arange(S * A), sizes), possible.indices
        data = (possible.data + np.repeat(1.0 / sizes, sizes)) / np.repeat(counts.visits + 1.0, sizes)
        available = np.ones((S, A), dtype=np.bool_)
    matrix = csr_array((data, (rows, columns)), shape=(S * A, S))
    dense = S * S * A <= SAFE_DENSE_ENTRIES
    return CMDP(matrix.toarray() if dense else matrix, means, thresholds, initial=start, available=available)


def set_of_noise(posterior: NoisePosterior, delta: float = 0.05) -> ConfidenceSet:
    """Return the set of a log with a system: bounds on the probabilities of its noise."""
    structure = posterior.structure
    S, A = structure.n_states, structure.n_actions
    thresholds = np.asarray(posterior.system.thresholds)
    occasion = Occasion(0, thresholds, posterior.behaviour.mean(), None)
    view, _ = NoiseKnowledge(structure).view(posterior.counts, delta, occasion)
    fixed = structure.fixed_costs.reshape(-1, S, A)
    paid = structure.paid(0)
    possible = structure.randomness.possible()[structure.contexts]
    first = None if paid is None else np.ascontiguousarray(np.where(possible, paid, 0.0))
    assert isinstance(view.distributions, NoiseBox)
    return ConfidenceSet(
        view.distributions, np.ascontiguousarray(fixed), (first, *view.paid), np.ascontiguousarray(fixed[0]), view.whole
    )


def robust_plan(
    models: ConfidenceSet, thresholds: Floats, today: Floats | None = None, delta: float = 0.05
) -> RobustPlan:
    """Return the policy of lowest proven objective, of those found whose limits hold in every model of a set."""
    q, S = len(models.costs), models.model.n_states
    drafts = Drafts(models.model)
    biases, targets = np.zeros((q, S)), thresholds.copy()
    best: tuple[Floats | None, Floats] = (None, np.full(q, np.inf))
    for _ in range(ROBUST_PLANS):
        try:
            found = drafts.plan(models.feared(biases), targets)
        except SolverError:
            break
        cases = [models.worst(found.policy, i, biases[i]) for i in range(q)]
        biases = np.array([case.bias - case.bias.min() for case in cases])
        bounds = np.array([case.bound for case in cases])
        over = bounds[1:] - thresholds
        proven = bool((over <= 0.0).all())
        nearer = best[0] is None and over.max(initial=-np.inf) < (best[1][1:] - thresholds).max(initial=np.inf)
        if (proven and (best[0] is None or bounds[0] < best[1][0])) or (not proven and nearer):
            best = found.policy if proven else None, bounds
        if not found.feasible and not proven:
            break
        targets = np.minimum(thresholds, targets - over)
    least = -np.inf if today is None else models.least(today)
    return RobustPlan(*best, least, delta)


def observed_ranges(log: Recorded) -> Floats:
    """Return the least and the largest value (m+1, 2) of every cost in a log, as in a model."""
    assert log.costs is not None
    costs = log.costs * log.signs
    low, high = np.nanmin(costs, axis=0), np.nanmax(costs, axis=0)
    return np.column_stack([low, np.where(high > low, high, low + np.maximum(np.abs(low), 1.0) * 1e-9)])
