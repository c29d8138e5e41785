r"""A belief about a system whose structure is known: only the parameters of its noise are learned.

.. math:: P_\theta(s' \mid s,a) = \sum_{w:\, f(s,a,w) = s'} p_\theta(w \mid s,a)

A transition that only one outcome of the noise explains reveals that outcome. Where several do, as when demand exceeds
what is on the shelf, the outcomes are drawn given the parameters, and the parameters given the outcomes, in turn: data
augmentation (Tanner and Wong 1987), which samples the exact posterior in the limit of many sweeps. The parameters are
the state of this chain, which continues from episode to episode. A noise of which a transition reveals nothing, such as
a delivery when none is due, is not drawn for it: it would only slow the chain down. Where the noise itself was seen,
only outcomes that agree with what was seen explain a transition.
"""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.errors import AgentError, unknown_name
from psconrl.learning.checks import saved_floats
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.posterior.learned_mass import WORTHS, LearnedMass
from psconrl.learning.posterior.outcome_sets import OutcomeSets
from psconrl.learning.posterior.structure_check import StructureCheck
from psconrl.learning.posterior.transition_beliefs import Belief
from psconrl.model.transition import Transition
from psconrl.systems.functions import shown_values
from psconrl.systems.randomness import Parameters
from psconrl.systems.structure import Structure
from psconrl.systems.system import System
from psconrl.systems.vocabulary import Vocabulary

SWEEPS = 5  # per episode
WARN, ROWS = "warn", "rows"
IMPOSSIBLE = "impossible transitions"  # a key of the doubts
UNFORESEEN = 1e-4  # share of the guessed rows for other states; without it, their worth would not fall by surprises
FIRST_CHECK, UNTIL_NEXT = 50, 1.25  # rounds of the first test, and by which factor more at the next


class Structured(Belief):
    """Posterior over the unknown parameters of a system's noise.

    ``structure``: what ``System.structure`` is, or the same as plain data. ``words``: the names and values of the
    system's variables, for live use. ``surprise``: what follows once the structure is doubted, because an impossible
    transition was observed or a noise has another distribution: ``"warn"`` goes on with it, ``"rows"`` learns every row
    of the transitions, and the costs, with the structure as a guess. ``doubts`` says what is wrong.
    """

    name: ClassVar[str] = "structured"
    stands_alone: ClassVar[bool] = False

    def __init__(
        self,
        structure: Structure | dict[str, Any],
        words: Vocabulary | dict[str, Any] | None = None,
        surprise: str = WARN,
    ) -> None:
        if surprise not in (WARN, ROWS):
            raise AgentError(unknown_name("surprise", surprise, (WARN, ROWS)))
        if not isinstance(structure, Structure | dict):
            raise AgentError(f"structure must be that of a System, as in Structured(shop.structure); got {structure!r}")
        self._structure = structure if isinstance(structure, Structure) else Structure.from_dict(structure)
        self.structure = self._structure.to_dict()
        self.vocabulary = Vocabulary.from_dict(words) if isinstance(words, dict) else words
        self.words = None if self.vocabulary is None else self.vocabulary.to_dict()
        self.surprise = surprise
        self.parameters: Parameters = self._structure.randomness.initial()  # last drawn
        self._costs: Floats | None = None
        self.impossible = 0  # observed transitions that the structure calls impossible
        self.doubts: dict[str, str] = {}  # what is wrong with the structure, by noise
        self._next_check = FIRST_CHECK  # number of rounds
        self._check = StructureCheck(self._structure)
        self._rows: LearnedMass | None = None  # the belief that is used once the structure is doubted

    @classmethod
    def of(cls, system: System, surprise: str = WARN) -> "Structured":
        """Return the belief about a system, in the words of its owner."""
        return cls(system.structure, system.vocabulary(), surprise)

    @property
    def known_structure(self) -> Structure:
        """What every outcome of the noise does in every pair."""
        return self._structure

    def _prepare(self, n_states: int, n_actions: int, n_constraints: int) -> None:
        given = self._structure
        if (given.n_states, given.n_actions) != (n_states, n_actions):
            raise AgentError(
                f"the structure has {given.n_states} states and {given.n_actions} actions, the agent {n_states} and "
                f"{n_actions}"
            )
        if len(given.fixed_costs) != n_constraints + 1:
            raise AgentError(f"the structure has {len(given.fixed_costs) - 1} limits, the agent {n_constraints}")
        if self.surprise == ROWS:
            table = given.table(given.randomness.initial())
            self._rows = LearnedMass(WORTHS, support=given.expected_transition(table), surprise=UNFORESEEN)
            self._rows = self._rows.made_for(n_states, n_actions, n_constraints)

    def __deepcopy__(self, memo: object) -> "Structured":
        return Structured(self._structure, self.vocabulary, self.surprise)

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
    def _patterns(self) -> OutcomeSets:
        """What a transition alone reveals, by pattern."""
        patterns = self._structure.patterns
        return OutcomeSets(self._structure.randomness, patterns.starts, patterns.cells)

    def cells(self, pair: int, next_state: int, noise: Any) -> tuple[int, ...]:
        """Return the outcomes of the noise, as cells, that explain a transition and agree with what was seen of it."""
        assert self.vocabulary is not None
        structure = self._structure
        context, W = int(structure.contexts[pair]), structure.randomness.n_outcomes
        agree = np.arange(W) if noise is None else self.vocabulary.agreeing(noise)
        fits = structure.randomness.possible()[context, agree] & (structure.successors[pair, agree] == next_state)
        return tuple((context * W + agree[fits]).tolist())

    def costs_of(self, pair: int, cells: tuple[int, ...]) -> Floats:
        """Return the costs (m+1,) of a transition, expected under the parameters last drawn if several outcomes fit."""
        structure = self._structure
        table = structure.table(self.parameters)
        costs = structure.fixed_costs[:, pair].copy()
        W = table.shape[1]
        outcomes = np.array(cells, dtype=np.int64) % W if cells else np.arange(W)
        shares = table[structure.contexts[pair], outcomes]
        shares = shares / shares.sum() if shares.sum() > 0.0 else np.full(outcomes.size, 1.0 / outcomes.size)
        for i in range(len(costs)):
            paid = structure.paid(i, slice(pair, pair + 1))
            if paid is not None:
                costs[i] += float(shares @ paid[0, outcomes])
        return costs

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

    def _sets(self, counts: Counts) -> list[tuple[OutcomeSets, Ints]]:
        """Return the sets of outcomes that transitions reveal, alone or with the noise seen, and how often each did."""
        observed = self.observed(counts)
        own: dict[tuple[int, ...], int] = {}
        for (number, *cells), n in counts.noise.times.items():
            place = int(np.searchsorted(self._numbers, number))
            if place < self._numbers.size and self._numbers[place] == number:
                observed[self._structure.patterns.of_entry[place]] -= n
                self.impossible += 0 if cells else n
            if cells:
                own[tuple(cells)] = own.get(tuple(cells), 0) + n
        found = [(self._patterns, observed)]
        if own:
            found.append((OutcomeSets.of(self._structure.randomness, own), np.array(list(own.values()))))
        return found

    def check(self, counts: Counts) -> None:
        """Test the structure without drawing parameters; ``doubts`` says what is wrong."""
        self.observed(counts)
        self._look(counts)

    def _look(self, counts: Counts) -> None:
        """Test the structure, if there are enough new transitions since the last test."""
        if self.impossible and IMPOSSIBLE not in self.doubts:
            self.doubts[IMPOSSIBLE] = f"a transition was observed that is impossible{self._example(counts)}"
        rounds = int(counts.visits.sum())
        if rounds >= self._next_check:
            self._next_check = int(UNTIL_NEXT * rounds)
            self.doubts = self._check.doubts(counts, self.parameters) | self.doubts

    def _example(self, counts: Counts) -> str:
        """Describe one transition that no outcome explains."""
        tally = counts.tally.numbers
        known = np.isin(tally, self._numbers)
        if known.all() or self.vocabulary is None:
            return " by the rules of the system"
        pair, to = divmod(int(tally[~known][0]), self._structure.n_states)
        state, action = divmod(pair, self._structure.n_actions)
        words = self.vocabulary
        here, there = (shown_values(words.states.label(int(words.reachable[s]))) for s in (state, to))
        return f" by the rules of the system: from {here} by {shown_values(words.actions.label(action))} to {there}"

    def sample(self, counts: Counts, rng: np.random.Generator) -> Transition:
        """Draw the parameters, and return the transitions that follow from them."""
        sets = self._sets(counts)
        self._look(counts)
        if self._structure.randomness.priors:
            self._draw(sets, rng)
        self._costs = self._structure.costs(self.parameters)
        if self._rows is None or not self.doubts:
            return self._structure.transition(self._structure.table(self.parameters))
        visits = counts.visits.astype(np.float64)
        self._costs = ((self._costs.reshape(counts.cost_sums.shape) + counts.cost_sums) / (1.0 + visits)).reshape(
            self._costs.shape
        )
        return self._rows.sample(counts, rng)

    def _draw(self, sets: list[tuple[OutcomeSets, Ints]], rng: np.random.Generator) -> None:
        """Draw parameters given outcomes, and, if there is doubt about these, outcomes given parameters, in turn."""
        randomness = self._structure.randomness
        numbers: Floats = np.zeros((len(randomness.sizes), randomness.n_contexts, randomness.n_outcomes))
        doubtful = []
        for group, observed in sets:
            settled, open_ = group.split(observed)
            numbers += group.settled(settled, observed[settled])
            if open_.size:
                doubtful.append((group, open_, observed[open_]))
        for _ in range(1 if randomness.is_conjugate and not doubtful else SWEEPS):  # one draw may be exact
            outcomes = numbers
            if doubtful:
                table = self._structure.table(self.parameters)
                drawn = [group.drawn(which, times, table, rng) for group, which, times in doubtful]
                outcomes = sum(drawn, start=numbers)
            self.parameters = randomness.draw(outcomes, self.parameters, rng)

    def costs(self) -> Floats | None:
        """Return the expected costs under the parameters last drawn; once doubted, as one observation among others."""
        return self._costs

    @property
    def determines_costs(self) -> bool:
        """True: costs are functions of the noise."""
        return True

    def mean(self, counts: Counts) -> Floats:
        """Return the transitions (S*A, S) under the parameters last drawn."""
        return self._structure.transition(self._structure.table(self.parameters)).toarray()

    def state(self) -> dict[str, Any]:
        """Return the parameters last drawn."""
        return {
            "parameters": dict(self.parameters),
            "costs": self._costs,
            "doubts": dict(self.doubts),
            "next_check": self._next_check,
            "rows": None if self._rows is None else self._rows.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        for name, value in self.parameters.items():
            self.parameters[name] = saved_floats(state["parameters"][name], value.shape, name)
        shape = (len(self._structure.fixed_costs), self._structure.n_states, self._structure.n_actions)
        self._costs = None if state["costs"] is None else saved_floats(state["costs"], shape, "costs")
        self.doubts = {str(name): str(doubt) for name, doubt in state["doubts"].items()}
        self._next_check = int(state["next_check"])
        if self._rows is not None:
            self._rows.restore(state["rows"])

    def __repr__(self) -> str:
        priors = self._structure.randomness.priors
        return f"Structured({', '.join(f'{name} ~ {prior}' for name, prior in priors.items()) or 'all known'})"
