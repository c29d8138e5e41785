r"""Safe exploration from a known policy: every policy played while learning satisfies the constraints in the long run.

DOPE (Bura et al. 2022), OptPess-LP (Liu et al. 2021) and S-OPS (Stradi et al. 2025) explore safely in episodes of fixed
length. For averages, CUCRL2 (Garcelon et al. 2020) keeps the reward of the whole run near that of a baseline; Algorithm
1 of Chen, Jain and Luo (2022) and Triple-QA (Wei, Liu and Ying 2022) bound the violation of the whole run. No version
for averages in which every policy meets separate constraints is known to us. This one is this library's own.

The agent is given a baseline policy and, for every constraint, its slack and its span (``learning.safe.baseline``).
Every episode plays a policy :math:`\pi` with a certificate: a function :math:`h_i` of the states for every constraint,
with

.. math:: \sum_a \pi(a|s)\, q_i(s,a) - h_i(s) \le \tau_i \quad\text{for all } s, \qquad
          q_i(s,a) = c_i(s,a) + \max_{p \in \mathcal C(s,a)} p \cdot h_i

(``planning.robust.pessimism``). In states about which too little is known it plays the baseline, and relies on the
given slack and span.

1. *Widen.* Plan in the empirical model for costs :math:`\tilde c_i = q_i - \hat p \cdot h_i`, which include the effect
   of uncertainty, and certify the plan. If its bound exceeds a threshold, plan again for a threshold lower by the
   excess; finally mix with the safe policy. A policy without a certificate is not played.
2. *Keep exploring.* The objective is lowered by nine tenths of :math:`\lambda_i (\tilde c_i - c_i)`, with shadow
   prices :math:`\lambda`, so that uncertainty is avoided only where actions tie. The inequality is linear in the action
   probabilities of a state; its slack there is spent on the least tried action.
3. *If nothing is certified*, the baseline is played, with that action in a share

   .. math:: \alpha(s) = \min_i \frac{slack_i}{c_i(s,a) + span_i - \tau_i + slack_i}

   of the rounds, which needs no knowledge of the transitions at all.

Where an optimal plan mixes policies that stay in different places, the policies that are certified move between these
in ever fewer rounds (``rare_moves``).

For a system (``of``), the confidence sets are over the distributions of its noise instead of the rows
(``posterior.noise_bounds``), and the span of the baseline may be given by state. Each episode then plays the best
policy that a certificate allows in every state (``certified_plans``).

**Proven**: if slack and span are valid, then with probability :math:`1 - \delta` the long-run averages of every policy
that is played are within the thresholds, from every state and in every model; and with :math:`1 - 2 \delta` the
cumulative excess over them never exceeds ``allowance``, of the order of :math:`\sqrt t` plus one span per episode
(:math:`t^{5/6}` if spans grow like :math:`t^{1/3}`, as they may for ever rarer moves).
**Not proven**: any rate of regret, nor that the agent ever leaves the baseline; docs/theory.md has a rate for a
simplified version.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.base.saved_fields import Kind, flag, need_that, read_fields, reals
from psconrl.errors import AgentError, BaselineWarning, StructureWarning
from psconrl.kernels.arithmetic import special
from psconrl.learning.argument_checks import as_failure_probability, as_ranges
from psconrl.learning.part import Part
from psconrl.learning.parts.schedules import Growing, Schedule, SquareRoot
from psconrl.learning.posterior.counts import LARGEST_SUM, Record
from psconrl.learning.posterior.noise_posterior import Structured
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import Episode
from psconrl.learning.runtime.events import INTERIM
from psconrl.learning.runtime.running_episode import Play
from psconrl.learning.safe.baseline import as_baseline, as_slack, as_span, warn_of_impossible_slack
from psconrl.learning.safe.certificates import Certifier
from psconrl.learning.safe.certified_plans import CertifiedPlans
from psconrl.learning.safe.confidence_intervals import highest_means
from psconrl.learning.safe.confidence_sets import NoiseKnowledge, Occasion, View, view_of_rows
from psconrl.learning.system_agent import SystemAgent
from psconrl.model.matrix_product import product
from psconrl.systems.reports import Report
from psconrl.systems.system import System

PER_OUTCOME = 4e-7  # seconds of planning an episode of a system per pair and joint outcome, measured on 43,520
SLOW_SECONDS = 1.0  # of an episode, from which on it is called slow
SAVED_ATTRIBUTES = ("spans", "beginnings", "variance")  # attributes saved in files


class SafeStart(SystemAgent):
    """Safe exploration: plays only policies certified to satisfy the constraints, starting from a known one.

    ``baseline``: a policy (S, A), or a plan, that satisfies every constraint. ``slack``: by how much, a positive number
    or one for every constraint. ``span``: what it may cost beyond that until it has recovered, from the worst state,
    or, for an agent made by ``of``, (m, S) from every state; None if unknown, and then little can be tried.
    ``psconrl.agents.known_baseline`` computes both from a model. ``delta``: the probability that the proofs fail.
    ``ranges`` (m+1, 2): the lowest and highest value of every cost, required if costs are learned. ``schedule``: when
    to plan again. ``belief``: ``Structured``, if a system is known; see ``of``.
    """

    name: ClassVar[str] = "safe"
    parts: ClassVar[Mapping[str, Part | None]] = {"schedule": SquareRoot(), "belief": None}
    parts_for_systems: ClassVar[Mapping[str, Part]] = {"schedule": Growing()}
    takes_noise: ClassVar[bool] = False

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
        belief: Structured | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.baseline = as_baseline(baseline, self.n_states, self.n_actions)
        self.slack = as_slack(slack, self.thresholds.size)
        m = self.thresholds.size
        self.span = as_span(span, m, self.n_states, by_state=belief is not None)
        self.delta = as_failure_probability(delta)
        self.belief = self._part("belief", belief)
        self._noise = self._as_noise(costs is not None or ranges is not None)
        self.ranges = None if ranges is None else as_ranges(ranges, self.n_costs)
        if self.costs is None and self.ranges is None and self._noise is None:
            raise AgentError(
                f"ranges must be given if costs are learned: the lowest and the highest of each of {self.n_costs}"
            )
        self.schedule: Schedule = self._part("schedule", schedule)
        self._promised: Floats = self.thresholds - self.slack  # upper bounds of the baseline's average costs
        if self.costs is not None:
            warn_of_impossible_slack(self._promised, self.costs[1:].min(axis=(1, 2)))
        elif self.ranges is not None:
            warn_of_impossible_slack(self._promised, self.ranges[1:, 0])
        self._plans = CertifiedPlans(self.baseline, m)
        self._spans: Floats = np.zeros(m)  # of the proof for the present episode
        self.excess: Floats = np.zeros(m)  # cumulative excess over the thresholds
        self._beginnings: Floats = np.zeros(m)  # the sum of the spans of all episodes
        self._variance: Floats = np.zeros(m)  # upper bound of the variance of the sum of all costs
        self._warned = False
        self._playing_interim = False  # whether the baseline is played while a plan is computed

    @classmethod
    def of(cls, system: System, *, progress: Report | None = None, **options: Any) -> Self:
        """Build an agent that knows a system, except for the unknown parameters of its noise.

        It has confidence sets for these instead of the rows of transitions, so that every state informs about all
        others. Costs are known functions of the noise. ``baseline`` and ``slack`` are needed here, too, and a ``span``
        should be given. Priors of unknown parameters play no part. For live use, and ``progress``, see ``Sampler.of``;
        the noise itself cannot be reported.
        """
        if not isinstance(system, System):
            raise AgentError(
                f"of needs a System; for sizes write SafeStart(n_states, n_actions, ...); got {quoted(system)}"
            )
        return cls._made_for(system, {**cls.parts_for_systems} | options, progress)

    def begin(self, state: int) -> Episode:
        """Return the certified policy of best optimistic objective, which spends its slack on exploration."""
        max_steps, caps = self.schedule.caps(self.counts)
        if self._doubted():
            self._spans = self._given_spans
            return Episode(self.baseline, max_steps, caps, "baseline")
        view = self._view(state)
        chosen = self._plans.choose(self._certifier, view, self._recovery)
        self._spans = self._certifier.spans_of(chosen)
        return Episode(chosen.policy, max_steps, caps, chosen.kind, chosen.value)

    def why_slow(self) -> str:
        """Return a line on slow planning, estimated from the size of a system; empty if planning is fast."""
        if self._noise is None or PER_OUTCOME * self._noise.n_cells < SLOW_SECONDS:
            return ""
        return (
            f"an episode may take {PER_OUTCOME * self._noise.n_cells:.0f} s of planning: every certificate looks at "
            f"{self._noise.n_cells:,} outcomes of states and actions. agent.plan_in_background() lets the baseline "
            "act meanwhile"
        )

    def doubts(self) -> tuple[str, ...]:
        """Return what is wrong with the system that the agent was made for."""
        return tuple(self.belief.doubts.values()) if isinstance(self.belief, Structured) else ()

    def _doubted(self) -> bool:
        """True if observations contradict the system; its sets prove nothing then."""
        if not isinstance(self.belief, Structured):
            return False
        known = self.doubts()
        self.belief.check(self.counts)
        for doubt in self.doubts():
            if doubt not in known:
                warnings.warn(
                    f"the system is wrong: {doubt}. The agent plays its baseline from now on",
                    StructureWarning,
                    stacklevel=2,
                )
        return bool(self.doubts())

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
                f"got {quoted(limits.tolist())}. A safe agent for these needs another baseline"
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
            ranges = self.ranges if self._noise is None else self._noise.ranges
            assert ranges is not None
            return np.asarray(ranges[1:, 1] - ranges[1:, 0])
        limited = self.costs[1:]
        return np.asarray(limited.max(axis=(1, 2)) - limited.min(axis=(1, 2)))

    @property
    def _given_spans(self) -> Floats:
        if self.span is None:
            return np.full(self.thresholds.size, np.inf)
        return self.span if self.span.ndim == 1 else np.asarray(self.span.max(axis=1))

    @property
    def _recovery(self) -> Floats | None:
        """The span by state (m, S), if it is given."""
        return self.span if self.span is not None and self.span.ndim == 2 else None

    @property
    def _certifier(self) -> Certifier:
        return Certifier(self.baseline, self.thresholds, self._promised, self._given_spans)

    # Planning.

    def _view(self, state: int) -> View:
        """Return the present knowledge, for an episode that begins in a state."""
        occasion = Occasion(state, self.thresholds, self.baseline, self.span)
        if self._noise is None:
            means, highest = self._known_or_mean_costs(), self._highest_costs()
            return view_of_rows(self.counts, self._log_inverse, means, highest, occasion)
        assert isinstance(self.belief, Structured)
        view, self.belief.parameters = self._noise.view(self.counts, self.delta, occasion)
        return view

    def _interim(self) -> Episode:
        """Return the baseline: initially nothing else is safe, and the last policy may violate new thresholds."""
        return Episode(self.baseline, kind=INTERIM)

    def _set_out(self, episode: Episode, planning_time: float = 0.0, interim: bool = False) -> Play:
        self._playing_interim = interim
        return super()._set_out(episode, planning_time, interim)

    def _as_noise(self, given: bool) -> NoiseKnowledge | None:
        """Return the knowledge about a system; ``given``: whether costs or their ranges were given."""
        if self.belief is None:
            return None
        if not isinstance(self.belief, Structured):
            raise AgentError(
                f"belief must be Structured, for a system, as SafeStart.of makes it; got {quoted(self.belief)}. "
                "Without one, this agent has confidence sets for every row"
            )
        if given:
            raise AgentError("costs and ranges follow from the system; leave them out")
        return NoiseKnowledge(self.belief.known_structure, self.belief.vocabulary)

    def state(self) -> dict[str, Any]:
        """Return everything that has changed since construction."""
        kept = {name: getattr(self, f"_{name}") for name in SAVED_ATTRIBUTES}
        return super().state() | kept | self._plans.state() | {"excess": self.excess, "warned": self._warned}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        super().restore(state)
        m = self.thresholds.size  # the allowance is infinite if no span was given
        described: dict[str, Kind] = {name: reals((m,), 0.0, infinite=True) for name in SAVED_ATTRIBUTES}
        saved = read_fields(state, described | {"excess": reals((m,), -LARGEST_SUM, LARGEST_SUM), "warned": flag})
        *accounts, self.excess, self._warned = saved.values()
        for name, account in zip(SAVED_ATTRIBUTES, accounts, strict=True):
            setattr(self, f"_{name}", account)
        self._plans.restore(state)
        returns = (self._plans.moves.returned, self._plans.moves.return_began)
        need_that(max(returns) <= self.rounds, "returned and return_began must be within the rounds")
        need_that((self.thresholds > self._promised).all(), "thresholds must be above what the baseline keeps")
        self._playing_interim = self._play is not None and self._play.interim
