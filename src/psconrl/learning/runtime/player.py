"""Playing episodes step by step: ``act`` and ``observe``, built on ``begin`` and ``end``, for all agents."""

import copy
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats
from psconrl.base.caps import MOST_ROUNDS, need
from psconrl.base.escaping import quoted
from psconrl.base.saved_fields import integer, maybe, need_that, read_fields
from psconrl.base.sizes import FEWEST_FOR_ADVICE
from psconrl.errors import AdviceWarning, AgentError
from psconrl.learning.argument_checks import as_costs, as_count, is_index
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.runtime.background import Background, Executor, Memory
from psconrl.learning.runtime.constraint_names import ConstraintNames, NamedThresholds, Thresholds
from psconrl.learning.runtime.contract import NO_CAP, Episode, LongerPlan, checked_episode, without_plan
from psconrl.learning.runtime.description import described
from psconrl.learning.runtime.event_making import event_of, event_so_far
from psconrl.learning.runtime.events import (
    EXPLORING,
    EpisodeEvent,
    Watcher,
    Watchers,
)
from psconrl.learning.runtime.notices import Notices
from psconrl.learning.runtime.persistence import Saved, write_saved
from psconrl.learning.runtime.random_numbers import UniformStream, seed_sequences
from psconrl.learning.runtime.running_episode import Play

# Memory for every pair: policies, visits and caps.
PAIR_BYTES = 200
COST_BYTES = 16  # for every cost of a pair: its sum so far, and that of the episode


class Player(Notices, ABC):
    """Base class of agents: plays episodes, counts their outcomes, and calls the watchers."""

    name: ClassVar[str]
    _trusted: bool = False  # True if its episodes need no check before compiled loops play them

    def __init__(self, n_states: int, n_actions: int, thresholds: Thresholds, seed: int | Sequence[int] | None) -> None:
        self.n_states = as_count(n_states, "n_states")
        self.n_actions = as_count(n_actions, "n_actions")
        self._need(self.n_states * self.n_actions * PAIR_BYTES)
        self._named_thresholds = NamedThresholds(thresholds)
        self._need(self.n_states * self.n_actions * self.n_costs * COST_BYTES, f" and {self.n_costs:,} costs")
        self.counts = Counts(self.n_states, self.n_actions, self.n_costs)
        self.rounds = 0
        self.episodes = 0
        self.explored = 0  # rounds in episodes that explored
        self.extra: dict[str, Any] = {}  # additional data in the file from which it was loaded
        self.recipe: str = self.name  # the name under which it was created, as listed by `psconrl agents`
        self.action_uniforms = UniformStream(np.random.Generator(np.random.PCG64(seed_sequences(seed)[1])))
        self._play: Play | None = None
        self._spare: Record | None = None
        self._background = Background()
        self._watchers = Watchers()
        self._advise_at = 1  # rounds, at the earliest, after which ``observe`` gives advice

    def _need(self, size: float, why: str = "") -> None:
        """Raise an error if the agent would take more memory than allowed."""
        need(size, f"an agent of {self.n_states:,} states and {self.n_actions:,} actions{why}", AgentError)

    @property
    def longer_plan(self) -> LongerPlan | None:
        """The plan that the present episode is part of, if a plan spans several episodes; see ``contract``."""
        return None

    def __repr__(self) -> str:
        return described(self)

    @abstractmethod
    def begin(self, state: int) -> Episode:
        """Plan the next episode, to be played from a state."""

    def end(self, record: Record) -> None:
        """Learn from an episode that was played, wholly or in part."""
        self.counts.add(record)
        self.rounds += record.steps

    @property
    def n_costs(self) -> int:
        """Number of costs, the objective included."""
        return int(self.thresholds.size + 1)

    @property
    def thresholds(self) -> Floats:
        """The thresholds (m,). Only ``set_thresholds`` changes them, since the episode planned for them must end."""
        return self._named_thresholds.values

    @thresholds.setter
    def thresholds(self, value: object) -> None:
        raise AgentError("thresholds are changed by agent.set_thresholds(...), which ends the episode planned for them")

    @property
    def constraint_names(self) -> ConstraintNames | None:
        """Names of the constraints, if the agent was given thresholds by name, or a model."""
        return self._named_thresholds.names

    def set_thresholds(self, thresholds: Thresholds) -> None:
        """Change the thresholds while running. The episode ends, and the agent uses them from the next action on.

        An agent created with thresholds by name also takes them by name here, and keeps those that are not named.

        If the outcome of an action is awaited, the episode ends with it. A plan that is being made in the background is
        for the old thresholds: once its thread has ended, it is made again, from the same random numbers.
        """
        limits = self._checked_limits(thresholds)
        self._stop_planning()
        self._named_thresholds.change(limits)
        self._limits_changed(self._play.record if self._play is not None else None)
        if self._play is not None and self._play.is_awaiting:
            self._play.end_with_next_step()
        else:
            self.finish()

    def _checked_limits(self, thresholds: Thresholds) -> Floats:
        return self._named_thresholds.checked(thresholds)

    def _limits_changed(self, playing: Record | None) -> None:
        """Hook for a subclass that keeps accounts: the episode in progress began under the old thresholds."""

    @property
    def last_episode(self) -> Episode | None:
        """The episode in progress, or the last one; None before the first."""
        return self._background.last if self._play is None else self._play.episode

    def watch(self, callback: Watcher) -> None:
        """Call ``callback(event)`` with an ``EpisodeEvent`` after every episode from now on."""
        self._watchers.add(callback)

    def unwatch(self, callback: Watcher) -> None:
        """Stop calling ``callback``."""
        self._watchers.remove(callback)

    def plan_in_background(self, on: bool = True, executor: Executor | None = None) -> None:
        """Turn planning in a thread on or off, so that ``act`` answers at once; it is off by default.

        While the agent plans, it keeps playing the last policy, as a separate episode of kind "interim". At the very
        beginning it plays the uniform policy, of kind "exploring interim". It learns from such an episode when the plan
        is ready. Results are reproducible bit for bit given the rounds in which plans are ready.

        ``finish``, ``set_thresholds`` and a simulation on a model wait for the thread. ``executor``: runs the planning,
        by default one thread per plan; see ``psconrl.learning.runtime.background``.
        """
        self._background.switch(on, executor)

    def present(self, state: int) -> Play:
        """Return the episode to play in a state. Unlike ``play``, do not wait for a plan made in the background.

        If planning failed, its error is raised here; at the next call the agent plans again.
        """
        current = self._play
        if current is None:
            self._background.raise_failure()
            if self._background.can_play_on(self.rounds):
                self._check_state(state)
                current = self._set_out(self._interim(), interim=True)
        if current is None or not current.interim:
            return self.play(state)
        self._background.ask(int(state))
        self._background.go_on(self._planned, self._memory)
        return current

    def play(self, state: int) -> Play:
        """Return the episode in progress, or a new one from a state. The caller fills in its record."""
        if self._play is not None and self._play.interim:
            self.finish()
        if self._play is None:
            self._check_state(state)
            self._background.failure = None
            began = time.perf_counter()
            episode = self._planned(state)
            return self._set_out(episode, time.perf_counter() - began)
        return self._play

    def _planned(self, state: int) -> Episode:
        """Return the episode of ``begin`` in the form that compiled loops need."""
        episode = self.begin(state)
        if not self._trusted:
            episode = checked_episode(episode, self.n_states, self.n_actions)
        if episode.plan is not None and episode.plan.state is None:
            episode = replace(episode, plan=replace(episode.plan, state=int(state)))
        return episode

    def _set_out(self, episode: Episode, planning_time: float = 0.0, interim: bool = False) -> Play:
        self.episodes += 1
        record = self._spare or Record.empty(self.counts)
        self._spare = None
        self._play = Play(episode, record, planning_time=planning_time, interim=interim)
        return self._play

    def _interim(self) -> Episode:
        """Return the episode to play while planning in the background."""
        return self._background.interim(self.n_states, self.n_actions)

    def _memory(self) -> Memory | None:
        """Return a copy of the state that ``begin`` may change; None for a user's object without ``state()``."""
        ours = Player.state(self)
        try:
            return copy.deepcopy({key: value for key, value in self.state().items() if key not in ours})
        except AgentError:
            return None

    def _stop_planning(self) -> None:
        """Wait for the thread, drop its plan and restore the state before it; the episode in progress goes on."""
        before, playing = self._background.before, self._play
        planned = self._background.wait()
        if planned is not None and before is not None:
            self.restore(before | Player.state(self))
            self._play = playing

    @property
    def between_episodes(self) -> bool:
        """True if no episode is in progress."""
        return self._play is None

    def finish(self) -> None:
        """End the episode in progress, because a cap was reached or the caller has to stop.

        A plan that is being made in the background is dropped once its thread has ended. Only a plan that ``observe``
        has found ready is played next.
        """
        planned = self._background.wait() if self._background.ready else None
        self._stop_planning()
        current, self._play = self._play, None
        if current is None:
            return
        event = self._learn_from(current) if current.record.steps else None
        current.record.clear()
        self._spare = current.record
        if planned is not None and planned.episode is not None:
            self._set_out(planned.episode, planned.seconds)
        elif planned is not None:
            self._background.failure = planned.error
        if event is not None:  # last, so that a failing callback leaves the agent consistent
            self._watchers.notify(event)

    def _learn_from(self, played: Play) -> EpisodeEvent | None:
        """Learn from an episode that is over, and return its event if there are watchers."""
        before, self._background.last = self._background.last, without_plan(played.episode)
        self.end(played.record)
        if played.episode.kind in EXPLORING:
            self.explored += played.record.steps
        return event_of(self, played, before, self.counts) if self._watchers else None

    def unfinished_event(self) -> EpisodeEvent | None:
        """Return the event of the episode in progress, as if it ended now; None before its first round.

        Watchers are called when an episode ends. A run that stops at its horizon leaves the last one unfinished.
        """
        current = self._play
        if current is None or not current.record.steps:
            return None
        return event_so_far(self, current, self._background.last)

    def act(self, state: int) -> int:
        """Return the action to take in a state. Report its outcome with ``observe`` before the next call.

        >>> from psconrl.agents import PSConRL
        >>> agent = PSConRL(n_states=2, n_actions=2, thresholds=[0.5], seed=1)
        >>> action = agent.act(0)
        >>> agent.observe(action, next_state=1, costs=[1.0, 0.0])
        """
        self._check_state(state)
        if self._play is not None and self._play.is_awaiting:
            raise AgentError(
                "act was called twice; call observe(action, next_state, costs) in between, or finish() if the outcome "
                "is lost"
            )
        return self.present(state).draw(state, self.action_uniforms)

    def observe(self, action: int, next_state: int, costs: ArrayLike) -> None:
        """Report the outcome of the last action: the next state and all m+1 costs, the objective first."""
        if self.note(action, next_state, costs):
            self.finish()
            if self.rounds >= self._advise_at:
                self._advise()

    def _advise(self) -> None:
        """Warn once if the agent may learn nothing; what was met says whether the objective is a reward."""
        reward, rounds = bool((self.counts.cost_sums[0] < 0.0).any()), self.rounds
        line = self.why_hopeless(reward or None)
        if not line and rounds >= FEWEST_FOR_ADVICE:
            line = self.why_short_sighted(reward)
        following = min(2 * rounds, FEWEST_FOR_ADVICE) if rounds < FEWEST_FOR_ADVICE else 2 * rounds
        self._advise_at = NO_CAP if line else following
        if line:
            warnings.warn(line, AdviceWarning, stacklevel=3)

    def note(self, action: int, next_state: int, costs: ArrayLike) -> bool:
        """Report an outcome like ``observe``, and return True if the episode is over; the caller has to ``finish`` it.

        An interim episode is over when the plan is ready.
        """
        current = self._play
        if current is None or not current.is_awaiting:
            raise AgentError("observe was called before act")
        self._check_state(next_state, "next_state")
        self._check_action(action)
        current.enter(int(action), int(next_state), self._cost_vector(costs))
        if current.interim and not current.is_full():
            self._background.go_on(self._planned, self._memory)
            return self._background.look()
        return current.is_full()

    def _cost_vector(self, costs: ArrayLike) -> Floats:
        """Return the costs (m+1,) of a round after a check."""
        vector = np.atleast_1d(as_costs(costs, "costs"))
        if vector.shape != (self.n_costs,):
            raise AgentError(
                f"costs must be {self.n_costs} numbers (the objective, then {self.n_costs - 1} constrained); "
                f"got {vector.size}"
            )
        return vector

    def _check_action(self, action: int) -> None:
        if not is_index(action, self.n_actions):
            raise AgentError(f"action must lie in 0..{self.n_actions - 1}; got {quoted(action)}")

    def _check_state(self, state: int, what: str = "state") -> None:
        if not is_index(state, self.n_states):
            raise AgentError(f"{what} must be an integer from 0 to {self.n_states - 1}; got {quoted(state)}")

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """Return the constructor arguments of this agent, except the seed, as plain data."""

    def save(self, path: str | Path, extra: dict[str, Any] | None = None) -> None:
        """Write the whole agent, generators included, to one file atomically.

        If it is planning in the background, the file holds its state before; once loaded, it starts that plan again.
        """
        before = self._background.before
        state = self.state() if before is None else before | Player.state(self)
        write_saved(Saved(self.name, self.recipe, self.config(), state, extra or {}), path)

    def state(self) -> dict[str, Any]:
        """Return everything that has changed since construction: numbers, arrays and generators.

        While the agent plans in the background, some of it is changing; ``save`` uses the state before planning.
        """
        state = self._named_thresholds.state() | {
            "rounds": self.rounds,
            "episodes": self.episodes,
            "explored": self.explored,
            "action_uniforms": self.action_uniforms.state(),
            "counts": self.counts.state(),
        }
        if self._play is not None:
            state["play"] = self._play.state()
        if self._background.on or (self._play is not None and self._play.interim):
            state["background"] = self._background.state()
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        self._background.wait()
        self._named_thresholds.restore(state)
        fields = dict.fromkeys(("rounds", "explored"), integer()) | {
            "episodes": integer(0, NO_CAP),
            "action_uniforms": self.action_uniforms.restore,
            "counts": self.counts.restore,
            "play": maybe(lambda play: Play.restored(play, self.counts)),
            "background": lambda background: self._background.restore(background, self.n_states, self.n_actions),
        }
        saved = {"play": None} | read_fields({"background": None} | state, fields, may_be_missing=["play"])
        self.rounds, self.episodes, self.explored = saved["rounds"], saved["episodes"], saved["explored"]
        self._play, visits = saved["play"], self.counts.visits.sum()
        need_that(self.explored <= self.rounds == visits, "rounds must be the sum of visits, and explored at most that")
        playing = self.rounds if self._play is None else self.rounds + self._play.record.steps
        need_that(playing <= MOST_ROUNDS, f"there must be at most {MOST_ROUNDS:,} rounds")
        need_that(self.episodes >= min(playing, 1), "episodes must be 1 at least, as there are rounds")
