"""What the safe agent knows when it plans: confidence sets over the rows of transitions, or over a system's noise."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.base.sizes import ELIMINATED_CHAIN_STATES, SAFE_DENSE_ENTRIES
from psconrl.kernels.arithmetic import special
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.safe.confidence_intervals import Intervals
from psconrl.learning.safe.noise_bounds import NoiseIntervals
from psconrl.learning.safe.outcome_blocks import OutcomeBlocks
from psconrl.markov.direct_solver import narrow_order
from psconrl.markov.elimination_order import NO_ORDER, Order
from psconrl.model.cmdp import CMDP
from psconrl.planning.robust.noise_box import NoiseBox
from psconrl.planning.robust.pessimism import Distributions, largest_means
from psconrl.systems.randomness import Parameters
from psconrl.systems.structure import Structure
from psconrl.systems.vocabulary import Vocabulary

KNOWN_MASS = 0.5  # largest uncertain mass of a pair's distribution for its state to be planned without the baseline


class View(NamedTuple):
    """The agent's knowledge when an episode is planned."""

    distributions: Distributions | NoiseBox
    costs: Floats  # (m, S, A) upper bounds of what the constrained costs do not owe to the noise
    paid: tuple[Floats | None, ...]  # (m) of (S*A, W): what the outcomes of the noise add to them, or None
    means: Floats  # (m, S, A) expected costs in the model, or upper bounds of them
    worst: Floats  # (m, S, A) upper bounds of the expected costs
    pairs: Bools  # (S, A) whose distribution is known, up to a share of its mass
    known: Bools  # (S,) where plans do not need the baseline
    own: Bools  # (S,) where the transitions of the baseline are known, too
    model: CMDP  # the estimated model
    tries: Ints  # (S, A) rounds in which what a pair reveals has been seen
    rounds: int  # played so far
    whole: CMDP  # the same model with all actions, also where plans rely on the baseline: exploration takes them

    @property
    def order(self) -> Order | None:
        """The elimination order of the chains of all policies, if it is known."""
        return self.distributions.order if isinstance(self.distributions, NoiseBox) else None

    def largest(self, i: int, h: Floats) -> Floats:
        """Return the largest mean of h of every pair, with what the noise adds to a constrained cost, (S*A,)."""
        return largest_means(self.distributions, h, self.paid[i])

    def expected(self, i: int, h: Floats) -> Floats:
        """Return the same in the model, (S*A,)."""
        following: Floats = self.model.transition @ h
        return following if self.paid[i] is None else following + (self.means[i] - self.costs[i]).ravel()


def feared_costs(view: View, biases: Floats) -> Floats:
    """Return the constrained costs (m, S, A) with what the uncertainty of the transitions adds at biases (m, S)."""
    m, S, A = view.means.shape
    result = np.empty((m, S, A))
    for i, h in enumerate(biases):
        result[i] = view.means[i] + np.maximum(view.largest(i, h) - view.expected(i, h), 0.0).reshape(S, A)
    return result


class Occasion(NamedTuple):
    """What a view is made for."""

    state: int  # in which the episode begins
    thresholds: Floats  # (m,)
    baseline: Floats  # (S, A)
    span: Floats | None  # (m,) or (m, S), of the baseline


def _known(pairs: Bools, occasion: Occasion) -> tuple[Bools, Bools]:
    """Return the states in which some pair is known, and those in which all pairs of the baseline are."""
    known: Bools = np.asarray(pairs.any(axis=1))
    if occasion.span is None and not known.all():
        known = np.zeros(known.size, dtype=np.bool_)
    own: Bools = np.asarray((pairs | (occasion.baseline == 0)).all(axis=1) & known)
    return known, own


def view_of_rows(counts: Counts, log_inverse: float, means: Floats, highest: Floats, occasion: Occasion) -> View:
    """Return the knowledge about rows that were counted.

    ``means`` (m+1, S, A): of the costs; ``highest`` (m, S, A): upper bounds of the constrained ones.
    """
    S, A = counts.n_states, counts.n_actions
    seen, visits = counts.moves, counts.visits
    distributions = Intervals.of_moves(seen, visits, log_inverse)
    pairs: Bools = (distributions.doubtful <= KNOWN_MASS).reshape(S, A)
    known, own = _known(pairs, occasion)
    times = np.diff(seen.indptr)
    untried = np.flatnonzero(visits == 0)
    # An untried pair has a self-loop; where the plan relies on the baseline, it moves to the most visited state.
    home = np.where(known[untried // A], untried // A, counts.pairs.sum(axis=1).argmax())
    rows = np.concatenate([np.repeat(np.arange(S * A), times), untried])
    columns = np.concatenate([seen.indices, home])
    data = np.concatenate([seen.data / np.repeat(visits, times), np.ones(untried.size)])
    if S * S * A <= SAFE_DENSE_ENTRIES:
        matrix = np.zeros((S * A, S))
        matrix[rows, columns] = data
    else:
        matrix = csr_array((data, (rows, columns)), shape=(S * A, S))
    model = CMDP(
        matrix,
        means,
        occasion.thresholds,
        initial=occasion.state,
        available=known[:, None] | (occasion.baseline > 0),
    )
    whole = model if known.all() else CMDP(matrix, means, occasion.thresholds, initial=occasion.state)
    nothing, rounds = (None,) * len(highest), int(visits.sum())
    return View(
        distributions, highest, nothing, highest, highest, pairs, known, own, model, counts.pairs, rounds, whole
    )  # fmt: skip


class NoiseKnowledge:
    """The knowledge about a system that is known except for the parameters of its noise; ``words``: as of its views."""

    def __init__(self, structure: Structure, words: Vocabulary | None = None) -> None:
        self._structure = structure
        self.intervals = NoiseIntervals(structure, words)
        self.blocks = OutcomeBlocks(self.intervals.views)
        possible = structure.randomness.possible()[structure.contexts]
        self._successors = np.ascontiguousarray(np.where(possible, structure.successors, 0), dtype=np.int32)
        self._sizes = np.array(structure.randomness.sizes, dtype=np.int64)
        self._contexts = np.ascontiguousarray(structure.contexts, dtype=np.int64)
        self._paid = tuple(
            None if paid is None else np.ascontiguousarray(np.where(possible, paid, 0.0))
            for paid in (structure.paid(i) for i in range(len(structure.fixed_costs)))
        )
        self.ranges = np.array([self._range(i, possible) for i in range(len(self._paid))])
        self._n_contexts = structure.randomness.n_contexts
        patterns = structure.patterns
        order = narrow_order(patterns.indptr, patterns.successors, structure.n_states, ELIMINATED_CHAIN_STATES)
        self._order = None if order is NO_ORDER else order  # chains of single policies may be narrower

    @property
    def n_cells(self) -> int:
        """Number of joint outcomes of all pairs."""
        return int(self._successors.size)

    def log_inverses(self, delta: float) -> tuple[float, float]:
        """Return the logs of the inverse failure probabilities of an interval of a noise, and of one of a block.

        Each kind has half of delta; if there are no intervals of blocks, the other has all of it.
        """
        kinds = 2 if self.blocks.number else 1
        noises, blocks = (special.log(kinds * max(n, 1) / delta) for n in (self.intervals.number, self.blocks.number))
        return noises, blocks

    def _range(self, i: int, possible: Bools) -> tuple[float, float]:
        """Return the lowest and the highest of what a round may cost."""
        fixed, paid = self._structure.fixed_costs[i], self._paid[i]
        if paid is None:
            return float(fixed.min()), float(fixed.max())
        sums = (fixed[:, None] + paid)[possible]
        return float(sums.min()), float(sums.max())

    def view(self, counts: Counts, delta: float, occasion: Occasion) -> tuple[View, Parameters]:
        """Return the knowledge after some counts, and estimates of the parameters."""
        structure, log_inverses = self._structure, self.log_inverses(delta)
        S, A = structure.n_states, structure.n_actions
        bounds = self.intervals.bounds(counts, log_inverses[0])
        together = self.blocks.bounds(counts, log_inverses[1])
        box = NoiseBox(self._successors, self._contexts, self._sizes, bounds.low, bounds.high, together, self._order)
        fixed = structure.fixed_costs[1:].reshape(-1, S, A)
        costs = structure.costs(bounds.parameters)
        doubtful = 1.0 - bounds.certain(self._sizes)
        pairs: Bools = (doubtful[self._contexts] <= KNOWN_MASS).reshape(S, A)
        known, own = _known(pairs, occasion)
        by_state = occasion.span is not None and occasion.span.ndim == 2
        whole = CMDP(
            structure.transition(structure.table(bounds.parameters)),
            costs,
            occasion.thresholds,
            initial=occasion.state,
        )
        model = whole
        if not (by_state or known.all()):
            model = CMDP(
                whole.transition,
                costs,
                occasion.thresholds,
                initial=occasion.state,
                available=known[:, None] | (occasion.baseline > 0),
            )
        nothing = np.zeros(S)
        worst = [
            fixed[i] if paid is None else fixed[i] + largest_means(box, nothing, paid).reshape(S, A)
            for i, paid in enumerate(self._paid[1:])
        ]
        tries = np.bincount(self._contexts, weights=counts.visits, minlength=self._n_contexts).astype(np.int64)
        return View(
            box, fixed, self._paid[1:], costs[1:], np.array(worst).reshape(fixed.shape), pairs, known, own, model,
            tries[self._contexts].reshape(S, A), int(counts.visits.sum()), whole,
        ), bounds.parameters  # fmt: skip
