"""Adapter that turns an object with methods ``begin`` and ``end`` into an agent."""

from collections.abc import Sequence
from typing import Any

from psconrl.base.saved_fields import read_fields
from psconrl.errors import AgentError
from psconrl.learning.posterior.counts import Record
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import Episode, Learner, is_learner
from psconrl.learning.runtime.player import Player


class Adapted(Player):
    """Agent that plays a user's own object, ``learner``. Its episodes are checked before they are played."""

    name = "adapted"

    def __init__(
        self,
        learner: Learner,
        n_states: int,
        n_actions: int,
        thresholds: Thresholds,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        if not is_learner(learner):
            raise AgentError(f"an agent has begin(state) and end(record); got {type(learner).__name__}")
        super().__init__(n_states, n_actions, thresholds, seed)
        self.learner: Any = learner  # which may also have state, restore and set_thresholds
        self.recipe = name_of(learner)

    def begin(self, state: int) -> Episode:
        """Return the episode that the object plans."""
        planned: Episode = self.learner.begin(state)
        return planned

    def end(self, record: Record) -> None:
        """Learn from an episode. The object gets a copy of the record, which it may keep."""
        super().end(record)
        self.learner.end(record.copy())

    def set_thresholds(self, thresholds: Thresholds) -> None:
        """Change the thresholds, if the object has a ``set_thresholds`` too."""
        if not callable(getattr(self.learner, "set_thresholds", None)):
            raise AgentError(f"{self.recipe} has no set_thresholds(thresholds), so its limits cannot be changed")
        limits = self._checked_limits(thresholds)
        self._stop_planning()  # the object may be planning in the background
        self.learner.set_thresholds(limits)
        super().set_thresholds(thresholds)

    def config(self) -> dict[str, Any]:
        """Return the sizes. The object itself is provided by the caller who reads the file."""
        return {"n_states": self.n_states, "n_actions": self.n_actions, "thresholds": self.thresholds}

    def check_memory(self) -> None:
        """Raise an error unless the object has ``state()`` and ``restore(state)``."""
        if not all(callable(getattr(self.learner, method, None)) for method in ("state", "restore")):
            raise AgentError(f"{self.recipe} cannot be saved: it has no state() and restore(state)")

    def state(self) -> dict[str, Any]:
        """Return everything that has changed, including the state of the object."""
        self.check_memory()
        return super().state() | {"learner": self.learner.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        super().restore(state)
        read_fields(state, {"learner": self.learner.restore})


def adapt(
    learner: Any, n_states: int, n_actions: int, thresholds: Thresholds, seed: int | Sequence[int] | None = None
) -> Player:
    """Return an agent with ``act``, ``observe``, ``watch`` and ``save`` for an object with ``begin`` and ``end``.

    ``seed`` seeds the choice of actions.

    >>> from psconrl import Episode
    >>> class Uniform:
    ...     def begin(self, state):
    ...         return Episode([[0.5, 0.5]] * 3, max_steps=10)
    ...     def end(self, record):
    ...         print(record.steps, "rounds")
    >>> agent = adapt(Uniform(), n_states=3, n_actions=2, thresholds=[], seed=0)
    >>> for _ in range(10):
    ...     agent.observe(agent.act(0), next_state=0, costs=[1.0])
    10 rounds
    """
    return learner if isinstance(learner, Player) else Adapted(learner, n_states, n_actions, thresholds, seed)


def name_of(learner: object) -> str:
    """Return the name of an object: its own ``name``, or that of its class."""
    own = getattr(learner, "name", None)
    return own if isinstance(own, str) and own else type(learner).__name__
