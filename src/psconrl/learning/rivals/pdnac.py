r"""PDNAC (Xu, Ganesh, Mondal, Bai and Aggarwal 2025, arXiv 2505.15138): a primal-dual natural actor-critic.

The policy is a softmax of a table :math:`\theta` (S, A), the critic a table of values, both as the paper's general
parametrisation allows. Costs are scaled to [0, 1]; g is the reward r, one minus the objective, or the slack
:math:`\tau - c` of a constraint. An epoch plays :math:`\pi_\theta` throughout, in two loops of H steps each. A step
draws a level Q from Geom(1/2), plays :math:`2^Q` rounds, or one if that exceeds :math:`T_{max}`, and combines averages
over the first rounds by multilevel Monte Carlo: :math:`x_0 + 2^Q (\bar x_{2^Q} - \bar x_{2^{Q-1}})`, that is, the sum
of the second half minus the sum of the first, plus the first round.

- Critic, from zero: :math:`\eta \leftarrow \eta - c\,\gamma_\xi\,(\eta - g)` for the average, and for the values
  :math:`\zeta(s) \leftarrow \zeta(s) - \gamma_\xi\,(\eta - g + \zeta(s) - \zeta(s'))`.
- Actor, from zero: :math:`\omega \leftarrow \omega - \gamma_\omega\,\psi\,(\psi \cdot \omega - \hat A)`, with the score
  :math:`\psi = \nabla \log \pi(a|s)` and the advantage :math:`\hat A = g - \eta + \zeta(s') - \zeta(s)`.
- Then :math:`\theta \leftarrow \theta + \alpha\,(\omega_r + \lambda\,\omega_c)` and
  :math:`\lambda \leftarrow [\lambda - \beta\,\eta_c]` within :math:`[0, 2/\delta]`, with :math:`\delta` the Slater gap.

Objective and violation converge like :math:`T^{-1/2 + \epsilon}` in ergodic models, with :math:`H = T^\epsilon`. The
paper has no experiments, and leaves open :math:`\epsilon` and the constants in the steps of critic and actor; ``PDNAC``
says what is chosen here. Algorithm and rates were compared with the paper's text. Its displayed formulas could not be
read: the updates above follow from the problems that, by the text, they solve.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats, Ints
from psconrl.base.caps import need
from psconrl.base.saved_fields import integers, need_that, read_fields, reals
from psconrl.errors import AgentError
from psconrl.learning.argument_checks import as_count, as_gap, as_positive
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import uniform_policy
from psconrl.learning.runtime.recording import Recording, Trajectory
from psconrl.learning.runtime.softmax import softmax
from psconrl.model.matrix_product import product

MOST_LOGIT = 500.0  # of theta, beyond which the softmax is 0 or 1 anyway


class PDNAC(Recording):
    r"""PDNAC, a natural actor-critic with multipliers, on tables. It must know the horizon.

    ``alpha``: step of the policy, by default 1 / sqrt(T). ``beta``: step of the multipliers, by default alpha. ``H``:
    steps of critic and actor in an epoch, by default T^(1/4); the paper has T^epsilon. ``gap``: the Slater gap, by
    how much one policy can stay below every threshold, in units of the costs, a number or one per threshold: for the
    theory, the same share of the range of every cost. Multipliers are at most 2 / gap in ranges of the costs.
    ``critic_rate``, ``actor_rate``: steps of critic and actor, where the paper has 2 log(T) / (lambda H) and
    2 log(T) / (mu H) with constants lambda, mu of the model. ``average_rate``: the factor c of the step of the average.
    ``longest``: the most rounds of a step, where the paper has the horizon, whose noise is large. ``ranges``: as in
    Triple-QA.
    """

    name: ClassVar[str] = "pdnac"
    theory_constants: ClassVar[tuple[str, ...]] = ("gap",)
    ranges_include_noise: ClassVar[bool] = False
    keeps_multipliers: ClassVar[bool] = True

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: Thresholds,
        costs: ArrayLike | None = None,
        *,
        horizon: int,
        alpha: float | None = None,
        beta: float | None = None,
        H: int | None = None,
        gap: ArrayLike = 0.1,
        critic_rate: float = 0.3,
        actor_rate: float = 0.3,
        average_rate: float = 1.0,
        longest: int = 16,
        ranges: ArrayLike | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.horizon = as_count(horizon, "horizon")
        self.alpha = None if alpha is None else as_positive(alpha, "alpha")
        self.beta = None if beta is None else as_positive(beta, "beta")
        self.H = math.ceil(math.sqrt(math.sqrt(self.horizon))) if H is None else as_count(H, "H")
        self.gap = as_gap(gap, self.thresholds.size)
        self.critic_rate = as_positive(critic_rate, "critic_rate")
        self.actor_rate = as_positive(actor_rate, "actor_rate")
        self.average_rate = as_positive(average_rate, "average_rate")
        self.longest = as_count(longest, "longest")
        self._scale_costs(ranges)
        self.logits: Floats = np.zeros((self.n_states, self.n_actions))
        self.policy = uniform_policy(self.n_states, self.n_actions)
        self._begin_epoch()

    @property
    def steps(self) -> tuple[float, float]:
        """The steps alpha and beta of policy and multipliers."""
        alpha = 1.0 / math.sqrt(self.horizon) if self.alpha is None else self.alpha
        return alpha, alpha if self.beta is None else self.beta

    @property
    def ceilings(self) -> Floats:
        """The largest multipliers (m,)."""
        return 2.0 * self._scale.units[1:] / self.gap

    def _begin_epoch(self) -> None:
        """Draw the rounds (2H,) of every step of the critic, then of the actor."""
        need(100.0 * self.H, f"an epoch of {2 * self.H:,} steps", AgentError)
        levels = np.minimum(1 - np.frexp(self.rng.random(2 * self.H))[1], 62).astype(np.int64)
        rounds = np.left_shift(np.int64(1), levels)
        self._rounds: Ints = np.where(rounds <= self.longest, rounds, 1)
        self._record(int(self._rounds.sum()))

    def _improve(self, played: Trajectory) -> None:
        """Estimate the critic and the natural gradient, take a step, and begin the next epoch."""
        A = self.n_actions
        losses = self._scale.losses(played.costs)
        aims = np.concatenate([[1.0], self._scale.thresholds(self.thresholds)])
        gains = np.ascontiguousarray((aims - losses).T)
        states, actions, ends = played.pairs // A, played.pairs % A, np.cumsum(self._rounds)
        samples = [
            (states[a:b], actions[a:b], played.successors[a:b], gains[:, a:b], level_weights(b - a))
            for a, b in zip(ends - self._rounds, ends, strict=True)
        ]
        averages, values = np.zeros(self.n_costs), np.zeros((self.n_states, self.n_costs))
        for s, _, following, g, w in samples[: self.H]:
            errors = averages[:, None] - g + (values[s] - values[following]).T
            averages = averages - self.average_rate * self.critic_rate * (averages - (w * g).sum(axis=1))
            np.subtract.at(values, s, (self.critic_rate * w * errors).T)
        directions = np.zeros((self.n_states, self.n_costs, A))
        for s, a, following, g, w in samples[self.H :]:
            advantages = g - averages[:, None] + (values[following] - values[s]).T
            scores = np.eye(A)[a] - self.policy[s]
            fitted = (scores[:, None] * directions[s]).sum(axis=2)
            step = self.actor_rate * w[:, None] * (fitted - advantages.T)
            np.subtract.at(directions, s, step[:, :, None] * scores[:, None])
        alpha, beta = self.steps
        weights = np.concatenate([[1.0], self.multipliers])
        direction = product(weights, np.moveaxis(directions, 0, 1).reshape(self.n_costs, -1)).reshape(self.logits.shape)
        moved = self.logits + alpha * direction
        self.logits = np.clip(moved - moved.max(axis=1, keepdims=True), -MOST_LOGIT, 0.0)
        self.policy = softmax(self.logits)
        self.multipliers = np.clip(self.multipliers - beta * averages[1:], 0.0, self.ceilings)
        self._begin_epoch()

    def state(self) -> dict[str, Any]:
        """Return everything that has changed since construction."""
        return super().state() | {"logits": self.logits, "rounds_of_steps": self._rounds}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        super().restore(state)
        saved = read_fields(
            state,
            {
                "logits": reals(self.logits.shape, -MOST_LOGIT, 0.0),
                "rounds_of_steps": integers((2 * self.H,), 1, self.longest),
            },
        )
        self.logits, self._rounds = saved["logits"], saved["rounds_of_steps"]
        need_that(not (self._rounds & (self._rounds - 1)).any(), "rounds_of_steps must be powers of 2")
        need_that(self._rounds.sum() == self._pairs.size, "rounds_of_steps must sum to block_rounds")

    @property
    def _most_block_rounds(self) -> int:
        """The most rounds of an epoch."""
        return 2 * self.H * self.longest


def level_weights(rounds: int) -> Floats:
    """Return the weights of the rounds of a step in the multilevel estimate, whose sum is 1; rounds are a power of 2.

    >>> level_weights(4).tolist(), level_weights(1).tolist()
    ([0.0, -1.0, 1.0, 1.0], [1.0])
    """
    weights = np.ones(rounds)
    if rounds > 1:
        weights[: rounds // 2] = -1.0
        weights[0] = 0.0
    return weights
