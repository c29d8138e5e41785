r"""A belief about a system whose structure is known: only the parameters of its noise are learned.

.. math:: P_\theta(s' \mid s,a) = \sum_{w:\, f(s,a,w) = s'} p_\theta(w \mid s,a)

A transition that only one outcome of the noise explains reveals that outcome. Where several do, as when demand exceeds
what is on the shelf, the outcomes are drawn given the parameters, and the parameters given the outcomes, in turn: data
augmentation (Tanner and Wong 1987), which samples the exact posterior in the limit of many sweeps. The parameters are
the state of this chain, which continues from episode to episode. A noise of which a transition reveals nothing, such as
a delivery when none is due, is not drawn for it: it would only slow the chain down.
"""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from psconrl.arrays import Bools, Floats, Ints
from psconrl.errors import AgentError
from psconrl.learning.checks import saved_floats
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.posterior.transition_beliefs import Belief
from psconrl.model.transition import Transition
from psconrl.systems.randomness import Parameters
from psconrl.systems.structure import Structure

SWEEPS = 5  # per episode


class Structured(Belief):
    """Posterior over the unknown parameters of a system's noise.

    ``structure``: what ``System.structure`` is, or the same as plain data.
    """

    name: ClassVar[str] = "structured"
    determines_costs: ClassVar[bool] = True

    def __init__(self, structure: Structure | dict[str, Any]) -> None:
        if not isinstance(structure, Structure | dict):
            raise AgentError(f"structure must be that of a System, as in Structured(shop.structure); got {structure!r}")
        self._structure = structure if isinstance(structure, Structure) else Structure.from_dict(structure)
        self.structure = self._structure.to_dict()
        self.parameters: Parameters = self._structure.randomness.initial()  # last drawn
        self._table: Floats | None = None
        self.impossible = 0  # observed transitions that the structure calls impossible

    def _prepare(self, n_states: int, n_actions: int, n_constraints: int) -> None:
        given = self._structure
        if (given.n_states, given.n_actions) != (n_states, n_actions):
            raise AgentError(
                f"the structure has {given.n_states} states and {given.n_actions} actions, the agent {n_states} and "
                f"{n_actions}"
            )
        if len(given.fixed_costs) != n_constraints + 1:
            raise AgentError(f"the structure has {len(given.fixed_costs) - 1} limits, the agent {n_constraints}")

    def __deepcopy__(self, memo: object) -> "Structured":
        return Structured(self._structure)

    def entries(self, n_states: int, n_actions: int) -> float:
        """Return the number of transitions in a sample."""
        return float(self._structure.patterns.successors.size)

    @cached_property
    def _numbers(self) -> Ints:
        """The numbers s * A * S + a * S + s' of the entries, increasing."""
        patterns = self._structure.patterns
        pairs = np.repeat(np.arange(patterns.indptr.size - 1), np.diff(patterns.indptr))
        return np.asarray(pairs * self._structure.n_states + patterns.successors)

    @cached_property
    def _members(self) -> Ints:
        """The cells of every pattern, one row each, filled up with -1."""
        patterns = self._structure.patterns
        lengths = np.diff(patterns.starts)
        table = np.full((lengths.size, lengths.max()), -1)
        table[np.arange(lengths.max()) < lengths[:, None]] = patterns.cells
        return table

    def observed(self, counts: Counts) -> Ints:
        """Return how often every pattern was observed; count transitions that no outcome explains."""
        tally, numbers = counts.tally, self._numbers
        place = np.minimum(np.searchsorted(numbers, tally.numbers), numbers.size - 1)
        known = numbers[place] == tally.numbers
        self.impossible = int(tally.times[~known].sum())
        patterns = self._structure.patterns
        times = np.bincount(
            patterns.of_entry[place[known]], weights=tally.times[known], minlength=patterns.starts.size - 1
        )
        return times.astype(np.int64)

    @cached_property
    def _revealed(self) -> tuple[Bools, Bools]:
        """Whether a pattern reveals anything of each noise, (patterns, K), and whether it leaves it in doubt what.

        A pattern reveals nothing of a noise if it holds every outcome of that noise together with each joint outcome of
        the others that it holds.
        """
        patterns, randomness = self._structure.patterns, self._structure.randomness
        lengths = np.diff(patterns.starts)
        W, sizes = randomness.n_outcomes, randomness.sizes
        of_cell = np.repeat(np.arange(lengths.size), lengths)
        contexts = patterns.cells[patterns.starts[:-1]] // W
        possible = randomness.possible().reshape(-1, *sizes)
        places = np.array(np.unravel_index(patterns.cells % W, sizes))
        reveals = np.empty((lengths.size, len(sizes)), dtype=bool)
        together = np.ones(lengths.size, dtype=np.int64)  # joint outcomes of the noises of which nothing is revealed
        for k in range(len(sizes)):
            others = tuple(1 + j for j in range(len(sizes)) if j != k)
            number = possible.any(axis=others).sum(axis=1)[contexts]
            rest = places.copy()
            rest[k] = 0
            distinct = np.unique(of_cell * W + np.ravel_multi_index(tuple(rest), sizes)) // W
            reveals[:, k] = np.bincount(distinct, minlength=lengths.size) * number != lengths
            together *= np.where(reveals[:, k], 1, number)
        return reveals, lengths > together

    def sample(self, counts: Counts, rng: np.random.Generator) -> Transition:
        """Draw the parameters, and return the transitions that follow from them."""
        randomness = self._structure.randomness
        observed = self.observed(counts)
        if randomness.priors:
            reveals, doubtful = self._revealed
            seen = (observed > 0) & reveals.any(axis=1)
            settled, open_ = np.flatnonzero(seen & ~doubtful), np.flatnonzero(seen & doubtful)
            # Of a settled pattern all outcomes have the same revealed noise, so that any of them will do.
            numbers = self._added(settled, observed[settled, None], self._members[settled, :1])
            if randomness.is_conjugate and not open_.size:  # one draw is exact
                self.parameters = randomness.draw(numbers, self.parameters, rng)
            else:
                self._sweep(numbers, open_, observed[open_], rng)
        self._table = self._structure.table(self.parameters)
        return self._structure.transition(self._table)

    def _sweep(self, numbers: Floats, patterns: Ints, times: Ints, rng: np.random.Generator) -> None:
        """Draw outcomes given parameters, and parameters given outcomes, in turn."""
        randomness, members = self._structure.randomness, self._members[patterns]
        for _ in range(SWEEPS):
            outcomes = numbers
            if patterns.size:
                shares = np.append(self._structure.table(self.parameters), 0.0)[members]
                totals = shares.sum(axis=1, keepdims=True)
                drawn = rng.multinomial(times, shares / np.where(totals > 0.0, totals, 1.0))
                outcomes = numbers + self._added(patterns, drawn, members)
            self.parameters = randomness.draw(outcomes, self.parameters, rng)

    def _added(self, patterns: Ints, times: Ints, cells: Ints) -> Floats:
        """Return the numbers (K, G, W) of outcomes for every noise of which the patterns reveal something.

        ``times``: (n, L), of the ``cells`` of each pattern, of which those that are -1 are left out.
        """
        randomness = self._structure.randomness
        shape = len(randomness.sizes), randomness.n_contexts, randomness.n_outcomes
        size = shape[1] * shape[2]
        some, noise = np.nonzero(self._revealed[0][patterns])
        places = np.where(cells[some] >= 0, noise[:, None] * size + cells[some], shape[0] * size)
        found = np.bincount(places.ravel(), weights=times[some].ravel(), minlength=shape[0] * size + 1)
        return found[:-1].reshape(shape).astype(np.float64)

    def costs(self) -> Floats | None:
        """Return the expected costs under the parameters last drawn."""
        return None if self._table is None else self._structure.costs(self.parameters)

    def mean(self, counts: Counts) -> Floats:
        """Return the transitions (S*A, S) under the parameters last drawn."""
        return self._structure.transition(self._structure.table(self.parameters)).toarray()

    def state(self) -> dict[str, Any]:
        """Return the parameters last drawn."""
        return {"parameters": dict(self.parameters), "sampled": self._table is not None}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        for name, value in self.parameters.items():
            self.parameters[name] = saved_floats(state["parameters"][name], value.shape, name)
        self._table = self._structure.table(self.parameters) if state["sampled"] else None

    def __repr__(self) -> str:
        priors = self._structure.randomness.priors
        return f"Structured({', '.join(f'{name} ~ {prior}' for name, prior in priors.items()) or 'all known'})"
