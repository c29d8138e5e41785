"""What is asked of a system: its objective and its limits, as stated and as costs of a model."""

from abc import abstractmethod
from functools import cached_property
from typing import Any, Self

from psconrl.base.arrays import Floats
from psconrl.model.cmdp import CMDP
from psconrl.model.transition import Transition
from psconrl.model.units import Units
from psconrl.systems.expectations import Expectations
from psconrl.systems.limits import Requirement, Statement
from psconrl.systems.numbered import Numbered
from psconrl.systems.quantities import LinearLimit
from psconrl.systems.sources import NEXT, RandomSource

SHARED = ("_explored", "expectations", "state_names", "action_names")  # properties that no limit changes


class Stated(Numbered):
    """Base class of systems: an objective and limits, which can be replaced."""

    statement: Statement
    source: RandomSource
    cost_names: tuple[str, ...]  # of the costs of the system, of which objective and limits may use some
    units: Units

    @property
    @abstractmethod
    def expectations(self) -> Expectations:
        """Transitions and means, which do not depend on objective and limits."""

    @abstractmethod
    def cmdp(self, transition: Transition, costs: Floats) -> CMDP:
        """Return a model with some transitions and costs (m+1, S, A), and the names and thresholds of this system."""

    @abstractmethod
    def expected_model(self) -> CMDP:
        """Return the model at the prior means of unknown parameters."""

    @abstractmethod
    def _changed(self, kept: tuple[str, ...], **changes: Any) -> Self:
        """Return a copy with some attributes replaced, and only the named ones of the computed properties."""

    def with_limits(self, limits: Any) -> Self:
        """Return the system with other limits.

        ``limits``: a list of texts, each of which replaces the limit on the same quantity or adds one, or a table by
        the name of a limit, with a text, another number, or None to leave the limit out.

        >>> from psconrl.systems.system import System
        >>> queue = System(state={"waiting": 3}, action={"fast": 2}, step={}, costs={"power": "fast"},
        ...     minimise="power", limits=["waiting <= 1"])
        >>> [str(limit) for limit in queue.with_limits({"waiting": 2}).with_limits(["P(fast) <= 10%"]).requirements]
        ['waiting <= 2', 'P(fast) <= 0.1']
        """
        variables = (*self.states.names, *(NEXT + name for name in self.states.names), *self.actions.names)
        known = frozenset((*variables, *self.source.names, *self.cost_names))
        return self.with_statement(self.statement.with_requirements(limits, known))

    def with_statement(self, statement: Statement) -> Self:
        """Return the system with another objective and other limits."""
        return self._changed((*SHARED, "_successors"), statement=statement)

    @property
    def maximises(self) -> bool:
        """Whether the objective is maximised."""
        return self.statement.maximises

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """The limits as stated."""
        return self.statement.requirements

    @cached_property
    def objective(self) -> LinearLimit:
        """The objective as a cost; an error if it is not linear."""
        return self.statement.objective()

    @cached_property
    def limits(self) -> list[LinearLimit]:
        """The limits on averages of costs, to which those that were stated are equivalent."""
        return self.statement.limits()
