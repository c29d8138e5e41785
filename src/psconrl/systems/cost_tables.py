"""The costs of a system in its reachable states: by pair, by outcome of the noise, and by event."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Bools, Floats, Ints, Places
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError
from psconrl.systems.functions import Rule, rule_numbers, shown_values
from psconrl.systems.outcome_successors import blocks_of_states, possible_at
from psconrl.systems.quantities import LinearLimit
from psconrl.systems.reachable_states import Reachable
from psconrl.systems.reports import Report
from psconrl.systems.sources import NEXT, RandomSource


class CostTables(NamedTuple):
    """The objective and the limits, as costs that are to be small.

    ``fixed`` (m+1, S*A): what depends on the pair only. ``by_outcome``, ``by_event``: for each cost what depends on the
    outcome (S*A, W), or on the event (S*A, E); or None.
    """

    fixed: Floats
    by_outcome: tuple[Floats | None, ...]
    by_event: tuple[Floats | None, ...]

    @classmethod
    def of(
        cls,
        source: RandomSource,
        reachable: Reachable,
        successors: Places,
        rules: Mapping[str, Rule],
        shown: Sequence[LinearLimit],
        maximises: bool,
        report: Report,
    ) -> "CostTables":
        """Return the tables of the objective, which comes first in ``shown``, and of the limits."""
        S, A = reachable.available.shape
        parts: list[list[Floats]] = []
        known: list[Bools] = []
        done = 0
        for some in blocks_of_states(source, reachable.states):
            here = slice(done, done + some.size)
            following = reachable.states[successors[here].ravel()]
            block = _CostValues(source, some, reachable.available[here], following, rules, shown)
            parts.append([block.of(limit) for limit in shown])
            known.append(block.relevant)
            done += some.size
            report(f"costs in {done:,} of {S:,} states")
        relevant = np.concatenate(known)
        fixed = np.zeros((len(shown), S * A))
        by_outcome: list[Floats | None] = []
        by_event: list[Floats | None] = []
        for i, limit in enumerate(shown):
            sign = -1.0 if (maximises if i == 0 else limit.at_least) else 1.0
            values = np.concatenate([part[i] for part in parts])
            fixed[i], random = _split(sign * values, relevant, S * A)
            by_outcome.append(random)
            own = _event_cost(source, limit)
            by_event.append(sign * source.event_costs(own, reachable.states) if own else None)
        return cls(fixed, tuple(by_outcome), tuple(by_event))

    def taken(self, pairs: Ints) -> "CostTables":
        """Return the tables of some pairs."""
        rows = (tuple(None if c is None else c[pairs] for c in some) for some in (self.by_outcome, self.by_event))
        return CostTables(self.fixed[:, pairs], *rows)


class _CostValues:
    """Values of the costs at all pairs, or at all points (s, a, w) if one of them depends on the outcome."""

    def __init__(
        self,
        source: RandomSource,
        some: Ints,
        available: Bools,
        following: Ints,
        rules: Mapping[str, Rule],
        shown: Sequence[LinearLimit],
    ) -> None:
        self.source, states = source, source.states
        wanted = frozenset().union(*(limit.names for limit in shown))
        used = frozenset().union(*(rules[name].names for name in wanted if name in rules)) | wanted
        mixed = {n for one in shown if not _event_cost(source, one) for n in one.names if n in source.cost_names}
        random = bool(mixed or used & (frozenset(source.names) | {NEXT + name for name in states.names}))
        self.columns = source.columns(some) if random else source.pair_columns(some)
        self.relevant: Bools = available.ravel()
        if random:
            possible = possible_at(source, some).ravel()
            self.relevant = possible & np.repeat(self.relevant, source.outcomes.size)
        self.size = self.relevant.size
        if any(name.startswith(NEXT) for name in used):
            self.columns |= {NEXT + name: v for name, v in states.values(following).items()}
        for name in wanted & frozenset(rules):
            rules[name].try_arrays(self.columns)
            self.columns[name] = rule_numbers(rules[name](self.columns, self.size), rules[name].what)
        paid = {name: self.columns[name] + source.cost_of_events(name, some) for name in mixed}
        self.with_events: Mapping[str, NDArray[Any]] = self.columns | paid

    def of(self, limit: LinearLimit) -> Floats:
        """Return the values of a cost; zero where they do not matter. Raise an error if one is infinite or NaN."""
        columns = self.columns if _event_cost(self.source, limit) else self.with_events
        values = np.broadcast_to(rule_numbers(limit.cost(columns, self.size), limit.name), (self.size,))
        wrong = np.flatnonzero(~np.isfinite(values) & self.relevant)
        if wrong.size:
            names = (*self.source.states.names, *self.source.actions.names)
            point = shown_values({name: self.columns[name][wrong[0]] for name in names})
            raise ModelError(f"the cost {quoted(limit.name)} must be finite; it is {values[wrong[0]]} at {point}")
        return np.where(self.relevant, values, 0.0)


def _event_cost(source: RandomSource, limit: LinearLimit) -> str:
    """Return the name of the cost of events that a limit, or the objective, consists of; else an empty string."""
    (weight, term), *more = limit.terms
    return term.text if not more and weight == 1.0 and term.text in source.cost_names else ""


def _split(values: Floats, relevant: Bools, n_pairs: int) -> tuple[Floats, Floats | None]:
    """Return a cost as one that depends on the pair only, and one by outcome, of which one is zero or None."""
    table = values.reshape(n_pairs, -1)
    some = relevant.reshape(n_pairs, -1)
    first = table[np.arange(n_pairs), some.argmax(axis=1)]
    if ((table == first[:, None]) | ~some).all():
        return first, None
    return np.zeros(n_pairs), table
