"""Agents made for a system: in live use they take and return the values of its variables in place of numbers."""

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats, Ints
from psconrl.base.caps import MOST_ROUNDS
from psconrl.base.escaping import quoted
from psconrl.base.saved_fields import in_field, need_that, read_fields, real
from psconrl.errors import AdviceWarning, AgentError
from psconrl.learning.agent import Agent
from psconrl.learning.argument_checks import as_number
from psconrl.learning.posterior.counts import Counts, Record, Seen
from psconrl.learning.posterior.estimates import Estimates
from psconrl.learning.posterior.hidden_noise import EVENT
from psconrl.learning.posterior.noise_posterior import Structured
from psconrl.learning.posterior.report_check import check_reports
from psconrl.learning.posterior.transition_beliefs import Belief
from psconrl.learning.runtime.constraint_names import ConstraintNames
from psconrl.learning.runtime.events import EventNames, RatioAverage
from psconrl.systems.events import EventClock
from psconrl.systems.noise_base import as_argument, variables_of
from psconrl.systems.numbered import Choices, choices
from psconrl.systems.reports import Report
from psconrl.systems.system import System
from psconrl.systems.vocabulary import Vocabulary


class Sojourn(NamedTuple):
    """How long a state lasted: in units of time, in ticks of the clock, and in rounds."""

    time: float
    ticks: float
    rounds: int


class SystemAgent(Agent):
    """An agent that may be made for a system, by ``of``; its belief is then ``Structured``."""

    belief: Belief | None
    takes_noise: ClassVar[bool] = True  # whether it can be given what was seen of the noise
    _ticks_owed: float = 0.0  # ticks of the clock in sojourns that were measured, less the rounds that stand for them

    @classmethod
    def _made_for(cls, system: System, options: dict[str, Any], progress: Report | None) -> Self:
        """Return an agent for a system."""
        system.prepare(progress)
        structure = system.structure
        known: dict[str, Any] = {"thresholds": system.thresholds, "belief": Structured.of(system)}
        rows = system.shown_names[1:]
        names = ConstraintNames.of(
            rows, (name for name, one in zip(rows, system.statement.rows[1:], strict=True) if one.at_least)
        )
        if isinstance(given := options.get("thresholds"), Mapping):
            options = options | {"thresholds": names.values(given, system.thresholds)}
        make: Any = cls
        agent: Self = make(structure.n_states, structure.n_actions, **(known | options))
        agent._named_thresholds.names = names
        agent._warn_if_hidden()
        return agent

    @property
    def _words(self) -> Vocabulary | None:
        """The words of the system's owner, if the agent was made for a system."""
        return self.belief.vocabulary if isinstance(self.belief, Structured) else None

    def event_names(self) -> EventNames | None:
        """Return the names of states, actions and costs of the system."""
        words = self._words
        if words is None:
            return None
        return EventNames(words.state_labels, words.action_labels, words.costs, words.signs[0] < 0, words.at_least)

    def estimates(self) -> Estimates:
        """Return what is known of the system's unknown parameters: means, 90% intervals and numbers of observations.

        >>> from psconrl.agents import PSConRL
        >>> from psconrl.systems import Bernoulli, Beta
        >>> lamp = System(state={"on": 2}, action={"wait": 1}, noise={"switch": Bernoulli(Beta(1, 1))},
        ...     step={"on": "switch"}, costs={"heat": "on"}, minimise="heat")
        >>> agent = PSConRL.of(lamp, seed=1)
        >>> agent.observe(agent.act({"on": 0}), {"on": 1})
        >>> print(agent.estimates())
        switch: 0.6667 (90%: 0.2236 to 0.9747; 1 observation)
        """
        if not isinstance(self.belief, Structured):
            raise AgentError("estimates are those of a system's unknown parameters; make the agent with of(system)")
        seen = Counts(self.n_states, self.n_actions, self.n_costs)
        seen.restore(self.counts.state())
        if self._play is not None:
            seen.add(self._play.record)
        return self.belief.estimates(seen)

    def ratio_averages(self, record: Record, seen: Seen) -> tuple[RatioAverage, ...]:
        """Return the ratios that the system limits, in an episode and in everything seen so far."""
        belief, words = self.belief, self._words
        if not isinstance(belief, Structured) or words is None or belief.denominators is None:
            return ()
        divisors = belief.denominators.averages(record, seen, keep=seen is self.counts)
        parts = list(zip((record.averages(), seen.averages()), divisors, strict=True))
        found = []
        for k, limit in enumerate(belief.ratio_limits):
            i, sign = limit.row, words.signs[limit.row]
            episode, so_far = (_ratio(limit.number, sign * costs[i], per[k]) for costs, per in parts)
            threshold = sign * self.thresholds[i - 1]  # zero, unless it was changed
            bound = _ratio(limit.number, threshold, parts[1][1][k]) if threshold else limit.number
            found.append(RatioAverage(i, limit.name, limit.percent, episode, so_far, bound, float(parts[0][1][k])))
        return tuple(found)

    def estimated_means(self) -> dict[str, float] | None:
        """Return approximate posterior means of a system's unknown parameters; None if the agent was given none."""
        return self.belief.quick_means(self.counts) if isinstance(self.belief, Structured) else None

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

    def probabilities(self, state: Mapping[str, Any]) -> Choices:
        """Return the actions that the present policy takes in a state with their probabilities, the likeliest first.

        The present policy is that of the episode in progress, or of the last one. It changes from episode to episode.
        """
        words = self._words
        if words is None:
            raise AgentError("probabilities by name are those of an agent that was made with of(system)")
        if not isinstance(state, Mapping):
            raise AgentError(f"state must be a table of values; got {quoted(state)}")
        number, last = words.state(state), self._background.last
        if self._play is not None:
            row = self._play.distribution(number)
        elif last is not None:
            row = last.row(0, number)
        else:
            raise AgentError("nothing is planned yet; call act first")
        taken = [words.action_taken(number, action) for action in range(self.n_actions)]
        return choices(words.actions.label, np.bincount(taken, row, self.n_actions).astype(np.float64))

    def observe(
        self,
        action: Any,
        next_state: Any,
        costs: Any = None,
        noise: Mapping[str, Any] | None = None,
        after: float | None = None,
    ) -> None:
        """Report the outcome of the last action: the next state and all m+1 costs, the objective first.

        An agent made by ``of`` also takes tables of values, and some costs by the names in which the system states
        them, such as ``{"lost": 1}``. It learns what they reveal of the noise. Costs that are not given are calculated
        if the outcome determines them; otherwise they are unknown, and so is their average. ``noise``: what was seen of
        the noise, such as ``{"demand": 3}``, or None for a value that was not seen. ``after``: in a system with events,
        how long the state had lasted when it changed to the next one, or for how long it has not changed; costs are
        then those of this time.
        """
        words, awaiting = self._words, None if self._play is None else self._play.asked_in
        if words is None:
            if costs is None or noise is not None or after is not None:
                raise AgentError("observe needs costs; only an agent made by of(system) takes noise or times, too")
            super().observe(action, next_state, costs)
            return
        if awaiting is None:
            raise AgentError("observe was called before act")
        assert isinstance(self.belief, Structured)
        if noise is not None and not self.takes_noise:
            raise AgentError(
                f"noise: {quoted(self.name)} learns from transitions only; whether noise is seen may depend on its "
                "value, and its proofs would not hold"
            )
        number, following = words.action(action), words.state(next_state, "next_state")
        self._check_state(following, "next_state")
        self._check_action(number)
        words.need_available(awaiting, number)
        pair = awaiting * self.n_actions + number
        named: dict[str, float] = {}
        paid = None
        if isinstance(costs, Mapping):
            named = words.checked_costs(costs)
            if set(named) == set(words.costs):
                paid = words.planned_costs(named, np.zeros(self.n_costs))
        elif costs is not None:
            paid = self._cost_vector(costs)
        if paid is None and not named:
            self._need_informed(self.belief, noise)
        if after is not None:
            self._observe_sojourn(self.belief, pair, following, self._time(self.belief, after), paid, named, noise)
            return
        cells = self.belief.explained(pair, following, noise, (named or None) if paid is None else paid).cells
        all_given, unknown = paid is not None, np.zeros(self.n_costs, dtype=bool)
        if paid is None:
            expected, known = self.belief.expected_costs(pair, cells)
            paid = words.planned_costs(named, expected)
            unknown = ~(known | np.array([name in named for name in words.costs]))
        over = super().note(number, following, paid)
        assert self._play is not None
        record, transition = self._play.record, pair * self.n_states + following
        record.unknown_costs += unknown
        more = True  # whether more than the transition was noted
        if reported := words.reported(noise):
            record.noise.note(transition, reported, cells)
        elif all_given:
            more = self._note_paid(self.belief, record, transition, cells)
        elif named and cells and self.takes_noise:
            record.noise.note_named(transition, words.named(named), cells)
        else:
            more = False
        record.noise.follow(transition, cells if more else ())
        if over:
            self.finish()

    def _time(self, belief: Structured, after: Any) -> Sojourn:
        """Return the time of a sojourn, and the rounds that it stands for."""
        clock = belief.known_structure.randomness
        if not isinstance(clock, EventClock) or not self.takes_noise:
            raise AgentError("after: only PSConRL.of a system with events takes the time that a state lasted")
        time = as_number(after, "after", "a time above 0", lambda x: 0 < x < np.inf)
        ticks = clock.clock * time
        need_rounds = max(1.0, np.floor(ticks + self._ticks_owed + 0.5))
        if need_rounds > MOST_ROUNDS:
            raise AgentError(f"after: {time:g} is too long; the clock has {clock.clock:g} ticks in a unit of time")
        return Sojourn(time, ticks, int(need_rounds))

    def _observe_sojourn(
        self,
        belief: Structured,
        pair: int,
        following: int,
        sojourn: Sojourn,
        given: Floats | None,
        named: dict[str, float],
        noise: Mapping[str, Any] | None,
    ) -> None:
        """Enter a sojourn, as the rounds that it stands for; its costs are divided by the length of a round."""
        assert self._words is not None
        state, action = divmod(pair, self.n_actions)
        cells = belief.explained(pair, following, noise).cells
        sees_all = noise is not None and noise.get(EVENT) is not None
        per_time = sojourn.ticks / sojourn.time
        if given is None:
            expected, known = belief.sojourn_costs(pair, cells, sojourn.ticks, sees_all)
            paid = self._words.planned_costs({name: per_time * cost for name, cost in named.items()}, expected)
            unknown = ~(known | np.array([name in named for name in self._words.costs]))
        else:
            paid, unknown = per_time * given, np.zeros(self.n_costs, dtype=bool)
        super().note(action, following, paid)
        self._ticks_owed += sojourn.ticks - sojourn.rounds
        play = self._play
        assert play is not None
        record, S = play.record, self.n_states
        record.stay(state, action, sojourn.rounds - 1)
        record.unknown_costs += unknown
        if sojourn.rounds > 1:
            record.noise.note_ticks(pair * S + state, sojourn.rounds - 1)
        if cells:
            none = cells[0] // belief.known_structure.randomness.n_outcomes
            none = (none + 1) * belief.known_structure.randomness.n_outcomes - 1
            record.noise.note_ticks(pair * S + following, 1)
            record.noise.note_sojourn(pair, sojourn.time, sees_all, () if none in cells else cells)
        elif noise is not None:
            record.noise.note(pair * S + following, 0, ())
        record.noise.follow(-1, (), sojourn.rounds)
        if play.is_full() or (play.interim and self._background.ready):
            self.finish()

    def state(self) -> dict[str, Any]:
        """Return everything that has changed since construction."""
        return super().state() | ({"ticks_owed": self._ticks_owed} if self._ticks_owed else {})

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        super().restore(state)
        saved = read_fields(state, {"ticks_owed": real(-MOST_ROUNDS, 1.0)}, may_be_missing=["ticks_owed"])
        self._ticks_owed = saved.get("ticks_owed", 0.0)
        for field, seen in (("counts", self.counts), ("play", None if self._play is None else self._play.record)):
            if seen is not None:
                with in_field(field), in_field("noise"):
                    self._check_noise(seen)
        if isinstance(self.belief, Structured):
            with in_field("parts"), in_field("belief"):
                self.belief.need_within(self.counts)

    def _check_noise(self, seen: Seen) -> None:
        """Compare what was seen of the noise with the structure of the system."""
        if isinstance(self.belief, Structured):
            check_reports(seen, self.belief.known_structure, self._words)
        else:
            need_that(not seen.noise, "must be missing, since the agent was made for no system")

    def note(self, action: Any, next_state: Any, costs: ArrayLike) -> bool:
        """Report an outcome by numbers, with the costs incurred; return True if the episode is over."""
        awaiting = None if self._play is None else self._play.asked_in
        over = super().note(action, next_state, costs)
        if awaiting is not None and isinstance(self.belief, Structured):
            assert self._play is not None
            vector = np.atleast_1d(np.asarray(costs, dtype=np.float64))
            pair, following = awaiting * self.n_actions + int(action), int(next_state)
            cells = self.belief.explained(pair, following, None, np.ascontiguousarray(vector)).cells
            number = pair * self.n_states + following
            more = self._note_paid(self.belief, self._play.record, number, cells)
            self._play.record.noise.follow(number, cells if more else ())
        return over

    def saw_costs(self, record: Record, numbers: Ints, costs: Floats, times: Ints) -> None:
        """Learn what realised costs (m+1, n) reveal of the noise.

        ``numbers``: (s * A + a) * S + s' of the transitions; ``times``: how often each occurred with these costs.
        """
        belief = self.belief
        if not isinstance(belief, Structured):
            return
        for k, number in enumerate(numbers.tolist()):
            pair, following = divmod(number, self.n_states)
            cells = belief.explained(pair, following, None, np.ascontiguousarray(costs[:, k])).cells
            self._note_paid(belief, record, number, cells, int(times[k]))

    def _note_paid(
        self, belief: Structured, record: Record, number: int, cells: tuple[int, ...], times: int = 1
    ) -> bool:
        """Note the outcomes that explain rounds whose costs were seen, unless costs never reveal anything there."""
        reveal = bool(cells) and self.takes_noise and belief.explanations.costs_reveal(number // self.n_states)
        if reveal:
            record.noise.note_paid(number, cells, times)
        return reveal

    def _need_informed(self, belief: Structured, noise: Mapping[str, Any] | None) -> None:
        """Raise an error if neither costs nor noise are given, although the next state never reveals a parameter."""
        for name, seen in belief.hidden.items():
            variables = variables_of(seen)
            if self.takes_noise and not (isinstance(noise, Mapping) and any(one in noise for one in variables)):
                raise AgentError(
                    f"observe needs costs=... or noise={{{_shown(variables)}}}: no next state depends on "
                    f"{quoted(name)}, "
                    f"whose parameter is unknown; noise={{{quoted(variables[0])}: None}} says that it was not seen"
                )

    def _warn_if_hidden(self) -> None:
        """Warn if no next state depends on a parameter that is to be learned."""
        hidden = self.belief.hidden if isinstance(self.belief, Structured) else {}
        for name, seen in hidden.items():
            line = f"no next state depends on {quoted(name)}, whose parameter is unknown"
            if self.takes_noise:
                line += (
                    f": it is learned from realised costs only, observe(..., costs=...), or if it is seen, "
                    f"observe(..., noise={{{_shown(variables_of(seen))}}}); a simulation of the system gives the costs"
                )
            else:
                line += (
                    f", and {quoted(self.name)} learns from transitions only and never learns it; give its value, "
                    f"with_noise({as_argument(seen)}), or use PSConRL.of"
                )
            warnings.warn(line, AdviceWarning, stacklevel=4)


def _ratio(number: float, average: float, divisor: float) -> float:
    """Return a / b, given the averages of a - number * b and of b; nan if b is zero or unknown."""
    return float(number + average / divisor) if divisor else float("nan")


def _shown(variables: tuple[str, ...]) -> str:
    """Return variables of noise as they are reported."""
    return ", ".join(f"{quoted(name)}: ..." for name in variables)
