"""Agents made for a system: in live use they take and return the values of its variables in place of numbers."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from psconrl.errors import AgentError
from psconrl.learning.agent import Agent
from psconrl.learning.posterior.structured import Structured
from psconrl.learning.posterior.transition_beliefs import Belief
from psconrl.learning.runtime.constraint_names import ConstraintNames
from psconrl.systems.system import System
from psconrl.systems.vocabulary import Vocabulary


class SystemAgent(Agent):
    """An agent that may be made for a system, by ``of``; its belief is then ``Structured``."""

    belief: Belief | None
    takes_noise: ClassVar[bool] = True  # whether it can be given what was seen of the noise

    @classmethod
    def _made_for(cls, system: System, options: dict[str, Any]) -> Self:
        """Return an agent for a system."""
        structure = system.structure
        known: dict[str, Any] = {"thresholds": system.thresholds, "belief": Structured.of(system)}
        make: Any = cls
        agent: Self = make(structure.n_states, structure.n_actions, **(known | options))
        names = system.shown_names[1:]
        at_least = frozenset(name for name, limit in zip(names, system.limits, strict=True) if limit.at_least)
        agent._named_thresholds.names = ConstraintNames.of(names, at_least)
        return agent

    @property
    def _words(self) -> Vocabulary | None:
        """The words of the system's owner, if the agent was made for a system."""
        return self.belief.vocabulary if isinstance(self.belief, Structured) else None

    def act(self, state: Any) -> Any:
        """Return the action to take in a state. Report its outcome with ``observe`` before the next call.

        An agent made by ``of`` takes a state as a table of values, and then returns one; other agents use numbers.
        """
        words = self._words
        if words is None:
            return super().act(state)
        number = words.state(state)
        action = words.action_taken(number, super().act(number))
        return words.actions.label(action) if isinstance(state, Mapping) else action

    def observe(self, action: Any, next_state: Any, costs: Any = None, noise: Mapping[str, Any] | None = None) -> None:
        """Report the outcome of the last action: the next state and all m+1 costs, the objective first.

        An agent made by ``of`` also takes tables of values, and costs by name, and calculates costs that are not given.
        ``noise``: what was seen of the noise, such as ``{"demand": 3}``; the agent then knows more than the next state
        reveals.
        """
        words, awaiting = self._words, None if self._play is None else self._play.asked_in
        if words is None or awaiting is None:
            if costs is None or noise is not None:
                raise AgentError("observe needs costs; only an agent made by of(system) takes noise, too")
            super().observe(action, next_state, costs)
            return
        assert isinstance(self.belief, Structured)
        if noise is not None and not self.takes_noise:
            raise AgentError(
                f"noise: {self.name!r} learns from transitions only; whether noise is seen may depend on its value, "
                "and its proofs would not hold"
            )
        number, following = words.action(action), words.state(next_state, "next_state")
        self._check_state(following, "next_state")
        self._check_action(number)
        words.need_available(awaiting, number)
        pair = awaiting * self.n_actions + number
        cells = self.belief.cells(pair, following, noise)
        if costs is None:
            costs = self.belief.costs_of(pair, cells)
        elif isinstance(costs, Mapping):
            costs = words.planned_costs(costs)
        over = self.note(number, following, costs)
        if noise is not None:
            assert self._play is not None
            self._play.record.noise.note(pair * self.n_states + following, cells)
        if over:
            self.finish()
