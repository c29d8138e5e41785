r"""The structure of a system: what every joint outcome of its noise does in every pair.

.. math:: P_\theta(s' \mid s,a) = \sum_{w:\, f(s,a,w) = s'} p_\theta(w \mid g(s,a)), \qquad
          \bar c_\theta(s,a) = \sum_w p_\theta(w \mid g(s,a))\, c(s,a,w).

Entries (s, a, s') with the same context and the same set of outcomes have the same probability. Such a set is a
*pattern*. There are few of them in most systems, however many states there are, so that a new model costs hardly more
than copying one number per entry.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from psconrl.base.arrays import Floats, Ints, Places
from psconrl.base.caps import LARGEST_COST
from psconrl.base.saved_fields import integer, integers, listed, maybe, need_that, read_fields, reals
from psconrl.base.sizes import SMALL_SAMPLE_STATES
from psconrl.kernels.linear import csr
from psconrl.kernels.play.play_loop import EXACT
from psconrl.model.simulation_tables import Tables
from psconrl.model.transition import DenseTransition, SparseTransition, Transition
from psconrl.systems.events import EventClock
from psconrl.systems.randomness import Parameters, Randomness, RoundNoise


@dataclass(frozen=True, eq=False)
class Patterns:
    """Sets of joint outcomes that lead from a pair to the same next state."""

    indptr: Places  # (S*A + 1,) of the transition matrix
    successors: Places  # (entries,) increasing in every row
    of_entry: Ints  # (entries,) the pattern of each
    starts: Ints  # (patterns + 1,) of the following
    cells: Ints  # context * W + outcome, of all members of all patterns

    def probabilities(self, table: Floats) -> Floats:
        """Return the probability of every pattern, given those of the joint outcomes (G, W)."""
        return np.asarray(np.add.reduceat(table.ravel()[self.cells], self.starts[:-1]))


@dataclass(frozen=True, eq=False)
class Structure:
    """Next states and costs of all joint outcomes in all pairs, and the distribution of the outcomes."""

    n_states: int
    n_actions: int
    successors: Places  # (S*A, W)
    contexts: Ints  # (S*A,)
    randomness: Randomness
    fixed_costs: Floats  # (m+1, S*A) what does not depend on the outcome
    outcome_costs: tuple[Floats | None, ...]  # (m+1) of (S*A, W), or None
    event_costs: tuple[Floats | None, ...]  # (m+1) of (S*A, E), or None: paid for every event, at its rate

    @cached_property
    def patterns(self) -> Patterns:
        """The patterns of all entries."""
        S, W = self.n_states, self.successors.shape[1]
        cells = self.contexts[:, None] * W + np.arange(W)
        kept = self.randomness.possible()[self.contexts]
        pairs = np.broadcast_to(np.arange(len(cells))[:, None], cells.shape)[kept]
        numbers, cells = pairs * S + self.successors[kept], cells[kept]
        order = np.lexsort((cells, numbers))
        numbers, cells = numbers[order], cells[order]
        begins = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
        marks = _marks(cells, begins, seed=1)
        first, of_entry = np.unique(marks, return_index=True, return_inverse=True)[1:]
        other = _marks(cells, begins, seed=2)
        assert (other == other[first][of_entry]).all(), "two sets of outcomes have the same mark"
        lengths = np.diff(np.append(begins, cells.size))[first]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        members = np.repeat(begins[first] - starts[:-1], lengths) + np.arange(starts[-1])
        entries = numbers[begins]
        indptr = np.searchsorted(entries, np.arange(len(self.contexts) + 1) * S)
        return Patterns(
            indptr.astype(np.int32), (entries % S).astype(np.int32), of_entry.ravel(), starts, cells[members]
        )

    def transition(self, table: Floats) -> Transition:
        """Return the transitions, given the probabilities (G, W) of the joint outcomes."""
        patterns = self.patterns
        data = patterns.probabilities(table)[patterns.of_entry]
        matrix = csr_array((data, patterns.successors, patterns.indptr), shape=(self.contexts.size, self.n_states))
        if self.n_states <= SMALL_SAMPLE_STATES:
            return DenseTransition(matrix.toarray())
        found = SparseTransition(matrix)
        found.repeats = True  # the sparsity pattern is the same for all parameters
        return found

    def expected_transition(self, table: Floats) -> csr_array:
        """Return the same transitions, (S*A, S), without the work of finding patterns.

        Outcomes with the same next state are added in their order, which fixes the last bit.
        """
        probabilities = table[self.contexts]
        kept = probabilities > 0.0
        pairs = np.repeat(np.arange(len(kept)), kept.sum(axis=1))
        numbers = pairs * self.n_states + self.successors[kept]
        order = np.argsort(numbers, kind="stable")
        numbers = numbers[order]
        new = np.append(True, numbers[1:] != numbers[:-1])
        data = np.bincount(np.cumsum(new) - 1, weights=probabilities[kept][order])
        indptr = np.searchsorted(numbers[new], np.arange(len(kept) + 1) * self.n_states)
        return csr_array((data, numbers[new] % self.n_states, indptr), shape=(len(kept), self.n_states))

    def costs(self, parameters: Parameters) -> Floats:
        """Return the expected costs (m+1, S, A), given the parameters."""
        means = self.fixed_costs.copy()
        randomness = self.randomness
        weights = {"outcome": randomness.table(parameters)}
        if isinstance(randomness, EventClock):
            weights["event"] = randomness.intensities(parameters)
        for (kind, i), (first, of_pair) in self._like_costs.items():
            costs = (self.outcome_costs if kind == "outcome" else self.event_costs)[i]
            assert costs is not None
            sums = np.cumsum(weights[kind][self.contexts[first]] * costs[first], axis=1)[:, -1]
            means[i] += sums[of_pair]
        return means.reshape(-1, self.n_states, self.n_actions)

    def paid(self, i: int, pairs: slice = slice(None)) -> Floats | None:
        """Return what a cost adds in every outcome, (S*A, W), to what is fixed; None if nothing.

        ``pairs``: the rows that are wanted, by default all.
        """
        of_outcome, of_event = (None if c is None else c[pairs] for c in (self.outcome_costs[i], self.event_costs[i]))
        if of_event is None:
            return of_outcome
        assert isinstance(self.randomness, EventClock)
        paid = self.randomness.clock * np.column_stack([of_event, np.zeros(len(of_event))])
        return paid if of_outcome is None else paid + of_outcome

    @cached_property
    def _like_costs(self) -> dict[tuple[str, int], tuple[Ints, Ints]]:
        """Of costs by outcome: the first pair of each kind of pairs, and the kind of every pair.

        Pairs are of the same kind if their contexts and the costs of all outcomes are the same.
        """
        found = {}
        for kind, all_costs in (("outcome", self.outcome_costs), ("event", self.event_costs)):
            for i, costs in enumerate(all_costs):
                if costs is not None:
                    codes = np.unique(costs, return_inverse=True)[1].reshape(costs.shape)
                    rows = np.column_stack([self.contexts, codes]).astype(np.uint64)
                    marks, other = (rows @ _signs(rows.shape[1], seed) for seed in (1, 2))
                    first, of_pair = np.unique(marks, return_index=True, return_inverse=True)[1:]
                    assert (other == other[first][of_pair]).all(), "two rows of costs have the same mark"
                    found[kind, i] = first, of_pair
        return found

    def table(self, parameters: Parameters) -> Floats:
        """Return the probabilities (G, W) of the joint outcomes."""
        return self.randomness.table(parameters)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: sizes, arrays, and the description of the noise."""
        return {
            "n_states": self.n_states,
            "n_actions": self.n_actions,
            "successors": self.successors,
            "contexts": self.contexts,
            "randomness": self.randomness.to_dict(),
            "fixed_costs": self.fixed_costs,
            "outcome_costs": list(self.outcome_costs),
            "event_costs": list(self.event_costs),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Structure":
        """Return what ``to_dict`` described."""
        sizes = read_fields(data, {"n_states": integer(1), "n_actions": integer(1)})
        S, pairs = sizes["n_states"], sizes["n_states"] * sizes["n_actions"]
        read = {"successors": integers((pairs, None), 0, S - 1), "randomness": randomness_from_dict}
        found = sizes | read_fields(data, read)
        randomness: Randomness = found["randomness"]
        W, G = found["successors"].shape[1], randomness.n_contexts
        need_that(randomness.n_outcomes == W, f"successors must be those of {randomness.n_outcomes:,} outcomes")
        need_that(pairs >= G, f"randomness must have {pairs:,} contexts at most")
        found |= read_fields(data, {"contexts": integers((pairs,), 0, G - 1)})
        found |= read_cost_tables(data, ("fixed_costs", "outcome_costs", "event_costs"), pairs, W, randomness)
        found["successors"] = found["successors"].astype(np.int32)
        return cls(**found)


def read_cost_tables(
    data: Any, names: tuple[str, str, str], n_pairs: int, n_outcomes: int, randomness: Randomness
) -> dict[str, Any]:
    """Return costs from a file: what is fixed (k, S*A), and of each cost what depends on outcome or event, or None."""
    fixed, by_outcome, by_event = names
    found = read_fields(data, {fixed: reals((None, n_pairs), -LARGEST_COST, LARGEST_COST)})
    number, n_events = len(found[fixed]), n_outcomes - 1 if isinstance(randomness, EventClock) else 0
    sizes = {by_outcome: n_outcomes, by_event: n_events}
    read = {
        name: listed(maybe(reals((n_pairs, size), -LARGEST_COST, LARGEST_COST)), number) for name, size in sizes.items()
    }
    found |= {name: tuple(costs) for name, costs in read_fields(data, read).items()}
    need_that(
        n_events or not any(costs is not None for costs in found[by_event]), f"{by_event} must be those of events"
    )
    return found


def _marks(cells: Ints, begins: Ints, seed: int) -> NDArray[np.uint64]:
    """Return a number that recognises each set of cells: the sum of random 64-bit numbers of its members."""
    return np.asarray(np.add.reduceat(_signs(cells.max() + 1, seed)[cells], begins))


def _signs(size: int, seed: int) -> NDArray[np.uint64]:
    """Return random 64-bit numbers."""
    return np.random.Generator(np.random.PCG64(seed)).integers(0, 2**63, size=size, dtype=np.uint64)


def randomness_from_dict(data: dict[str, Any]) -> Randomness:
    """Return noise or events from plain data."""
    return EventClock.from_dict(data) if isinstance(data, Mapping) and "factors" in data else RoundNoise.from_dict(data)


def outcome_tables(structure: Structure) -> Tables:
    """Lay out a system for simulation, with an entry for every outcome of every pair."""
    probabilities = structure.table(structure.randomness.initial())[structure.contexts]
    kept = probabilities > 0.0
    indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int32)
    pairs = np.repeat(np.arange(len(kept)), np.diff(indptr))
    costs = structure.fixed_costs[:, pairs]
    for i in range(len(costs)):
        paid = structure.paid(i)
        if paid is not None:
            costs[i] += paid[kept]
    cdf = csr.row_cdf(indptr, np.ascontiguousarray(probabilities[kept]))
    successors = np.ascontiguousarray(structure.successors[kept], dtype=np.int32)
    ranges = np.array([costs.min(axis=1), costs.max(axis=1)])
    return Tables(indptr, successors, cdf, np.ascontiguousarray(costs), EXACT, ranges)
