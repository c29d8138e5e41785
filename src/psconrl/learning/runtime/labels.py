"""Labels in place of numbers: an agent for a system whose states and actions are labels of any kind."""

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.escaping import quoted
from psconrl.base.saved_fields import brief, flag, in_field, listed, need_that, read_fields
from psconrl.errors import AgentError, ConfigError, unknown_name
from psconrl.learning.agent import Agent
from psconrl.learning.argument_checks import as_count, is_index
from psconrl.learning.registry import load_agent
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import Learner, is_learner
from psconrl.learning.runtime.events import EpisodeEvent, Watcher
from psconrl.learning.runtime.persistence import in_file
from psconrl.learning.runtime.player import Player


class Labels:
    """A table of labels of any hashable kind, numbered from 0 in the order given.

    ``labels[label]`` is the number of a label, ``labels.label(number)`` the label of a number.

    >>> labels = Labels(["idle", "busy", ("broken", 2)])
    >>> labels["busy"], labels.label(2), len(labels), "idle" in labels
    (1, ('broken', 2), 3, True)
    """

    def __init__(self, labels: Iterable[Hashable]) -> None:
        self._labels: list[Hashable] = []
        self._numbers: dict[Hashable, int] = {}
        if isinstance(labels, str) or not isinstance(labels, Iterable):
            raise ConfigError(f"labels must be a list of labels; got {quoted(labels)}")
        for label in labels:
            if _checked(label) in self._numbers:
                raise ConfigError(
                    f"labels must be distinct; {quoted(label)} repeats {quoted(self._labels[self._numbers[label]])}"
                )
            self._add(label)
        if not self._labels and self.room == 0:
            raise ConfigError("labels must not be empty")

    @staticmethod
    def growing(room: int, labels: Iterable[Hashable] = ()) -> "Labels":
        """Return labels that are numbered as they are met, at most ``room`` of them.

        >>> labels = Labels.growing(room=2)
        >>> labels["busy"], labels["idle"], labels["busy"], list(labels)
        (0, 1, 0, ['busy', 'idle'])
        """
        return _Growing(as_count(room, "room", ConfigError), labels)

    @property
    def room(self) -> int:
        """Largest number of labels."""
        return len(self._labels)

    def _add(self, label: Hashable) -> None:
        self._numbers[label] = len(self._labels)
        self._labels.append(label)

    def __getitem__(self, label: Hashable) -> int:
        try:
            return self._numbers[label]
        except (KeyError, TypeError):
            raise ConfigError(unknown_name("label", label, self._labels)) from None

    def label(self, number: int) -> Any:
        """Return the label with a number."""
        if not is_index(number, len(self)):
            raise ConfigError(f"labels are numbered from 0 to {len(self) - 1}; got {quoted(number)}")
        return self._labels[number]

    def __len__(self) -> int:
        return len(self._labels)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._labels)

    def __contains__(self, label: object) -> bool:
        try:
            return label in self._numbers
        except TypeError:
            return False

    def __repr__(self) -> str:
        shown = ", ".join(repr(label) for label in self._labels[:4])
        return f"Labels({len(self)} labels: {shown}{', …' if len(self) > 4 else ''})"


class _Growing(Labels):
    """Labels that are numbered as they are met."""

    def __init__(self, room: int, labels: Iterable[Hashable]) -> None:
        self._room = room
        super().__init__(labels)
        if len(self) > room:
            raise ConfigError(f"there is room for {room} labels; got {len(self)}")

    @property
    def room(self) -> int:
        """Largest number of labels."""
        return self._room

    def __getitem__(self, label: Hashable) -> int:
        if _checked(label) not in self._numbers:
            if len(self) >= self.room:
                raise AgentError(f"there is room for {self.room} labels, and none is left for {quoted(label)}")
            self._add(label)
        return self._numbers[label]

    def forget(self, met: int) -> None:
        """Forget all labels but the first ``met``."""
        while len(self) > met:
            del self._numbers[self._labels.pop()]


class LabelledAgent:
    """An agent whose states and actions have labels instead of numbers.

    ``agent``: the wrapped agent, which uses numbers only. ``states``: the labels of the states, or None to number
    states as they are met, up to the number of states of the agent. ``actions``: the labels of the actions.

    >>> from psconrl.agents import PSConRL
    >>> thermostat = LabelledAgent(PSConRL(2, 2, [0.5], seed=0), states=["cold", "warm"], actions=["off", "on"])
    >>> thermostat.act("cold") in ("off", "on")
    True
    """

    def __init__(
        self, agent: Player, states: Labels | Iterable[Hashable] | None, actions: Labels | Iterable[Hashable]
    ) -> None:
        if not isinstance(agent, Player):
            hint = "; psconrl.agents.adapt makes one of it" if is_learner(agent) else ""
            raise AgentError(f"LabelledAgent needs an agent, such as PSConRL; got {type(agent).__name__}{hint}")
        self.agent = agent
        if states is None:
            known = agent.knows_states()
            if known:
                raise AgentError(
                    f"states=None numbers states as they are met, but the agent has {known} by the numbers of the "
                    "states; give their labels, in that order"
                )
            states = Labels.growing(agent.n_states)
        self.states = states if isinstance(states, Labels) else Labels(states)
        self.actions = actions if isinstance(actions, Labels) else Labels(actions)
        got, needed = (self.states.room, len(self.actions)), (agent.n_states, agent.n_actions)
        if got != needed:
            raise AgentError(
                f"there are labels for {got[0]} states and {got[1]} actions, the agent was made for {needed[0]} and "
                f"{needed[1]}"
            )

    def __repr__(self) -> str:
        return f"LabelledAgent({self.agent!r})" if hasattr(self, "agent") else "<incomplete LabelledAgent>"

    def act(self, state: Hashable) -> Any:
        """Return the action to take in a state. Report its outcome with ``observe`` before the next call."""
        with self._unless_it_fails():
            return self.actions.label(self.agent.act(self.states[state]))

    def observe(self, action: Hashable, next_state: Hashable, costs: ArrayLike) -> None:
        """Report the outcome of the last action: the next state and all m+1 costs, the objective first."""
        with self._unless_it_fails():
            over = self.agent.note(self.actions[action], self.states[next_state], costs)
        if over:
            self.agent.finish()

    @contextmanager
    def _unless_it_fails(self) -> Iterator[None]:
        """Forget labels that are first met in a call that raises an error."""
        met = len(self.states)
        try:
            yield
        except Exception:
            if isinstance(self.states, _Growing):
                self.states.forget(met)
            raise

    def set_thresholds(self, thresholds: Thresholds) -> None:
        """Change the thresholds while running; see ``Agent.set_thresholds``."""
        self.agent.set_thresholds(thresholds)

    def plan_in_background(self, on: bool = True) -> None:
        """Turn planning in a thread on or off, so that ``act`` answers at once; see ``Agent.plan_in_background``."""
        self.agent.plan_in_background(on)

    def watch(self, callback: Watcher) -> None:
        """Call back after every episode; see ``Agent.watch``."""
        self.agent.watch(callback)

    def unfinished_event(self) -> EpisodeEvent | None:
        """Return the event of the episode in progress; see ``Agent.unfinished_event``."""
        return self.agent.unfinished_event()

    def save(self, path: Any, extra: dict[str, Any] | None = None) -> None:
        """Write agent and labels to one file. Labels must be text, numbers, True, False, None, or tuples of these."""
        labels: dict[str, Any] = {"states": _as_json(self.states), "actions": _as_json(self.actions)}
        if isinstance(self.states, _Growing):
            labels["growing"] = True
        self.agent.save(path, (extra or {}) | {"labels": labels})

    @property
    def extra(self) -> dict[str, Any]:
        """Additional data in the file from which the agent was loaded."""
        return self.agent.extra

    @classmethod
    def load(cls, path: Any, agent: type[Agent] | Learner | None = None) -> "LabelledAgent":
        """Load a labelled agent, with additional saved data in its ``extra``; ``agent``: as in ``load_agent``."""
        loaded = load_agent(path, agent)
        labels = loaded.extra.pop("labels", None)
        if labels is None:
            raise AgentError(f"{path}: holds an agent without labels; load it with psconrl.load_agent")
        with in_file(path), in_field("extra"), in_field("labels"):
            described = {"states": listed(_from_json), "actions": listed(_from_json), "growing": flag}
            saved = read_fields(labels, described, may_be_missing=["growing"])
            states = saved["states"]
            growing = Labels.growing(loaded.n_states, states) if saved.get("growing") else states
            return cls(loaded, growing, saved["actions"])


def _checked(label: Hashable) -> Hashable:
    try:
        hash(label)
    except TypeError:
        raise ConfigError(f"labels must be hashable, such as text, numbers and tuples; got {quoted(label)}") from None
    if _has_nan(label):  # nan differs from itself, so each one would be a new label
        raise ConfigError(f"a label must be equal to itself; got {quoted(label)}")
    return label


def _has_nan(label: Any) -> bool:
    return any(map(_has_nan, label)) if isinstance(label, tuple) else bool(label != label)


def _as_json(labels: Iterable[Any]) -> list[Any]:
    """Return labels as JSON data. Tuples become lists; this is unambiguous, since a list is not a valid label."""
    return [_part_as_json(label) for label in labels]


def _part_as_json(label: Any) -> Any:
    if isinstance(label, tuple):
        return [_part_as_json(part) for part in label]
    plain = label.item() if isinstance(label, np.generic) else label
    if plain is None or isinstance(plain, str | int | float):
        return plain
    raise AgentError(
        f"a label can be saved if it is text, a number, True, False, None or a tuple of these; got {quoted(label)}. "
        "Save the agent itself (agent.agent.save) and create the labels again"
    )


def _from_json(label: Any) -> Any:
    need_that(label is None or isinstance(label, str | int | float | list), f"must be a label; is {brief(label)}")
    return tuple(_from_json(part) for part in label) if isinstance(label, list) else label
