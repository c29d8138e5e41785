r"""Upper bounds on the average cost of a policy over a confidence set, valid whenever the iteration is stopped.

For **any** function h of the states let

.. math:: q(s,a) = c(s,a) + \max_{p \in \mathcal C(s,a)} p \cdot h, \qquad
          G = \max_s \Big\{ \sum_a \pi(a|s)\, q(s,a) - h(s) \Big\}.

In every model of the set :math:`c_\pi + P_\pi h - h \le G`; summed along a path, n rounds from any state cost at most
:math:`nG + \max h - \min h` in expectation. So G bounds the long-run average from every state, whatever the classes of
the chain. The span of h bounds the additional cost of the initial rounds. Value iteration finds an h with a small G. It
needs no convergence proof, since h itself is the certificate.

**States that rely on a baseline.** With too little data nothing can be certified. But suppose that for some policy
:math:`\pi_b` a function :math:`0 \le h_b \le H` is known to satisfy :math:`c_b + P_b h_b - h_b \le g_b` everywhere, so
that n rounds of it cost at most :math:`n g_b + H`. Let the policy be :math:`\pi_b` in a set U of states, and there
:math:`h = M + h_b` with M the largest h elsewhere. Then :math:`h \le M + h_b` everywhere, so that in U
:math:`c_b + P_b h - h \le c_b + P_b h_b - h_b \le g_b`, although nothing is known about the transitions. Outside U it
suffices to count every state of U as M + H.

**Sets of noise.** Where a system is known except for the distribution of its noise, the set holds distributions of the
noise instead of rows, and :math:`q(s,a) = c(s,a) + \max_p \sum_w p(w) (c(s,a,w) + h(f(s,a,w)))`. The maximum is
taken in every pair on its own, although the noise is the same in all of them: the bound holds, and may be too large.
Where there are bounds on the probabilities of blocks of joint outcomes, too, the smaller of the two maxima counts.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from psconrl.base.arrays import Bools, Floats, Places
from psconrl.kernels.sets.pessimism import noise_sets, row_sets, worst_case, worst_means
from psconrl.planning.robust.noise_box import NoiseBox
from psconrl.planning.robust.worst_noise import worst_bias
from psconrl.planning.tolerances import BOUND_GAP, BOUND_ROUNDING

BOUND_SWEEPS = 3000  # of value iteration; the bound holds after any number
NOISE_SWEEPS = 50  # the same after policy iteration, which leaves something only if there are several closed classes
Distributions: TypeAlias = tuple[Places, Places, Floats, Floats, Floats]


@dataclass(frozen=True, eq=False)
class WorstCase:
    """A bound on the average of one cost in all models of a set, from every state, and the function that proves it."""

    bound: float
    bias: Floats  # (S,) the h above; in states of U its largest possible value
    values: Floats  # (S, A) q of every pair

    @property
    def span(self) -> float:
        """Span of the bias: the largest expected total cost of the initial rounds beyond the bound."""
        return float(np.ptp(self.bias))


def largest_means(distributions: Distributions | NoiseBox, h: Floats, paid: Floats | None = None) -> Floats:
    """Return the largest p.h of every pair over all distributions p in a set, (S*A,).

    ``paid`` (S*A, W): what outcomes of the noise cost, which is added to h.
    """
    means: Floats = worst_means(_sets(distributions, paid, h.size), h)
    return means


def _sets(distributions: Distributions | NoiseBox, paid: Floats | None, n_states: int) -> Any:
    """Return the sets as the kernels take them."""
    if isinstance(distributions, NoiseBox):
        return noise_sets(*distributions.arrays(paid), n_states)
    return row_sets(*distributions, n_states)


def worst_average(
    policy: Floats,
    costs: Floats,
    distributions: Distributions | NoiseBox,
    limit: float = -np.inf,
    relying: Bools | None = None,
    recovery: float = np.inf,
    start: Floats | None = None,
    sweeps: int = BOUND_SWEEPS,
    paid: Floats | None = None,
) -> WorstCase:
    """Bound the average of costs (S, A) under a policy (S, A) over all transition distributions in a set.

    ``distributions``: row pointers, successors, their lowest and highest probabilities, and the highest of all others,
    as in ``learning.intervals``; or bounds of noise. ``limit``: the iteration stops once it is known on which side of
    this number the bound lies. ``relying``: the states of U, which count ``recovery``, the H above, more than all
    others. ``start``: the initial h. ``paid`` (S*A, W): what outcomes of the noise cost in addition.
    """
    S, A = policy.shape
    states = np.zeros(S, dtype=np.bool_) if relying is None else relying
    bias = np.zeros(S) if start is None else start.copy()
    if states.any() and not np.isfinite(recovery):
        return WorstCase(np.inf, bias, np.full((S, A), np.inf))
    flat = np.ascontiguousarray(costs).ravel()
    reached = flat if paid is None else flat[:, None] + paid
    unit = float(np.ptp(reached)) or 1.0
    if isinstance(distributions, NoiseBox) and not states.any():
        bias = worst_bias(policy, flat, distributions, bias, paid, BOUND_GAP * unit).copy()
        sweeps = min(sweeps, NOISE_SWEEPS)
    sets, played = _sets(distributions, paid, S), np.ascontiguousarray(policy)
    bound = worst_case(sets, played, flat, states, recovery, limit, sweeps, BOUND_GAP * unit, bias)
    values: Floats = worst_means(sets, bias)
    scale = float(np.abs(bias).max() + np.abs(reached).max())
    return WorstCase(bound + BOUND_ROUNDING * scale, bias, (values + flat).reshape(S, A))
