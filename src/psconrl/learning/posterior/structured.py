r"""A belief about a system whose structure is known: only the parameters of its noise are learned.

.. math:: P_\theta(s' \mid s,a) = \sum_{w:\, f(s,a,w) = s'} p_\theta(w \mid s,a)

A transition that only one outcome of the noise explains reveals that outcome. Where several do, as when demand exceeds
what is on the shelf, the outcomes are drawn given the parameters, and the parameters given the outcomes, in turn: data
augmentation (Tanner and Wong 1987), which samples the exact posterior in the limit of many sweeps. The parameters are
the state of this chain, which continues from episode to episode.
"""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from psconrl.arrays import Floats, Ints
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

    def sample(self, counts: Counts, rng: np.random.Generator) -> Transition:
        """Draw the parameters, and return the transitions that follow from them."""
        randomness = self._structure.randomness
        observed = self.observed(counts)
        seen = np.flatnonzero(observed)
        members, times = self._members[seen], observed[seen]
        shape = randomness.n_contexts, randomness.n_outcomes
        certain = bool((members[:, 1:] < 0).all()) and randomness.is_conjugate  # then one draw is exact
        for _ in range((1 if certain else SWEEPS) if randomness.priors else 0):
            table = np.append(self._structure.table(self.parameters).ravel(), 0.0)
            shares = table[members]
            totals = shares.sum(axis=1, keepdims=True)
            drawn = rng.multinomial(times, shares / np.where(totals > 0.0, totals, 1.0)) if seen.size else members
            outcomes = np.bincount(members.ravel() + 1, weights=drawn.ravel(), minlength=table.size)[1:]
            self.parameters = randomness.draw(outcomes.reshape(shape).astype(np.float64), self.parameters, rng)
        self._table = self._structure.table(self.parameters)
        return self._structure.transition(self._table)

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
