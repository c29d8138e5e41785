r"""A belief about a system whose structure is known: only the parameters of its noise are learned.

.. math:: P_\theta(s' \mid s,a) = \sum_{w:\, f(s,a,w) = s'} p_\theta(w \mid s,a)

A transition that only one outcome of the noise explains reveals that outcome. Where several do, as when demand exceeds
what is on the shelf, the outcomes are drawn given the parameters, and the parameters given the outcomes, in turn: data
augmentation (Tanner and Wong 1987), which samples the exact posterior in the limit of many sweeps. The parameters are
the state of this chain, which continues from episode to episode. A noise of which a transition reveals nothing, such as
a delivery when none is due, is not drawn for it: it would only slow the chain down. Where the noise itself was seen, or
the costs incurred, only outcomes that agree with what was seen explain a transition (``explanations``).
"""

import warnings
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.base.caps import LARGEST_COST
from psconrl.base.escaping import quoted
from psconrl.base.saved_fields import Kind, in_field, maybe, read_fields, reals, table_of, text
from psconrl.errors import AdviceWarning, AgentError, unknown_name
from psconrl.learning.posterior.checks.structure_check import StructureCheck
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.posterior.denominators import Denominators
from psconrl.learning.posterior.estimates import Estimates, estimates, quick_means
from psconrl.learning.posterior.explanations import Costs, Explained, Explanations
from psconrl.learning.posterior.gibbs import SWEEPS, Gibbs, Sets, Sojourns
from psconrl.learning.posterior.hidden_noise import hidden_parameters
from psconrl.learning.posterior.learned_mass import WORTHS, LearnedMass
from psconrl.learning.posterior.outcome_sets import OutcomeSets
from psconrl.learning.posterior.transition_beliefs import Belief
from psconrl.model.transition import Transition
from psconrl.systems.functions import shown_values
from psconrl.systems.randomness import Parameters
from psconrl.systems.ratios import RatioLimit, Ratios
from psconrl.systems.structure import Structure
from psconrl.systems.system import System
from psconrl.systems.vocabulary import Vocabulary

WARN, ROWS = "warn", "rows"
IMPOSSIBLE = "impossible transitions"  # a key of the doubts
UNFORESEEN = 1e-4  # share of the guessed rows for other states; without it, their worth would not fall by surprises


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
        ratios: Ratios | dict[str, Any] | None = None,
    ) -> None:
        if surprise not in (WARN, ROWS):
            raise AgentError(unknown_name("surprise", surprise, (WARN, ROWS)))
        if not isinstance(structure, Structure | dict):
            raise AgentError(
                f"structure must be that of a System, as in Structured(shop.structure); got {quoted(structure)}"
            )
        with in_field("structure"):
            self._structure = structure if isinstance(structure, Structure) else Structure.from_dict(structure)
        self.structure = self._structure.to_dict()
        self.vocabulary = words if words is None or isinstance(words, Vocabulary) else self._read_words(words)
        self.words = None if self.vocabulary is None else self.vocabulary.to_dict()
        self.surprise = surprise
        self._ratios = ratios if ratios is None or isinstance(ratios, Ratios) else self._read_ratios(ratios)
        self.ratios = None if self._ratios is None else self._ratios.to_dict()
        self.parameters: Parameters = self._structure.randomness.initial()  # last drawn
        self._costs: Floats | None = None
        self.impossible = 0  # observed transitions that the structure calls impossible
        self.doubts: dict[str, str] = {}  # what is wrong with the structure, by noise
        self._wrong_costs = ""  # an example of costs that no outcome has
        self._check = StructureCheck(self._structure, self.vocabulary)
        self._seen: Counts | None = None  # what the last sample was drawn from
        self._rows: LearnedMass | None = None  # the belief that is used once the structure is doubted

    def _read_words(self, saved: Any) -> Vocabulary:
        """Return words from a file after a check."""
        with in_field("words"):
            words = Vocabulary.from_dict(saved)
            words.need_fits(self._structure)
            return words

    def _read_ratios(self, saved: Any) -> Ratios:
        """Return limits on ratios from a file after a check."""
        with in_field("ratios"):
            return Ratios.from_dict(saved, self._structure)

    @classmethod
    def of(cls, system: System, surprise: str = WARN) -> "Structured":
        """Return the belief about a system, in the words of its owner."""
        return cls(system.structure, system.vocabulary(), surprise, system.ratios)

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
        return Structured(self._structure, self.vocabulary, self.surprise, self._ratios)

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

    @cached_property
    def explanations(self) -> Explanations:
        """What explains single rounds."""
        return Explanations(self._structure, self.vocabulary)

    @cached_property
    def denominators(self) -> Denominators | None:
        """What the ratios that have limits are divided by; None if there are none."""
        return None if self._ratios is None else Denominators(self._structure, self._ratios)

    @property
    def ratio_limits(self) -> tuple[RatioLimit, ...]:
        """The limits on ratios."""
        return () if self._ratios is None else self._ratios.limits

    @cached_property
    def hidden(self) -> dict[str, str]:
        """Unknown parameters that only costs reveal, or the noise itself: by name, the noise to be seen."""
        return hidden_parameters(self._structure)

    def explained(self, pair: int, next_state: int, noise: Any = None, costs: Costs = None) -> Explained:
        """Return the outcomes that explain what was seen of a round; warn of the first costs that no outcome has."""
        found = self.explanations.of(pair, next_state, noise, costs)
        if not (costs is None or found.costs_fit or self._wrong_costs) and self.explanations.costs_reveal(pair):
            self._wrong_costs = self._described(pair, costs)
            warnings.warn(
                f"costs were given that no outcome of the noise has: {self._wrong_costs}. Nothing is learned from such "
                "costs about the noise: check their expressions, or pass the noise if costs are measured with an error",
                AdviceWarning,
                stacklevel=4,
            )
        return found

    def expected_costs(self, pair: int, cells: tuple[int, ...]) -> tuple[Floats, Bools]:
        """Return the costs (m+1,) of a round and which of them are known; others are expected, as last drawn."""
        return self.explanations.expected_costs(pair, cells, self.parameters)

    def sojourn_costs(self, pair: int, cells: tuple[int, ...], ticks: float, sees_all: bool) -> tuple[Floats, Bools]:
        """Return the costs (m+1,) of a sojourn of some ticks of the clock that one of the outcomes ended.

        Events that change nothing may have happened meanwhile, unless ``sees_all``. Costs that depend on what is not
        known are expected; the second array says which costs are known.
        """
        structure = self._structure
        values, groups = self.explanations.costs(pair)
        W, none = values.shape[1], values.shape[1] - 1
        unseen = (structure.successors[pair] == pair // structure.n_actions) & (groups[0] >= 0) & (not sees_all)
        shares = structure.table(self.parameters)[structure.contexts[pair]] * unseen
        rate = values[:, none] + np.cumsum(shares * (values - values[:, [none]]), axis=1)[:, -1]
        known = ((groups == groups[:, [none]]) | ~unseen).all(axis=1)
        if cells and none in {cell % W for cell in cells}:
            return ticks * rate, known
        end, sure = self.expected_costs(pair, cells)
        return ticks * rate + end - values[:, none], known & sure

    def _described(self, pair: int, costs: Floats | Mapping[str, float]) -> str:
        """Describe costs that no outcome has."""
        words = self.vocabulary
        if words is None:
            return f"they were {', '.join(f'{cost:g}' for cost in costs)}"
        if not isinstance(costs, Mapping):
            costs = {name: sign * cost for name, sign, cost in zip(words.costs, words.signs, costs, strict=True)}
        state, action = divmod(pair, self._structure.n_actions)
        here = shown_values(words.states.label(int(words.reachable[state])) | words.actions.label(action))
        return f"at {here} they were {', '.join(f'{name}={cost:g}' for name, cost in costs.items())}"

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

    def _gibbs(self, counts: Counts) -> Gibbs:
        """Return the chain for the sets of outcomes that rounds revealed."""
        observed = self.observed(counts)
        own: dict[tuple[int, ...], int] = {}
        for (number, *cells), n in counts.noise.items():
            place = int(np.searchsorted(self._numbers, number))
            if place < self._numbers.size and self._numbers[place] == number:
                observed[self._structure.patterns.of_entry[place]] -= n
                self.impossible += 0 if cells else n
            if cells:
                own[tuple(cells)] = own.get(tuple(cells), 0) + n
        for (number,), n in counts.noise.ticks.items():
            place = int(np.searchsorted(self._numbers, number))
            if place < self._numbers.size and self._numbers[place] == number:
                observed[self._structure.patterns.of_entry[place]] -= n
        found: Sets = [(self._patterns, observed)]
        if own:
            found.append((OutcomeSets.of(self._structure.randomness, own), np.array(list(own.values()))))
        return Gibbs(self._structure, found, Sojourns.of(self._structure, counts.noise))

    def estimates(self, counts: Counts) -> Estimates:
        """Return what is known of the unknown parameters: means, intervals and numbers of observations."""
        return estimates(self._structure.randomness, self._gibbs(counts), self.parameters)

    def quick_means(self, counts: Counts) -> dict[str, float]:
        """Return approximate posterior means of the unknown parameters, for a log."""
        return quick_means(self._structure.randomness, self._gibbs(counts), self.parameters)

    def check(self, counts: Counts) -> None:
        """Test the structure without drawing parameters; ``doubts`` says what is wrong."""
        self.observed(counts)
        self._look(counts)

    def _look(self, counts: Counts) -> None:
        """Test the structure, if there are enough new transitions since the last test."""
        if self.impossible and IMPOSSIBLE not in self.doubts:
            self.doubts[IMPOSSIBLE] = f"a transition was observed that is impossible{self._example(counts)}"
        self._check.update(self.doubts, counts, self.parameters)

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
        gibbs = self._gibbs(counts)
        self._look(counts)
        if self._structure.randomness.priors:
            for _ in range(1 if gibbs.is_exact else SWEEPS):
                self.parameters = gibbs.sweep(self.parameters, rng)
        self._seen = counts
        self._costs = self._structure.costs(self.parameters)
        if self._rows is None or not self.doubts:
            return self._structure.transition(self._structure.table(self.parameters))
        visits = counts.visits.astype(np.float64)
        self._costs = ((self._costs.reshape(counts.cost_sums.shape) + counts.cost_sums) / (1.0 + visits)).reshape(
            self._costs.shape
        )
        return self._rows.sample(counts, rng)

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
            "wrong_costs": self._wrong_costs,
            "check": self._check.state(),
            "rows": None if self._rows is None else self._rows.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        shape = (len(self._structure.fixed_costs), self._structure.n_states, self._structure.n_actions)
        described: dict[str, Kind] = {
            "parameters": self._structure.randomness.read_parameters,
            "costs": maybe(reals(shape, -LARGEST_COST, LARGEST_COST)),
            "doubts": table_of(text()),
            "wrong_costs": text(),
            "check": self._check.restore,
        }
        if self._rows is not None:
            described["rows"] = self._rows.restore
        saved = read_fields(state, described)
        self.parameters, self._costs, self.doubts = saved["parameters"], saved["costs"], saved["doubts"]
        self._wrong_costs = saved["wrong_costs"]

    def need_within(self, counts: Counts) -> None:
        """Raise an error unless what was tested is part of the rounds that were counted; after ``restore``."""
        with in_field("check"):
            self._check.need_within(counts)

    def __repr__(self) -> str:
        if self._seen is not None and self._seen.visits.any() and self._structure.randomness.priors:
            return f"Structured({', '.join(f'{name}: {known}' for name, known in self.estimates(self._seen).items())})"
        priors = self._structure.randomness.priors
        return f"Structured({', '.join(f'{name} ~ {prior}' for name, prior in priors.items()) or 'all known'})"
