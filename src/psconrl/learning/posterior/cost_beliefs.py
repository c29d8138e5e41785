r"""What an agent believes of costs that it has to learn.

``EmpiricalMeans``: what was paid on average, and nothing for a pair that was never tried. ``SampledCosts`` draws costs
from a posterior, for every episode anew, as transitions are drawn. Its model is that of a two-way analysis of variance:
a cost is mostly the sum of what the state and what the action costs,

.. math:: c(s,a) = \mu + u_s + v_a + w_{sa}, \qquad u_s \sim N(0, \tau_u^2),\quad v_a \sim N(0, \tau_v^2),\quad
          w_{sa} \sim N(0, \tau_w^2),

for every cost apart, and a round pays :math:`N(c(s,a), \sigma^2)`. Variances have inverse gamma priors of shape 1/2 and
rate :math:`(r/100)^2/2`, where r is the range of the means so far. Effects and variances are drawn in turn (Gibbs), one
sweep an episode. :math:`\sigma^2` is drawn from how the means of a pair differ from episode to episode; costs that
never differed are taken to be exact.

So a pair that was never tried is neither free nor unknown: a holding cost that was met with one order tells of all
other orders. Two kinds of surprise remain possible in the *objective*, since otherwise the agent would never look for
what it has not met. While all pairs tried have cost the same, all others count as free. Later a state that was never
visited does. Of the other pairs, each is an exception with probability :math:`\epsilon`, and free as well: after K
pairs without one, :math:`\epsilon \sim \mathrm{Beta}(1, K+1)`, the rule of succession. *Limited* costs have no such
bonus.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from psconrl.arrays import Bools, Floats, Ints
from psconrl.errors import AgentError
from psconrl.kernels import special
from psconrl.kernels.cost_effects import sweep
from psconrl.kernels.gamma import log_gamma_variates, normal_variates
from psconrl.learning.checks import saved_floats
from psconrl.learning.part import Part
from psconrl.learning.posterior.counts import Counts, Record

SHAPE = 0.5  # of the inverse gamma priors
RESOLVED = 0.01  # of the range of a cost: a spread that is small
LEAST = 0.5 * RESOLVED * RESOLVED  # the rate of these priors, in units of the range
ROUNDING = 1e-12  # of a cost: what the means of exact costs may differ by
FARTHEST = 1e50  # beyond this ratio of two units, what was drawn by one tells nothing by the other


@dataclass(frozen=True)
class Hints:
    """What an agent is told of costs that it learns."""

    optimistic: float | None = None  # what the objective may be at best
    guess: Floats | None = None  # (m+1, S, A) all costs, roughly
    # How many observations the guess is worth, for all pairs or each, (S, A); None if that is to be learned.
    weight: float | Floats | None = 0.0


class CostBelief(Part):
    """What costs are taken to be while they are learned."""

    kind: ClassVar[str] = "cost_belief"
    example: ClassVar[str] = "SampledCosts()"

    @abstractmethod
    def costs(self, counts: Counts, hints: Hints, rng: np.random.Generator) -> Floats:
        """The costs (m+1, S, A) to plan the next episode with."""

    def learn(self, record: Record, before: Counts) -> None:
        """Learn from an episode, which is not among the counts yet."""


class EmpiricalMeans(CostBelief):
    """What every pair has cost on average; one that was never tried is free.

    The optimistic cost, if there is one, counts as one more observation of the objective in every pair.
    """

    name: ClassVar[str] = "empirical-means"

    def costs(self, counts: Counts, hints: Hints, rng: np.random.Generator) -> Floats:
        """The means; nothing is drawn."""
        return counts.mean_costs(hints.optimistic, hints.guess, 1.0 if hints.weight is None else hints.weight)


class SampledCosts(CostBelief):
    """Costs drawn from a posterior in which states and actions tell of each other; see the module.

    The optimistic cost is what the objective may be where nothing is known. Without one that is 0, or if costs below 0
    were met, which are rewards, the best one less the range of all. A guess whose weight is None is the base from which
    costs are counted: how far it is off is learned by the same model, and with it what it is worth.
    """

    name: ClassVar[str] = "sampled"

    def __init__(self) -> None:
        self._of_states: Floats = np.zeros((0, 0))  # (m+1, S)
        self._of_actions: Floats = np.zeros((0, 0))  # (m+1, A)
        self._levels: Floats = np.zeros((0, 4))  # mu and three variances
        self._scales: Floats = np.zeros((0, 2))  # (m+1, 2) their origin and their unit; 0 before they were drawn
        self._squares: Floats = np.zeros(0)  # (m+1,) of what means differ by, in units of their variance
        self._freedom = 0.0  # how many they are

    def _prepare(self, n_states: int, n_actions: int, n_constraints: int) -> None:
        n_costs = n_constraints + 1
        self._of_states, self._of_actions = np.zeros((n_costs, n_states)), np.zeros((n_costs, n_actions))
        self._levels, self._scales = np.zeros((n_costs, 4)), np.zeros((n_costs, 2))
        self._squares, self._freedom = np.zeros(n_costs), 0.0

    def learn(self, record: Record, before: Counts) -> None:
        r"""Compare the means of an episode with those before.

        Of n and N observations they differ by :math:`N(0, \sigma^2 (1/n + 1/N))`.
        """
        again = np.flatnonzero((record.visits > 0) & (before.visits > 0))
        new, old = record.visits[again], before.visits[again]
        now, then = record.cost_sums[:, again] / new, before.cost_sums[:, again] / old
        apart = np.where(np.abs(now - then) > ROUNDING * (np.abs(now) + np.abs(then)), now - then, 0.0)
        self._squares += (apart**2 / (1.0 / new + 1.0 / old)).sum(axis=1)
        self._freedom += again.size

    def costs(self, counts: Counts, hints: Hints, rng: np.random.Generator) -> Floats:
        """A draw from the posterior of all costs."""
        shape = (len(counts.cost_sums), counts.n_states, counts.n_actions)
        sums, times = counts.cost_sums, counts.visits.astype(np.float64)
        if hints.guess is not None:
            if hints.weight is None:
                return hints.guess + self._corrections(counts, hints.guess, rng)
            worth = np.broadcast_to(hints.weight, shape[1:]).ravel()
            sums, times = sums + worth * hints.guess.reshape(sums.shape), times + worth
        tried = np.flatnonzero(times)
        rest = np.flatnonzero(times == 0.0)
        if not tried.size:
            return np.full(shape, 0.0 if hints.optimistic is None else hints.optimistic)
        means = np.ascontiguousarray(sums[:, tried] / times[tried])
        drawn = self._drawn(means, times[tried], tried, rest, rng)
        if rest.size:
            free = rest if np.ptp(means[0]) == 0.0 else rest[self._free(tried, rest, shape[1], shape[2], rng)]
            drawn[0, free] = _best(means[0], hints.optimistic)
        return drawn.reshape(shape)

    def _corrections(self, counts: Counts, guess: Floats, rng: np.random.Generator) -> Floats:
        """What a guess is off by, (m+1, S, A): drawn by the same model, in which nothing is free."""
        tried, rest = np.flatnonzero(counts.visits), np.flatnonzero(counts.visits == 0)
        if not tried.size:
            return np.zeros_like(guess)
        times = counts.visits[tried].astype(np.float64)
        off = np.ascontiguousarray(counts.cost_sums[:, tried] / times - guess.reshape(len(guess), -1)[:, tried])
        return self._drawn(off, times, tried, rest, rng).reshape(guess.shape)

    def _drawn(self, means: Floats, times: Floats, tried: Ints, rest: Ints, rng: np.random.Generator) -> Floats:
        """All costs (m+1, S*A), from the means (m+1, K) of the pairs tried."""
        drawn = np.empty((len(means), tried.size + rest.size))
        for i, of_cost in enumerate(means):
            drawn[i, tried], drawn[i, rest] = self._draw(i, of_cost, times, tried, rest, rng)
        return drawn

    def _draw(
        self, i: int, means: Floats, times: Floats, tried: Ints, rest: Ints, rng: np.random.Generator
    ) -> tuple[Floats, Floats | float]:
        """A cost of the pairs tried, and of the rest."""
        low, high = float(means.min()), float(means.max())
        n_actions = self._of_actions.shape[1]
        noise = self._noise(i, high - low, rng)
        if low == high and not noise:
            return means, low
        # From here on costs are counted from the lowest one, in units of their range.
        unit = max(high - low, float(np.sqrt(noise)))
        self._rescale(i, low, unit)
        u, v, levels = self._of_states[i], self._of_actions[i], self._levels[i]
        state, action = tried // n_actions, tried % n_actions
        shapes = SHAPE + 0.5 * np.array([np.unique(state).size, np.unique(action).size, tried.size], dtype=np.float64)
        theta = sweep(
            (means - low) / unit, times, state, action, noise / unit / unit, LEAST, u, v, levels,
            normal_variates(u.size + v.size + 1 + tried.size, rng), special.exp_array(log_gamma_variates(shapes, rng)),
        )  # fmt: skip
        others = levels[0] + u[rest // n_actions] + v[rest % n_actions]
        others += np.sqrt(levels[3]) * normal_variates(rest.size, rng)
        return low + unit * theta if noise else means, np.clip(low + unit * others, low, high)

    def _rescale(self, i: int, low: float, unit: float) -> None:
        """Express what was drawn last of a cost by another origin and another unit; begin, if nothing was."""
        before, last = self._scales[i].tolist()
        levels = self._levels[i]
        factor = last / unit
        if not 1.0 / FARTHEST < factor < FARTHEST:
            levels[:], self._of_states[i], self._of_actions[i] = (0.5, 0.25, 0.25, 0.25), 0.0, 0.0
        elif (before, last) != (low, unit):
            levels[0] = levels[0] * factor + (before - low) / unit
            levels[1:] *= factor * factor
            self._of_states[i] *= factor
            self._of_actions[i] *= factor
        self._scales[i] = low, unit

    def _noise(self, i: int, spread: float, rng: np.random.Generator) -> float:
        r"""A draw of :math:`\sigma^2`; 0 if no cost of a pair ever differed from another."""
        if not self._squares[i]:
            return 0.0
        shape = np.array([SHAPE + 0.5 * self._freedom])
        return float(
            (LEAST * spread * spread + 0.5 * self._squares[i]) / special.exp(float(log_gamma_variates(shape, rng)[0]))
        )

    def _free(self, tried: Ints, rest: Ints, n_states: int, n_actions: int, rng: np.random.Generator) -> Bools:
        """Which of the rest have the best objective there may be."""
        visited = np.zeros(n_states, dtype=bool)
        visited[tried // n_actions] = True
        uniforms = rng.random(1 + rest.size)
        rate = -special.expm1(special.log1p(-float(uniforms[0])) / (tried.size + 1.0))  # Beta(1, K + 1)
        return (uniforms[1:] < rate) | ~visited[rest // n_actions]

    def state(self) -> dict[str, Any]:
        """The effects and variances last drawn, and what is known of the noise."""
        effects = {"of_states": self._of_states, "of_actions": self._of_actions, "levels": self._levels}
        return effects | {"scales": self._scales, "squares": self._squares, "freedom": self._freedom}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        self._of_states = saved_floats(state["of_states"], self._of_states.shape, "of_states")
        self._of_actions = saved_floats(state["of_actions"], self._of_actions.shape, "of_actions")
        self._levels = saved_floats(state["levels"], self._levels.shape, "levels")
        self._scales = saved_floats(state["scales"], self._scales.shape, "scales")
        self._squares = saved_floats(state["squares"], self._squares.shape, "squares")
        self._freedom = float(saved_floats(state["freedom"], (), "freedom"))
        drawn = self._scales[:, 1] != 0.0
        if (self._levels[drawn, 1:] <= 0.0).any() or (self._squares < 0.0).any() or self._freedom < 0.0:
            raise AgentError("variances must be positive")
        effects = np.concatenate([np.abs(self._of_states).ravel(), np.abs(self._of_actions).ravel()])
        if (self._scales[:, 1] < 0.0).any() or max(effects.max(), np.abs(self._levels).max()) > FARTHEST:
            raise AgentError("effects are in units of a range, which is positive")


def _best(means: Floats, optimistic: float | None) -> float:
    """What the objective may be at best."""
    if optimistic is not None:
        return optimistic
    low, high = float(means.min()), float(means.max())
    return 0.0 if low >= 0.0 else low - (high - low)
