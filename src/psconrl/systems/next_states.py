"""Next states of pairs and their probabilities.

Variables whose next values depend on noise in common are enumerated together. Those of different groups are
independent given the pair, so that their probabilities are multiplied.
"""

from math import prod
from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.caps import need
from psconrl.errors import ModelError
from psconrl.systems.enumeration import ROWS_AT_ONCE, Enumeration, Points, is_few
from psconrl.systems.noise_graph import Graph
from psconrl.systems.outcome_rows import Columns, Distribution
from psconrl.systems.reports import Report
from psconrl.systems.sources import PLACE
from psconrl.systems.variables import Space

NUMBER = "number"  # the column of the part of a state's number that some variables determine


class NextStates(NamedTuple):
    """Next states of some pairs, by their numbers in the space, increasing in every pair; -1: outside."""

    starts: Ints  # (pairs + 1,)
    numbers: Ints
    probabilities: Floats

    def of(self, pairs: Ints) -> "NextStates":
        """Return those of some pairs, in their order."""
        lengths = np.diff(self.starts)[pairs]
        ends = np.cumsum(lengths)
        rows = np.arange(ends[-1] if ends.size else 0) + np.repeat(self.starts[pairs] - (ends - lengths), lengths)
        return NextStates(np.concatenate([[0], ends]), self.numbers[rows], self.probabilities[rows])


def next_states(graph: Graph, points: Points, states: Space, report: Report) -> NextStates:
    """Return the next states of some pairs."""
    parts = []
    for names in _groups(graph, points, states):
        column = _add_number(graph, names, states)
        found = Enumeration(graph, points, [column], report)
        own = found.distribution()
        parts.append((Distribution(own.starts, {NUMBER: own.values[column]}, own.probabilities), found.group))
    lengths = np.ones(points.size, dtype=np.int64)
    for own, group in parts:
        lengths = lengths * own.lengths[group]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    need(16.0 * float(starts[-1]), f"a system with {starts[-1]:,} transitions", ModelError)
    numbers, probabilities = np.empty(starts[-1], dtype=np.int64), np.empty(starts[-1])
    begin = 0
    while begin < points.size:
        end = max(begin + 1, int(np.searchsorted(starts, starts[begin] + ROWS_AT_ONCE, side="right")) - 1)
        block = slice(int(starts[begin]), int(starts[end]))
        numbers[block], probabilities[block] = _multiplied(parts, np.arange(begin, end))
        begin = end
        report(f"transitions of {end:,} of {points.size:,} pairs")
    return NextStates(starts, numbers, probabilities)


def _groups(graph: Graph, points: Points, states: Space) -> list[list[str]]:
    """Return the variables in groups without common noise."""
    if is_few(points):
        return [list(states.names)]
    groups: list[tuple[set[str], list[str]]] = []
    for name in states.names:
        factors, names = set(graph.factors([PLACE + name])), [name]
        for other in [one for one in groups if one[0] & factors or not (one[0] or factors)]:
            groups.remove(other)
            factors, names = factors | other[0], other[1] + names
        groups.append((factors, names))
    return sorted(
        (sorted(names, key=states.names.index) for _, names in groups), key=lambda x: states.names.index(x[0])
    )


def _add_number(graph: Graph, names: list[str], states: Space) -> str:
    """Add a column: the part of the number of the next state that some variables determine, -1 if one is outside."""
    column = f"{NUMBER} of {', '.join(names)}"
    steps = {name: prod(states.shape[states.names.index(name) + 1 :]) for name in names}

    def values(columns: Columns, size: int) -> Columns:
        inside = np.logical_and.reduce([columns[PLACE + name] >= 0 for name in names])
        number = sum((step * columns[PLACE + name] for name, step in steps.items()), np.zeros(size, dtype=np.int64))
        return {column: np.where(inside, number, -1)}

    if column not in graph:
        graph.add((column,), frozenset(PLACE + name for name in names), values)
    return column


def _multiplied(parts: list[tuple[Distribution, Ints]], pairs: Ints) -> tuple[Ints, Floats]:
    """Return the next states of some pairs and their probabilities, from those of independent parts."""
    places = np.arange(pairs.size)
    numbers, probabilities = np.zeros(pairs.size, dtype=np.int64), np.ones(pairs.size)
    for own, group in parts:
        contexts = group[pairs[places]]
        lengths = own.lengths[contexts]
        rows = np.repeat(np.arange(places.size), lengths)
        which = np.arange(rows.size) + np.repeat(own.starts[contexts] - (np.cumsum(lengths) - lengths), lengths)
        more = own.values[NUMBER][which]
        numbers = np.where((more >= 0) & (numbers[rows] >= 0), numbers[rows] + more, -1)
        places, probabilities = places[rows], probabilities[rows] * own.probabilities[which]
    if ((numbers[1:] < numbers[:-1]) & (places[1:] == places[:-1])).any():
        order = np.lexsort((numbers, places))
        return numbers[order], probabilities[order]
    return numbers, probabilities
