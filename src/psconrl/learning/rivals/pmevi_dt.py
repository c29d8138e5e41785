r"""PMEVI-DT (Boone and Zhang 2024, arXiv 2406.01234): optimism with bounds on the bias, without constraints.

Rewards are one minus the objective, scaled to [0, 1]; h is the optimal bias and T the horizon. An episode begins after
t rounds and ends once a pair has been visited as often as before. Its plan is that of ``planning.optimism.mitigated``
in the confidence region of UCRL2, with :math:`c_0 = T^{1/5}` and

- bounds on the bias, :math:`h(s) - h(s') \le \min(c_0,\, c(s,s') + e(s,s'))`: c is estimated from the n trips between
  the states (``learning.posterior.commutes``), :math:`e = (3 c_0 + (1 + c_0) \sqrt{8 t \log(2/\delta)} + 2 B) / n`, and
  B is the sum over all rounds of the planned gain minus the reward;
- the mitigation :math:`\beta(s,a) = \sqrt{2 V \log(S A T/\delta) / N} + 3 c_0 \log(S A T/\delta) / N`, where
  :math:`V = \mathrm{Var}_{\bar p(s,a)}(h_0) + 8 c_0 \sum_{s'} \bar p(s'|s,a)\, \min(e(s',s), c_0)` bounds the variance
  of h, and :math:`h_0` is the projection of :math:`c(\cdot, 0)` onto the bounds;
- the planning error :math:`\sqrt{\log t / t}`.

Regret :math:`\tilde O(\sqrt{\mathrm{sp}(h)\, S A T})` in weakly communicating models if :math:`\mathrm{sp}(h) \le c_0`.

The formulas are recalled from memory; docs/agents/unconstrained.md derives c, e and V.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats, Ints
from psconrl.base.saved_fields import Kind, flag, integers, need_that, read_fields, real, reals
from psconrl.errors import SolverError
from psconrl.kernels.arithmetic import special
from psconrl.learning.argument_checks import as_count, as_failure_probability, as_positive
from psconrl.learning.parts.l1_region import ball_radii, lowest_objective
from psconrl.learning.parts.radii import empirical
from psconrl.learning.posterior.commutes import Commutes
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import Episode, uniform_policy
from psconrl.learning.runtime.recording import Recording, Trajectory
from psconrl.model.matrix_product import product
from psconrl.planning.optimism.mitigated import closed_bounds, plan_mitigated, projected

BLOCK_ROUNDS = 4096  # rounds recorded before their trips are counted; an episode may take several blocks


class PMEVIDT(Recording):
    r"""PMEVI-DT, optimism with bounds on the bias; constraints are ignored. It must know the horizon.

    ``bonus``: a factor of all radii, of the root in e, of the mitigation and of the planning error, 1 as published.
    ``delta``: failure probability. ``span``: the bound :math:`c_0` on the span of the bias, with rewards scaled to
    [0, 1]; by default :math:`T^{1/5}`. ``ranges`` (m+1, 2): the lowest and highest value of every cost, if costs are
    learned; by default 0 and 1, where the objective's grow with what was met.
    """

    name: ClassVar[str] = "pmevi-dt"
    table_bytes: ClassVar[float] = 40.0  # counts, frequencies and the planned model

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: Thresholds,
        costs: ArrayLike | None = None,
        *,
        horizon: int,
        bonus: float = 1.0,
        delta: float = 0.05,
        span: float | None = None,
        ranges: ArrayLike | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.horizon = as_count(horizon, "horizon")
        self.bonus, self.delta = as_positive(bonus, "bonus"), as_failure_probability(delta)
        self.span = None if span is None else as_positive(span, "span")
        self._scale_costs(ranges)
        self.commutes = Commutes(self.n_states)
        self.surplus = 0.0  # B, the sum of planned gains minus that of rewards
        self.policy = uniform_policy(self.n_states, self.n_actions)
        self._gain, self._settled = 1.0, False  # of the plan in progress
        self._biases: Floats = np.zeros(self.n_states)
        self._final_visits: Ints = np.zeros(self.n_states * self.n_actions, dtype=np.int64)  # with which it ends
        self._record(BLOCK_ROUNDS)

    @property
    def most_span(self) -> float:
        r"""The bound :math:`c_0` on the span of the bias."""
        return special.exp(special.log(float(self.horizon)) / 5.0) if self.span is None else self.span

    def begin(self, state: int) -> Episode:
        """Return an episode of one round of the present policy, for loops that do not call ``learn``."""
        self._open_block()
        return self._block(1)

    def _planned(self, state: int) -> Episode:
        """Return what is left of the planned episode, or a block of it."""
        return self._block(self._open_block())

    def _block(self, rounds: int) -> Episode:
        self.policy = self.policy.copy()  # an event may keep that of the last block
        caps = (self._final_visits - self.counts.visits).reshape(self.n_states, self.n_actions)
        if not self._settled:
            return Episode(self.policy, rounds, caps, "unsettled")
        value = float(self._scale.highest[0] - self._scale.units[0] * self._gain)
        return Episode(self.policy, rounds, caps, "unconstrained", value)

    def _open_block(self) -> int:
        """Learn from the rounds played, plan if the episode is over, and return the rounds that can be recorded."""
        n = int(self._length[0])
        if n:
            self._improve(Trajectory(self._pairs[:n], self._successors[:n], self._costs[:n]))
        if (self.counts.visits >= self._final_visits).any():
            self._plan()
        return int(self._pairs.size)

    def _improve(self, played: Trajectory) -> None:
        """Count the trips between states, and begin the next block; the policy changes with the next plan only."""
        seen = played.costs[:, 0] if self.costs is None else self.costs[0].ravel()[played.pairs]
        rewards = self._as_rewards(seen)
        self.commutes.add(played.pairs // self.n_actions, played.successors, rewards)
        self.surplus += self._gain * rewards.size - float(rewards.sum())
        self._record(BLOCK_ROUNDS)

    def _plan(self) -> None:
        """Plan the next episode; if the plan is not settled, it is uniform."""
        self._final_visits = self.counts.visits + np.maximum(self.counts.visits, 1)
        errors, differences = self._errors(), self.commutes.differences()
        bounds = self._bounds(differences, errors)
        p_bar = empirical(self.counts)
        mitigation = self._mitigation(p_bar, projected(differences[:, 0], bounds), errors)
        radii, rewards = ball_radii(self.counts, self.rounds, self.delta, self.bonus), self._optimistic_rewards()
        try:
            plan = plan_mitigated(p_bar, radii, rewards, mitigation, bounds, self._accuracy(), self._biases)
        except SolverError:
            self.policy, self._gain, self._settled = uniform_policy(self.n_states, self.n_actions), 1.0, False
            return
        self.policy, self._gain, self._settled = plan.policy, min(plan.gain, max(float(rewards.max()), 1.0)), True
        self._biases = plan.values

    def _as_rewards(self, objective: Floats) -> Floats:
        """Return values of the objective as rewards: 1 for the lowest, 0 for the highest."""
        return np.asarray((self._scale.highest[0] - objective) / self._scale.units[0])

    def _optimistic_rewards(self) -> Floats:
        """Return the known rewards (S, A), or upper bounds of the learned ones."""
        if self.costs is not None:
            return self._as_rewards(self.costs[0])
        known = self._objective_range()
        return self._as_rewards(lowest_objective(self.counts, known, self.rounds, self.delta, self.bonus))

    def _errors(self) -> Floats:
        """Return the errors e of the estimated differences of the bias, (S, S); infinite where there was no trip."""
        span, trips = self.most_span, self.commutes.both_ways()
        root = math.sqrt(8.0 * self.rounds * special.log(2.0 / self.delta))
        total = max(3.0 * span + self.bonus * (1.0 + span) * root + 2.0 * self.surplus, 0.0)
        return np.where(trips > 0.0, total / np.maximum(trips, 1.0), np.inf)

    def _bounds(self, differences: Floats, errors: Floats) -> Floats:
        """Return closed bounds (S, S) on the differences of the bias; those of the span alone if no bias has all."""
        span = np.full(errors.shape, self.most_span)
        np.fill_diagonal(span, 0.0)
        bounds = np.minimum(span, differences + errors)
        np.fill_diagonal(bounds, 0.0)
        closed = closed_bounds(bounds)
        return span if closed is None else closed

    def _mitigation(self, p_bar: Floats, reference: Floats, errors: Floats) -> Floats:
        """Return the mitigation (S, A), from a reference bias (S,); infinite for an untried pair."""
        S, A, span, visits = self.n_states, self.n_actions, self.most_span, self.counts.pairs
        log = special.log(S * A * float(self.horizon) / self.delta)
        means = product(p_bar, reference)
        spread = (reference[None, :] - means[:, None]) ** 2
        off = np.repeat(np.minimum(errors, span).T, A, axis=0)  # of every successor, seen from the state
        variances = (p_bar * (spread + 8.0 * span * off)).sum(axis=1).reshape(S, A)
        n = np.maximum(visits, 1)
        widths = self.bonus * (np.sqrt(2.0 * variances * log / n) + 3.0 * span * log / n)
        return np.where(visits > 0, widths, np.inf)

    def _accuracy(self) -> float:
        """Return the planning error: the largest difference of changes at which value iteration stops."""
        t = max(self.rounds, 2)
        return self.bonus * math.sqrt(special.log(float(t)) / t)

    def state(self) -> dict[str, Any]:
        """Return everything that has changed since construction."""
        return super().state() | {
            "commutes": self.commutes.state(),
            "surplus": self.surplus,
            "planned_gain": self._gain,
            "settled": self._settled,
            "biases": self._biases,
            "final_visits": self._final_visits,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        super().restore(state)
        described: dict[str, Kind] = {
            "surplus": real(),
            "planned_gain": real(),
            "settled": flag,
            "biases": reals(self._biases.shape),
            "final_visits": integers(self._final_visits.shape),
        }
        self.surplus, self._gain, self._settled, self._biases, self._final_visits = read_fields(
            state, described
        ).values()
        read_fields(state, {"commutes": self.commutes.restore})
        playing = 0 if self._play is None else self._play.record.steps
        need_that(self.commutes.rounds <= self.rounds + playing, "commutes must be of the rounds played")
