r"""Beliefs about costs that an agent has to learn.

``EmpiricalMeans`` uses the average cost of every pair. A pair that was never tried has constrained costs 0, and the
objective 0 or, if others have 0 or less, a better one than they have (``untried_costs``). ``PublishedMeans`` has 0 for
every cost of such a pair. ``SampledCosts`` draws costs from a posterior, again for every episode, as transitions are
drawn. Its model is that of a two-way analysis of variance: a cost is mostly the sum of an effect of the state and an
effect of the action,

.. math:: c(s,a) = \mu + u_s + v_a + w_{sa}, \qquad u_s \sim N(0, \tau_u^2),\quad v_a \sim N(0, \tau_v^2),\quad
          w_{sa} \sim N(0, \tau_w^2),

separately for every cost, and the cost of a round is :math:`N(c(s,a), \sigma^2)`. Variances have inverse gamma priors
of shape 1/2 and rate :math:`(r/100)^2/2`, where r is the range of the means so far. Effects and variances are drawn in
turn (Gibbs), one sweep per episode. :math:`\sigma^2` is drawn given how the means of a pair differ from episode to
episode; costs that never differed are taken to be exact.

So a pair that was never tried is neither free nor unknown: a holding cost observed with one order is informative about
all other orders. Two kinds of surprise remain possible in the *objective*, since otherwise the agent would never look
for what it has not met. While all tried pairs have the same cost, all others have the best one. Later, the pairs of a
state that was never visited have it. Each of the other untried pairs is an exception with probability
:math:`\epsilon`, and has it as well: after K pairs without an exception, :math:`\epsilon \sim \mathrm{Beta}(1, K+1)`,
the rule of succession. *Constrained* costs have no such bonus. The best objective is 0 if costs are positive, and
else better than all that were met (``untried_costs``). If all pairs were tried and
have the same objective, those tried least count as slightly better.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.base.saved_fields import need_that, read_fields, real, reals
from psconrl.kernels.arithmetic import special
from psconrl.kernels.draws.cost_effects import sweep
from psconrl.kernels.draws.gamma import log_gamma_variates, normal_variates
from psconrl.learning.part import Part
from psconrl.learning.posterior.counts import LARGEST_SUM, Counts, Record
from psconrl.learning.posterior.untried_costs import RESOLVED, best_objective, favouring_rarely_tried

SHAPE = 0.5  # of the inverse gamma priors
LEAST_RATE = 0.5 * RESOLVED * RESOLVED  # rate of these priors, in units of the range
SAME_COST_TOL = 1e-12  # relative difference of the means of exact costs, at most
FARTHEST = 1e50  # beyond this ratio of two units, draws in one unit are useless in the other


@dataclass(frozen=True)
class Hints:
    """Prior knowledge of costs that an agent learns."""

    optimistic: float | None = None  # best possible value of the objective
    guess: Floats | None = None  # (m+1, S, A) rough values of all costs
    # Weight of the guess in observations, for all pairs or each, (S, A); None if it is to be learned.
    weight: float | Floats | None = 0.0


class CostBelief(Part):
    """Belief about costs while they are learned."""

    kind: ClassVar[str] = "cost_belief"
    example: ClassVar[str] = "SampledCosts()"
    untried_is_free: ClassVar[bool] = False  # whether untried pairs cost 0 although others cost less

    @abstractmethod
    def costs(self, counts: Counts, hints: Hints, rng: np.random.Generator) -> Floats:
        """Return the costs (m+1, S, A) with which to plan the next episode."""

    def costs_in_doubt(self, counts: Counts, hints: Hints, rng: np.random.Generator) -> Floats:
        """Return costs that do not rely on what pairs have in common; see ``parts.doubt``."""
        return self.costs(counts, hints, rng)

    def learn(self, record: Record, before: Counts) -> None:
        """Learn from an episode; the counts do not include it yet."""


class EmpiricalMeans(CostBelief):
    """Average cost of every pair; a pair that was never tried is free, or better than all that were tried.

    The optimistic cost, if there is one, counts as one more observation of the objective in every pair.
    """

    name: ClassVar[str] = "empirical-means"

    def costs(self, counts: Counts, hints: Hints, rng: np.random.Generator) -> Floats:
        """Return the means; nothing is drawn."""
        return counts.hopeful_costs(hints.optimistic, hints.guess, 1.0 if hints.weight is None else hints.weight)


class PublishedMeans(CostBelief):
    """Average cost of every pair, 0 if it was never tried, as in the authors' published code.

    The optimistic cost, if there is one, counts as one more observation of the objective in every pair.
    """

    name: ClassVar[str] = "published-means"
    untried_is_free: ClassVar[bool] = True

    def costs(self, counts: Counts, hints: Hints, rng: np.random.Generator) -> Floats:
        """Return the means; nothing is drawn."""
        return counts.mean_costs(hints.optimistic, hints.guess, 1.0 if hints.weight is None else hints.weight)


class SampledCosts(CostBelief):
    """Costs drawn from a posterior that shares information between states and actions; see the module docstring.

    The optimistic cost is the objective where nothing is known; ``untried_costs`` has its default. A guess whose weight
    is None is the base from which costs are counted: the same model learns its error, and thereby its weight.
    """

    name: ClassVar[str] = "sampled"

    def __init__(self) -> None:
        self._of_states: Floats = np.zeros((0, 0))  # (m+1, S)
        self._of_actions: Floats = np.zeros((0, 0))  # (m+1, A)
        self._levels: Floats = np.zeros((0, 4))  # mu and three variances
        self._scales: Floats = np.zeros((0, 2))  # (m+1, 2) their origin and unit; 0 before the first draw
        self._squares: Floats = np.zeros(0)  # (m+1,) sums of squared differences of means, divided by 1/n + 1/N
        self._freedom = 0.0  # number of terms in these sums

    def _prepare(self, n_states: int, n_actions: int, n_constraints: int) -> None:
        n_costs = n_constraints + 1
        self._of_states, self._of_actions = np.zeros((n_costs, n_states)), np.zeros((n_costs, n_actions))
        self._levels, self._scales = np.zeros((n_costs, 4)), np.zeros((n_costs, 2))
        self._squares, self._freedom = np.zeros(n_costs), 0.0

    def learn(self, record: Record, before: Counts) -> None:
        r"""Compare the means of an episode with those before.

        The means of n and N observations differ by :math:`N(0, \sigma^2 (1/n + 1/N))`.
        """
        again = np.flatnonzero((record.visits > 0) & (before.visits > 0))
        new, old = record.visits[again], before.visits[again]
        now, then = record.cost_sums[:, again] / new, before.cost_sums[:, again] / old
        apart = np.where(np.abs(now - then) > SAME_COST_TOL * (np.abs(now) + np.abs(then)), now - then, 0.0)
        self._squares += (apart**2 / (1.0 / new + 1.0 / old)).sum(axis=1)
        self._freedom += again.size

    def costs(self, counts: Counts, hints: Hints, rng: np.random.Generator) -> Floats:
        """Draw all costs from the posterior."""
        return self._costs(counts, hints, rng, alone=False)

    def costs_in_doubt(self, counts: Counts, hints: Hints, rng: np.random.Generator) -> Floats:
        """Draw the costs of every pair given its own observations alone; an untried pair has the best possible ones."""
        return self._costs(counts, hints, rng, alone=True)

    def _costs(self, counts: Counts, hints: Hints, rng: np.random.Generator, *, alone: bool) -> Floats:
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
        drawn = self._drawn(means, times[tried], tried, rest, rng, alone)
        if rest.size:
            free = rest if alone or np.ptp(means[0]) == 0.0 else rest[self._free(tried, rest, shape[1], shape[2], rng)]
            drawn[0, free] = best_objective(means[0], hints.optimistic)
        elif hints.guess is None and hints.optimistic is None and np.ptp(means[0]) == 0.0:
            drawn[0] = favouring_rarely_tried(means[0], times)
        return drawn.reshape(shape)

    def _corrections(self, counts: Counts, guess: Floats, rng: np.random.Generator) -> Floats:
        """Draw the error of a guess, (m+1, S, A), from the same model, without free pairs."""
        tried, rest = np.flatnonzero(counts.visits), np.flatnonzero(counts.visits == 0)
        if not tried.size:
            return np.zeros_like(guess)
        times = counts.visits[tried].astype(np.float64)
        off = np.ascontiguousarray(counts.cost_sums[:, tried] / times - guess.reshape(len(guess), -1)[:, tried])
        return self._drawn(off, times, tried, rest, rng).reshape(guess.shape)

    def _drawn(
        self, means: Floats, times: Floats, tried: Ints, rest: Ints, rng: np.random.Generator, alone: bool = False
    ) -> Floats:
        """Draw all costs (m+1, S*A), given the means (m+1, K) of the pairs tried."""
        drawn = np.empty((len(means), tried.size + rest.size))
        for i, of_cost in enumerate(means):
            draw = self._draw_alone if alone else self._draw
            drawn[i, tried], drawn[i, rest] = draw(i, of_cost, times, tried, rest, rng)
        return drawn

    def _draw(
        self, i: int, means: Floats, times: Floats, tried: Ints, rest: Ints, rng: np.random.Generator
    ) -> tuple[Floats, Floats | float]:
        """Draw one cost for the pairs tried, and for the rest."""
        low, high = float(means.min()), float(means.max())
        n_actions = self._of_actions.shape[1]
        noise = self._noise(i, high - low, rng)
        if low == high and not noise:
            return means, low
        # From here on costs are relative to the lowest one, in units of their range.
        unit = max(high - low, float(np.sqrt(noise)))
        self._rescale(i, low, unit)
        u, v, levels = self._of_states[i], self._of_actions[i], self._levels[i]
        state, action = tried // n_actions, tried % n_actions
        shapes = SHAPE + 0.5 * np.array([np.unique(state).size, np.unique(action).size, tried.size], dtype=np.float64)
        normal = normal_variates(u.size + v.size + 1 + tried.size, rng)
        gamma = special.exp_array(log_gamma_variates(shapes, rng))
        scaled, noise = (means - low) / unit, noise / unit / unit
        theta = sweep(scaled, times, state, action, noise, LEAST_RATE, u, v, levels, normal, gamma)
        others = levels[0] + u[rest // n_actions] + v[rest % n_actions]
        others += np.sqrt(levels[3]) * normal_variates(rest.size, rng)
        return low + unit * theta if noise else means, np.clip(low + unit * others, low, high)

    def _draw_alone(
        self, i: int, means: Floats, times: Floats, tried: Ints, rest: Ints, rng: np.random.Generator
    ) -> tuple[Floats, Floats | float]:
        r"""Draw one cost of every pair tried from :math:`N(\bar c, \sigma^2/n)`; the rest cost 0, or the least mean."""
        low, high = float(means.min()), float(means.max())
        noise = self._noise(i, high - low, rng)
        spread = np.sqrt(noise / times) * normal_variates(tried.size, rng) if noise else 0.0
        return means + spread, min(low, 0.0)

    def _rescale(self, i: int, low: float, unit: float) -> None:
        """Convert the last draw of a cost to another origin and unit; set initial values if there was no draw."""
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
        r"""Draw :math:`\sigma^2`; 0 if the cost of a pair never varied."""
        if not self._squares[i]:
            return 0.0
        shape = np.array([SHAPE + 0.5 * self._freedom])
        rate = LEAST_RATE * spread * spread + 0.5 * self._squares[i]
        return float(rate / special.exp(float(log_gamma_variates(shape, rng)[0])))

    def _free(self, tried: Ints, rest: Ints, n_states: int, n_actions: int, rng: np.random.Generator) -> Bools:
        """Return a mask of those of the rest that get the best possible objective."""
        visited = np.zeros(n_states, dtype=bool)
        visited[tried // n_actions] = True
        uniforms = rng.random(1 + rest.size)
        rate = -special.expm1(special.log1p(-float(uniforms[0])) / (tried.size + 1.0))  # Beta(1, K + 1)
        return (uniforms[1:] < rate) | ~visited[rest // n_actions]

    def state(self) -> dict[str, Any]:
        """Return the effects and variances last drawn, and the statistics of the noise."""
        effects = {"of_states": self._of_states, "of_actions": self._of_actions, "levels": self._levels}
        return effects | {"scales": self._scales, "squares": self._squares, "freedom": self._freedom}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        described = {
            "of_states": reals(self._of_states.shape, -FARTHEST, FARTHEST),
            "of_actions": reals(self._of_actions.shape, -FARTHEST, FARTHEST),
            "levels": reals(self._levels.shape, -FARTHEST, FARTHEST),
            "scales": reals(self._scales.shape, -LARGEST_SUM, LARGEST_SUM),
            "squares": reals(self._squares.shape, 0.0),
            "freedom": real(0.0),
        }
        self._of_states, self._of_actions, self._levels, self._scales, self._squares, self._freedom = read_fields(
            state, described
        ).values()
        units = self._scales[:, 1]
        need_that((units >= 0.0).all(), "scales must have units that are not negative")
        need_that((self._levels[units != 0.0, 1:] > 0.0).all(), "levels must have variances above 0")
