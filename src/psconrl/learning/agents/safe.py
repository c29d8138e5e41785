r"""Safe exploration from a known policy: every policy played while learning satisfies the constraints in the long run.

DOPE (Bura et al. 2022) and OptPess-LP (Liu et al. 2021) explore safely in episodes of fixed length; no version for the
average criterion is published. This one is this library's own.

The agent is given a baseline policy and, for every constraint, its slack and its span (``learning.baseline``). Every
episode plays a policy :math:`\pi` with a certificate: a function :math:`h_i` of the states for every constraint, with

.. math:: \sum_a \pi(a|s)\, q_i(s,a) - h_i(s) \le \tau_i \quad\text{for all } s, \qquad
          q_i(s,a) = c_i(s,a) + \max_{p \in \mathcal C(s,a)} p \cdot h_i

(``planning.pessimism``). In states about which too little is known it plays the baseline, and relies on the given slack
and span.

1. *Widen.* Plan in the empirical model for costs :math:`\tilde c_i = q_i - \hat p \cdot h_i`, which include the effect
   of uncertainty, and certify the plan. If its bound exceeds a threshold, plan again for a threshold lower by the
   excess; finally mix with the safe policy. A policy without a certificate is not played.
2. *Keep exploring.* The objective is lowered by :math:`\lambda_i (\tilde c_i - c_i)`, with shadow prices
   :math:`\lambda`, so that uncertainty is not avoided for its own sake. The inequality is linear in the action
   probabilities of a state; its slack there is spent on the least tried action.
3. *If nothing is certified*, the baseline is played, with that action in a share

   .. math:: \alpha(s) = \min_i \frac{slack_i}{c_i(s,a) + span_i - \tau_i + slack_i}

   of the rounds, which needs no knowledge of the transitions at all.

**Proven**: if slack and span are valid, then with probability :math:`1 - \delta` the long-run averages of every policy
that is played are within the thresholds, from every state and in every model; and with :math:`1 - 2 \delta` the
cumulative excess over them never exceeds ``allowance``, of the order of :math:`\sqrt t` plus one span per episode.
**Not proven**: any rate of regret, nor that the agent ever leaves the baseline.
"""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from psconrl.arrays import Bools, Floats
from psconrl.errors import AgentError, BaselineWarning, SolverError
from psconrl.kernels import special
from psconrl.learning.agent import Agent
from psconrl.learning.checks import as_amounts, as_distributions, as_failure_probability, as_ranges, saved_floats
from psconrl.learning.part import Part
from psconrl.learning.parts.schedules import Schedule, SquareRoot
from psconrl.learning.posterior.confidence_intervals import Intervals, highest_means
from psconrl.learning.posterior.counts import Record
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import Episode
from psconrl.learning.runtime.events import INTERIM
from psconrl.learning.runtime.running_episode import Play
from psconrl.learning.safety_certificates import Certified, Certifier, View
from psconrl.markov.evaluation import evaluate_policy
from psconrl.model.cmdp import CMDP
from psconrl.planning.pessimism import largest_means
from psconrl.planning.planner import plan_unexplained
from psconrl.products import product
from psconrl.sizes import SAFE_DENSE_ENTRIES

KNOWN_MASS = 0.5  # largest uncertain mass of a pair's distribution for its state to be planned without the baseline
PLANS = 4  # plans in one episode, each for the uncertainty of the last
OPTIMISM = 0.1  # share of the confidence set's optimism about the objective that is used
SAVED_ATTRIBUTES = ("biases", "prices", "potential", "spans", "beginnings", "variance")  # attributes saved in files


class SafeStart(Agent):
    """Safe exploration: plays only policies certified to satisfy the constraints, starting from a known one.

    ``baseline``: a policy (S, A), or a plan, that satisfies every constraint. ``slack``: by how much, a positive number
    or one for every constraint. ``span``: what it may cost beyond that until it has recovered, from the worst state;
    None if unknown, and then little can be tried. ``psconrl.agents.known_baseline`` computes both from a model.
    ``delta``: the probability that the proofs fail. ``ranges`` (m+1, 2): the lowest and highest value of every cost,
    required if costs are learned. ``schedule``: when to plan again.
    """

    name: ClassVar[str] = "safe"
    parts: ClassVar[Mapping[str, Part | None]] = {"schedule": SquareRoot()}

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: Thresholds,
        costs: ArrayLike | None = None,
        *,
        baseline: Any = None,
        slack: ArrayLike | None = None,
        span: ArrayLike | None = None,
        delta: float = 0.05,
        ranges: ArrayLike | None = None,
        schedule: Schedule | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.baseline = self._as_baseline(baseline)
        self.slack = self._as_slack(slack)
        m = self.thresholds.size
        self.span = None if span is None else np.broadcast_to(as_amounts(span, "span", m), (m,)).copy()
        self.delta = as_failure_probability(delta)
        self.ranges = None if ranges is None else as_ranges(ranges, self.n_costs)
        if self.costs is None and self.ranges is None:
            raise AgentError(
                f"ranges must be given if costs are learned: the lowest and the highest of each of {self.n_costs}"
            )
        self.schedule: Schedule = self._part("schedule", schedule)
        self._promised: Floats = self.thresholds - self.slack  # upper bounds of the baseline's average costs
        self._biases: Floats = np.zeros((m, self.n_states))  # of the last proof, a warm start for the next one
        self._prices: Floats = np.zeros(m)  # shadow prices of the constraints in the last plan
        self._potential: Floats = np.zeros(self.n_states)  # of the last plan
        self._spans: Floats = np.zeros(m)  # of the proof for the present episode
        self.excess: Floats = np.zeros(m)  # cumulative excess over the thresholds
        self._beginnings: Floats = np.zeros(m)  # the sum of the spans of all episodes
        self._variance: Floats = np.zeros(m)  # upper bound of the variance of the sum of all costs
        self._warned = False
        self._playing_interim = False  # whether the baseline is played while a plan is computed

    def begin(self, state: int) -> Episode:
        """Return the certified policy of best optimistic objective, which spends its slack on exploration."""
        max_steps, caps = self.schedule.caps(self.counts)
        view = self._view(state)
        chosen = self._exploring(self._certifier.alone(), view)
        for found in self._widened(view):
            chosen = min(chosen, self._exploring(found, view), key=lambda one: one.hope)
        self._spans = self._certifier.spans_of(chosen)
        return Episode(chosen.policy, max_steps, caps, chosen.kind, chosen.value)

    def end(self, record: Record) -> None:
        """Learn from an episode, and compare its costs with what the proofs allow."""
        super().end(record)
        self.schedule.ended(record.steps)
        self.excess += self._overspent(record)
        # While an interim policy is played, begin may already have set the spans of the next episode.
        spans = self._given_spans if self._playing_interim else self._spans
        self._beginnings += spans
        self._variance += record.steps * (self._widths + spans) ** 2 / 4.0
        over = self.excess > self.allowance
        if over.any() and not self._warned:
            self._warned = True
            i = int(over.argmax())
            warnings.warn(
                f"{self.excess[i]:.4g} was spent beyond limit {i + 1} in {self.rounds:,} rounds, where a baseline with "
                f"slack {self.slack[i]:.4g} and span {self._given_spans[i]:.4g} allows {self.allowance[i]:.4g} with "
                f"probability {1 - self.delta:g}; check that its slack and span are correct",
                BaselineWarning,
                stacklevel=2,
            )

    @property
    def allowance(self) -> Floats:
        r"""Upper bounds of the cumulative excess, (m,), with probability 1 - delta if the proofs are right.

        .. math:: \sum_k w_k + \sqrt{2 (v + \rho) \log\big(m \sqrt{(v + \rho) / \rho}\, / \delta\big)}, \qquad
                  v = \sum_k L_k (r + w_k)^2 / 4, \quad \rho = r^2

        with :math:`L_k` rounds and a proof of span :math:`w_k` in episode k, and r the range of the cost: Robbins'
        mixture of Hoeffding's inequality, which holds uniformly in time. Infinite if no span was given and the baseline
        was played.
        """
        unit = np.where(self._widths > 0.0, self._widths, 1.0) ** 2
        growth = (self._variance + unit) / unit
        log = 0.5 * special.log_array(growth) + special.log(max(self.thresholds.size, 1) / self.delta)
        return np.asarray(self._beginnings + np.sqrt(2.0 * unit * growth * log))

    def _overspent(self, record: Record) -> Floats:
        """Return the excess of a record over the thresholds; known costs count by their means, without noise."""
        if self.costs is None:
            return np.asarray(record.cost_sums[1:].sum(axis=1) - record.steps * self.thresholds)
        spent = product(self.costs[1:].reshape(self.thresholds.size, self.counts.visits.size), record.visits)
        return np.asarray(spent - record.steps * self.thresholds)

    def _checked_limits(self, thresholds: Thresholds) -> Floats:
        limits = super()._checked_limits(thresholds)
        if (limits <= self._promised).any():
            raise AgentError(
                f"thresholds must stay above what the baseline is known to keep, {self._promised.tolist()}; "
                f"got {limits.tolist()}. A safe agent for these needs another baseline"
            )
        return limits

    def _limits_changed(self, playing: Record | None) -> None:
        """Adjust the slack to the new thresholds, and reset the accounts."""
        self.slack = self.thresholds - self._promised
        for account in (self.excess, self._beginnings, self._variance):
            account.fill(0.0)
        if playing is not None:
            self.excess -= self._overspent(playing)

    # Confidence sets.

    @property
    def _log_inverse(self) -> float:
        """Log of the inverse failure probability of one interval; one per transition, and per mean cost if learned."""
        S, A, m = self.n_states, self.n_actions, self.thresholds.size
        return special.log((S * S * A + (m * S * A if self.costs is None else 0)) / self.delta)

    def _highest_costs(self) -> Floats:
        """Return upper bounds of the constrained costs, (m, S, A)."""
        if self.costs is not None:
            return self.costs[1:]
        assert self.ranges is not None
        return highest_means(self.counts, self.ranges[1:], self._log_inverse).reshape(-1, self.n_states, self.n_actions)

    @property
    def _widths(self) -> Floats:
        """The ranges of the constrained costs, (m,)."""
        if self.costs is None:
            assert self.ranges is not None
            return self.ranges[1:, 1] - self.ranges[1:, 0]
        limited = self.costs[1:]
        return np.asarray(limited.max(axis=(1, 2)) - limited.min(axis=(1, 2)))

    @property
    def _given_spans(self) -> Floats:
        return np.full(self.thresholds.size, np.inf) if self.span is None else self.span

    @property
    def _certifier(self) -> Certifier:
        return Certifier(self.baseline, self.thresholds, self._promised, self._given_spans)

    # Planning.

    def _view(self, state: int) -> View:
        """Return the present knowledge, for an episode that begins in a state."""
        S, A = self.n_states, self.n_actions
        distributions, costs = Intervals.of(self.counts, self._log_inverse), self._highest_costs()
        pairs = (distributions.doubtful <= KNOWN_MASS).reshape(S, A)
        known: Bools = np.asarray(pairs.any(axis=1))
        if self.span is None and not known.all():
            known = np.zeros(S, dtype=np.bool_)
        seen, visits = self.counts.moves, self.counts.visits
        times = np.diff(seen.indptr)
        untried = np.flatnonzero(visits == 0)
        # An untried pair has a self-loop; where the plan relies on the baseline, it moves to the most visited state.
        home = np.where(known[untried // A], untried // A, self.counts.pairs.sum(axis=1).argmax())
        rows = np.concatenate([np.repeat(np.arange(S * A), times), untried])
        columns = np.concatenate([seen.indices, home])
        data = np.concatenate([seen.data / np.repeat(visits, times), np.ones(untried.size)])
        matrix = csr_array((data, (rows, columns)), shape=(S * A, S))
        model = CMDP(
            matrix.toarray() if S * S * A <= SAFE_DENSE_ENTRIES else matrix,
            self._known_or_mean_costs(),
            self.thresholds,
            initial=state,
            available=known[:, None] | (self.baseline > 0),
        )
        own: Bools = np.asarray((pairs | (self.baseline == 0)).all(axis=1) & known)
        return View(distributions, costs, known, own, model)

    def _interim(self) -> Episode:
        """Return the baseline: initially nothing else is safe, and the last policy may violate new thresholds."""
        return Episode(self.baseline, kind=INTERIM)

    def _set_out(self, episode: Episode, planning_time: float = 0.0, interim: bool = False) -> Play:
        self._playing_interim = interim
        return super()._set_out(episode, planning_time, interim)

    def _exploring(self, found: Certified, view: View) -> Certified:
        """Mix a policy with the least tried actions, as far as safe, and compute its optimistic objective."""
        visits = self.counts.pairs
        share, tried = self._certifier.exploring_share(found, view, visits), visits.argmin(axis=1)
        policy = found.policy * (1.0 - share[:, None])
        policy[np.arange(self.n_states), tried] += share
        hoped = self._hopes(view)
        kind = "certified" if not found.relying.all() else "mixed" if share.max() > 0.0 else "baseline"
        hope, value = math.inf, math.nan
        try:
            distribution = evaluate_policy(view.model, policy).occupancy
            hope, value = float((distribution * hoped).sum()), float((distribution * view.model.costs[0]).sum())
        except SolverError:  # nearly absorbing states: the policy keeps an infinite optimistic objective
            pass
        return replace(found, policy=policy, hope=hope, value=value, kind=kind)

    def _hopes(self, view: View) -> Floats:
        """Return the optimistic objective (S, A), less the priced effect of uncertainty on the constrained costs."""
        S, A = self.n_states, self.n_actions
        means = view.model.costs[0]
        if self._potential.any():
            least = -largest_means(view.distributions, -self._potential)
            means = means - OPTIMISM * np.maximum(view.model.transition @ self._potential - least, 0.0).reshape(S, A)
        added = (self._fears(view) - view.costs).reshape(self.thresholds.size, S * A)
        return np.asarray(means - product(self._prices, added).reshape(S, A))

    def _fears(self, view: View) -> Floats:
        """Return the constrained costs (m, S, A) with what uncertainty adds to them."""
        S, A = self.n_states, self.n_actions
        result = np.empty((self.thresholds.size, S, A))
        for i, h in enumerate(self._biases):
            result[i] = view.costs[i] + np.maximum(
                largest_means(view.distributions, h) - view.model.transition @ h, 0.0
            ).reshape(S, A)
        return result

    def _widened(self, view: View) -> Iterator[Certified]:
        """Yield certified policies, each planned for the uncertainty of the last."""
        certifier = self._certifier
        if view.own.any():
            steady = certifier.certify(self.baseline, ~view.own, view, self._biases)
            if certifier.holds(steady):
                yield steady
        targets = self.thresholds.copy()
        for _ in range(PLANS if view.known.any() else 0):
            hopes, fears = self._hopes(view), self._fears(view)
            problem = CMDP(
                view.model.transition,
                np.concatenate([hopes[None], fears]),
                targets,
                initial=view.model.initial,
                available=view.model.available,
            )
            try:
                found = plan_unexplained(problem)
            except SolverError:
                return
            if found.feasible:
                self._prices, self._potential = np.maximum(found.multipliers, 0.0), found.potential.copy()
            policy = np.where(view.known[:, None], found.policy, self.baseline)
            tried = certifier.certify(policy / policy.sum(axis=1, keepdims=True), ~view.known, view, self._biases)
            self._biases = np.array([case.bias for case in tried.cases]).reshape(-1, self.n_states)
            over = np.array([case.bound for case in tried.cases]) - self.thresholds
            if certifier.holds(tried):
                yield tried
            else:
                mixed = certifier.mixed(tried.policy, view, self._biases)
                if mixed is not None:
                    yield mixed
            targets = np.minimum(self.thresholds, targets - over)

    # Checks of the input.

    def _as_baseline(self, given: Any) -> Floats:
        if given is None:
            raise AgentError(
                "a baseline must be given: a policy (S, A), or a plan, that is known to keep the limits, and its slack"
            )
        distributions = as_distributions(getattr(given, "policy", given), "baseline", self.n_states, self.n_actions)
        return np.asarray(distributions / distributions.sum(axis=1, keepdims=True))

    def _as_slack(self, given: Any) -> Floats:
        m = self.thresholds.size
        if given is None and m:
            raise AgentError("slack must be given: by how much the baseline stays below each limit")
        slack = np.broadcast_to(as_amounts(0.0 if given is None else given, "slack", m), (m,)).copy()
        if not (slack > 0).all():
            raise AgentError(f"slack must be above 0: by how much the baseline stays below each limit; got {given!r}")
        return slack

    def state(self) -> dict[str, Any]:
        """Return everything that has changed since construction."""
        kept = {name: getattr(self, f"_{name}") for name in SAVED_ATTRIBUTES}
        return super().state() | kept | {"excess": self.excess, "warned": self._warned}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        super().restore(state)
        for name in SAVED_ATTRIBUTES:  # the allowance is infinite if no span was given
            saved = saved_floats(state[name], getattr(self, f"_{name}").shape, name, infinite=True)
            setattr(self, f"_{name}", saved)
        self.excess = saved_floats(state["excess"], self.excess.shape, "excess", infinite=True)
        self._warned = bool(state["warned"])
        self._playing_interim = self._play is not None and self._play.interim
