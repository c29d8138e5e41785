"""The dynamics of a system: what follows each action, whatever its objective and limits.

Reachable states, transitions, means and tables of outcomes are computed on first use, once for all systems that differ
in their objective and limits only.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from psconrl.base.arrays import Places
from psconrl.systems.cost_tables import CostTables
from psconrl.systems.expectations import Expectations
from psconrl.systems.functions import Rule
from psconrl.systems.outcome_successors import all_successors
from psconrl.systems.quantities import LinearLimit
from psconrl.systems.reachable_states import Reachable, reach_states
from psconrl.systems.reports import Reports
from psconrl.systems.sources import RandomSource
from psconrl.systems.variables import Space


class Dynamics:
    """States, actions, what is random, and the rules of costs; ``first``: the number of the first state."""

    def __init__(
        self,
        states: Space,
        actions: Space,
        source: RandomSource,
        available: Rule | None,
        costs: Mapping[str, Rule],
        first: int,
    ) -> None:
        self.states, self.actions, self.source, self.costs = states, actions, source, costs
        self._available, self._first = available, first
        self.report = Reports()

    def with_source(self, source: RandomSource) -> "Dynamics":
        """Return the dynamics with other noise or events."""
        return Dynamics(self.states, self.actions, source, self._available, self.costs, self._first)

    @cached_property
    def reachable(self) -> Reachable:
        """The states that can be reached."""
        return reach_states(self.source, self._available, self._first, self.report)

    @property
    def initial(self) -> int:
        """The place of the first state among those that can be reached."""
        return int(np.searchsorted(self.reachable.states, self._first))

    @cached_property
    def state_names(self) -> list[str]:
        """Names of the reachable states, by default such as "shelf=4, coming=0"."""
        return self.states.labels(self.reachable.states)

    @cached_property
    def action_names(self) -> list[str]:
        """Names of the actions, by default such as "order=2"."""
        return self.actions.labels(np.arange(self.actions.size))

    @cached_property
    def expectations(self) -> Expectations:
        """Transitions, means and distributions at the prior means of the noise."""
        return Expectations(self.source, self.reachable, self.costs, self.report)

    @cached_property
    def successors(self) -> Places:
        """The next state of every joint outcome in every pair (S, A, W)."""
        return all_successors(self.source, self.reachable, self.report)

    def tables(self, shown: Sequence[LinearLimit], maximises: bool) -> CostTables:
        """Return tables of costs of every joint outcome; ``maximises``: the first is a reward."""
        own = self.source, self.reachable, self.successors, self.costs
        return CostTables.of(*own, shown, maximises, self.report).taken(self.reachable.taken)
