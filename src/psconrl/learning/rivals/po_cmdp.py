r"""Policy optimisation for ergodic CMDPs (Chen, Jain and Luo 2022, Algorithm 1): no plan, only small steps.

Costs are scaled to losses in [0, 1]; r is one minus the loss of the objective, c that of the constrained cost. Episode
k plays :math:`\pi_k` for H rounds. Then, with the adjusted reward :math:`d = r - (\lambda_k / \eta)\, c`:

- For every state, V(s) is the mean sum of d over windows of N rounds that begin in s, 2N rounds apart, and
  :math:`\hat\beta(s,a) = d(s,a) + \bar p \cdot V` estimates the bias, in the empirical model before the episode.
- A bonus :math:`x(s,a) = \iota\,(1/\sqrt{N^+(s,a)} + \sum_{a'} \pi_k(a'|s)/\sqrt{N^+(s,a')})` is evaluated like a
  reward: u is the bias of :math:`\pi_k` for x, in the model of an L1 ball that is best for it.
- The policy takes a step of mirror descent, :math:`\pi_{k+1} \propto \pi_k \exp(\theta(\hat\beta + u))`, with every
  probability at least 1/T, and the multiplier follows the excess,
  :math:`\lambda_{k+1} = [\lambda_k + \hat J + \epsilon - \tau]` within :math:`[0, \bar\lambda]`, where :math:`\hat J`
  is the mean of c over the last H - N rounds.

Regret :math:`\tilde O(\sqrt T)` and constant violation in ergodic models, if mixing time, hitting time and the gap of a
safe policy are known. All formulas were compared with the paper. It has one constraint; here every constraint has a
multiplier, which is the same for one. The paper finds u by extended value iteration up to 1/T; here it is exact.
"""

import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats, Ints
from psconrl.errors import AgentError, SolverError
from psconrl.kernels.arithmetic import special
from psconrl.learning.argument_checks import (
    as_amounts,
    as_constants,
    as_count,
    as_failure_probability,
    as_nonnegative,
    as_number,
    as_positive,
)
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import uniform_policy
from psconrl.learning.runtime.recording import Recording, Trajectory
from psconrl.model.matrix_product import product
from psconrl.planning.optimism.ball import WHOLE_BALL, evaluate_in_balls


class Tuning(NamedTuple):
    """The numbers of the algorithm, by their names in the paper."""

    H: int  # rounds of an episode
    N: int  # rounds of a window
    theta: float  # step size of the policy
    eta: float  # scale of the multipliers
    bound: float  # largest multiplier
    eps: float  # by which thresholds are tightened, in ranges of the costs
    iota: float  # bonus at one visit
    ball: float  # confidence radius at one visit


class POCMDP(Recording):
    """Policy optimisation with multipliers, for ergodic CMDPs. It must know the horizon.

    ``constants``: "practical", those of the authors' run of 3 million rounds, or "theory", which needs the mixing time
    ``t_mix`` and the hitting time ``t_hit`` in rounds, and ``safe_gap``, by how much a policy can stay below every
    threshold, in units of the costs. Each constant may also be given on its own. Practical are: ``H`` = 300 rounds of
    an episode, ``N`` = 20 of a window, step size ``theta`` = 10 / sqrt(T), scale ``eta`` = sqrt(T) and largest value
    ``bound`` = eta of the multipliers, ``eps`` = 0.01 by which thresholds are tightened, in ranges of the costs.
    ``bonus``: a factor of bonus and confidence radius, 1 as published. ``delta``: failure probability. ``ranges``
    (m+1, 2): the lowest and highest value of every cost; by default those of the known costs, or 0 and 1.
    """

    name: ClassVar[str] = "po-cmdp"
    ranges_include_noise: ClassVar[bool] = False
    keeps_multipliers: ClassVar[bool] = True
    table_bytes: ClassVar[float] = 40.0  # counts, frequencies and the optimistic model

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: Thresholds,
        costs: ArrayLike | None = None,
        *,
        horizon: int,
        constants: str = "practical",
        t_mix: float | None = None,
        t_hit: float | None = None,
        safe_gap: ArrayLike | None = None,
        H: int | None = None,
        N: int | None = None,
        theta: float | None = None,
        eta: float | None = None,
        bound: float | None = None,
        eps: float | None = None,
        bonus: float = 1.0,
        delta: float = 0.05,
        ranges: ArrayLike | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.horizon = as_count(horizon, "horizon")
        self.constants = as_constants(constants)
        self.t_mix = None if t_mix is None else as_number(t_mix, "t_mix", "a number from 1 on", lambda x: x >= 1)
        self.t_hit = None if t_hit is None else as_number(t_hit, "t_hit", "a number from 1 on", lambda x: x >= 1)
        self.safe_gap = None if safe_gap is None else as_amounts(safe_gap, "safe_gap", self.thresholds.size)
        self.H = None if H is None else as_count(H, "H")
        self.N = None if N is None else as_count(N, "N")
        self.theta = None if theta is None else as_positive(theta, "theta")
        self.eta = None if eta is None else as_positive(eta, "eta")
        self.bound = None if bound is None else as_nonnegative(bound, "bound")
        self.eps = None if eps is None else as_nonnegative(eps, "eps")
        self.bonus = as_nonnegative(bonus, "bonus")
        self.delta = as_failure_probability(delta)
        self._scale_costs(ranges)
        self.tuning = self._tuning()
        if self.tuning.H <= self.tuning.N:
            raise AgentError(f"H must exceed N, the rounds of a window; got {self.tuning.H}, {self.tuning.N}")
        self.policy = uniform_policy(self.n_states, self.n_actions)
        self._record(self.tuning.H)

    def _tuning(self) -> Tuning:
        """Return the numbers of the theory or of the authors' run, except those that were given."""
        S, A, T = self.n_states, self.n_actions, self.horizon
        log = special.log(2.0 * S * A * T / self.delta)
        if self.constants == "theory":
            usual = self._theory(log)
        else:
            root = math.sqrt(T)
            usual = Tuning(300, 20, 10.0 / root, root, root, 0.01, 0.0, math.sqrt(0.1))
        H, N = self.H or usual.H, self.N or usual.N
        eta = usual.eta if self.eta is None else self.eta
        bound = usual.bound * eta / usual.eta if self.bound is None else self.bound
        root = self.bonus * usual.ball * math.sqrt(S * log)
        theta = usual.theta if self.theta is None else self.theta
        eps = usual.eps if self.eps is None else self.eps
        return Tuning(H, N, theta, eta, bound, eps, 2.0 * bound * N / eta * root, root)

    def _theory(self, log: float) -> Tuning:
        r"""Return the numbers of the paper's equation (5), with the factor of the bonus, 1, in place of the radius."""
        S, A, T = self.n_states, self.n_actions, self.horizon
        if self.t_mix is None or self.t_hit is None or self.safe_gap is None or not (self.safe_gap > 0).all():
            raise AgentError('constants="theory" needs t_mix, t_hit and a positive safe_gap')
        gap = float(np.min(self.safe_gap / self._scale.units[1:], initial=1.0))
        log2 = special.log(float(T)) / special.log(2.0)
        H = math.ceil(16.0 * self.t_mix * self.t_hit * log2 * log2)
        N = max(1, math.ceil(4.0 * self.t_mix * log2))
        longer = special.log(4.0 * S * A * float(T) ** 3 / self.delta)
        growth = math.sqrt(float(S) * S * A * T) + math.sqrt(float(H) * T) + S * math.sqrt(S) * A * H * longer
        eta = 1.0 + 1024.0 * gap * N * math.sqrt(S) * longer * growth
        bound, K = 40.0 * eta / gap, T / H
        iota = 2.0 * bound * N / eta * math.sqrt(S * log)
        theta = min(1.0 / (4.0 * H * iota), math.sqrt(special.log(float(T)) / (4.0 * K)) / (H * iota))
        return Tuning(H, N, theta, eta, bound, min(gap / 2.0, 3.0 * bound / K), iota, 1.0)

    def _improve(self, played: Trajectory) -> None:
        """Take a step of the policy and of the multipliers, and begin the next episode."""
        S, A, tuning = self.n_states, self.n_actions, self.tuning
        before = self.counts.transitions.copy()
        np.subtract.at(before, (played.pairs, played.successors), 1)
        visits = np.maximum(before.sum(axis=1), 1)
        losses = self._scale.losses(played.costs)
        prices = self.multipliers / tuning.eta
        met = 1.0 - losses[:, 0] - product(losses[:, 1:], prices)
        V = window_values(played.pairs // A, met, tuning.N, S)
        expected = self._rewards(prices) + product(before / visits[:, None], V).reshape(S, A)
        gains = tuning.theta * (expected + self._bonus(before))
        excess = losses[tuning.N :, 1:].mean(axis=0) + tuning.eps - self._scale.thresholds(self.thresholds)
        self.policy = mirror_step(self.policy, gains, min(1.0 / self.horizon, 0.5 / A))
        self.multipliers = np.clip(self.multipliers + excess, 0.0, tuning.bound)
        self._record(tuning.H)

    def _rewards(self, prices: Floats) -> Floats:
        """Return the adjusted rewards (S, A), by the known costs or the means; an untried pair has the lowest costs."""
        losses = self._scale.losses(np.moveaxis(self._known_or_lowest_costs(), 0, -1))
        priced = product(losses[:, :, 1:].reshape(losses[:, :, 0].size, prices.size), prices)
        return np.asarray(1.0 - losses[:, :, 0] - priced.reshape(self.n_states, self.n_actions))

    def _bonus(self, transitions: Ints) -> Floats:
        """Return the values u (S, A) of the bonus; 0 if the optimistic model cannot be settled."""
        S, A, tuning = self.n_states, self.n_actions, self.tuning
        visits = transitions.sum(axis=1)
        if not tuning.ball:
            return np.zeros((S, A))
        width = (1.0 / np.sqrt(np.maximum(visits, 1))).reshape(S, A)
        x = tuning.iota * (width + (self.policy * width).sum(axis=1, keepdims=True))
        frequencies = transitions / np.maximum(visits, 1)[:, None]
        radius = np.where(visits > 0, np.minimum(tuning.ball * width.ravel(), WHOLE_BALL), WHOLE_BALL)
        try:
            return -evaluate_in_balls(frequencies, radius, -x, self.policy).pairs
        except SolverError:
            return np.zeros((S, A))


def window_values(states: Ints, rewards: Floats, N: int, n_states: int) -> Floats:
    """Return the mean sum of rewards in windows of N rounds that begin in each state, 2N rounds apart; 0 if none.

    >>> window_values(np.array([0, 1, 0, 0, 0, 1, 0]), np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]), 2, 3).tolist()
    [25.5, 6.0, 0.0]
    """
    sums = np.concatenate([[0.0], np.cumsum(rewards)])
    values = np.zeros(n_states)
    for state in range(n_states):
        starts = np.flatnonzero(states[: states.size - N] == state)
        total, number, at = 0.0, 0, 0
        while at < starts.size:
            total += sums[starts[at] + N] - sums[starts[at]]
            number += 1
            at = int(np.searchsorted(starts, starts[at] + 2 * N))
        values[state] = total / max(number, 1)
    return values


def mirror_step(policy: Floats, gains: Floats, least: float) -> Floats:
    """Return the policy (S, A) proportional to ``policy * exp(gains)``, with probabilities of at least ``least``.

    This is the step of mirror descent, with the relative entropy, over distributions bounded from below.

    >>> mirror_step(np.array([[0.5, 0.25, 0.25]]), np.array([[0.0, math.log(2.0), -50.0]]), 0.1).round(9).tolist()
    [[0.45, 0.45, 0.1]]
    """
    relative = gains - gains.max(axis=1, keepdims=True)
    weights = policy * special.exp_array(relative)
    bound = np.zeros(policy.shape, dtype=bool)
    while True:
        free = np.where(bound, 0.0, weights)
        share = (1.0 - least * bound.sum(axis=1, keepdims=True)) / free.sum(axis=1, keepdims=True)
        step = np.where(bound, least, free * share)
        if not (step < least).any():
            return step
        bound |= step < least
