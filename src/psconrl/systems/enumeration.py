"""Distributions of columns of a graph over all noise, with as few joint outcomes as possible.

With few joint outcomes, all of them are enumerated. Otherwise

- columns are computed once for all points that agree in what they depend on;
- a node whose noise enters nothing else has a distribution of its own, which takes the place of its noise;
- after each noise, rows with the same values of all that is still needed are merged.

The work is done in blocks, so that memory is bounded.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Ints
from psconrl.base.caps import need
from psconrl.errors import ModelError
from psconrl.systems.noise_graph import Graph, Node
from psconrl.systems.outcome_rows import Columns, Distribution, Factor, Rows, distinct_points, joined_rows
from psconrl.systems.reports import Report

FEW_OUTCOMES = 64  # joint outcomes: with more, noise is enumerated by factors
ROWS_AT_ONCE = 400_000  # rows of a block


@dataclass(frozen=True, eq=False)
class Points:
    """Pairs of states and actions: the values of their variables, and the factors of the noise there."""

    size: int
    columns: Columns  # (size,) each
    factors: Mapping[str, Factor]

    def taken(self, which: Ints, columns: Iterable[str], factors: Iterable[str]) -> "Points":
        """Return some of the points with some of their columns and factors."""
        kept = {name: Factor(self.factors[name].distribution, self.factors[name].contexts[which]) for name in factors}
        return Points(which.size, {name: self.columns[name][which] for name in columns}, kept)

    def with_factors(self, factors: Iterable[str]) -> "Points":
        """Return the points with some of their factors, in the same order."""
        kept = set(factors)
        return Points(self.size, self.columns, {name: f for name, f in self.factors.items() if name in kept})


def is_few(points: Points) -> bool:
    """Return whether there are few joint outcomes, all of which are enumerated."""
    return prod(int(f.distribution.lengths.max(initial=1)) for f in points.factors.values()) <= FEW_OUTCOMES


class Enumeration:
    """The joint distribution of some columns, the targets, at all points.

    ``first``: of points that agree in all on which the targets depend, the first. ``group``: for every point the place
    of that one. ``jointly``: whether all joint outcomes are enumerated, since there are few.
    """

    def __init__(self, graph: Graph, points: Points, targets: Sequence[str], report: Report) -> None:
        self._report, self._graph, self._targets = report, graph, tuple(targets)
        self._nodes = graph.needed(targets)
        used = graph.factors(targets)
        self.jointly = is_few(points)
        order = [name for name in points.factors if used and (self.jointly or name in used)]
        columns = {name for node in self._nodes for name in node.inputs} | set(targets)
        columns &= graph.pair_names
        keys = [*(points.columns[name] for name in sorted(columns)), *(points.factors[name].contexts for name in order)]
        self.first, self.group = distinct_points(keys, points.size)
        self._points = points.taken(self.first, sorted(columns), order)
        self._factors = dict(self._points.factors)
        self._ready: set[str] = set(columns)
        self._given = dict(self._points.columns)
        if not self.jointly:
            self._reduce()
        self._stages = self._planned()

    def _reduce(self) -> None:
        """Put nodes whose noise enters nothing else in place of that noise."""
        for node in reversed(self._nodes):
            if not node.factors or not node.factors <= set(self._factors):
                continue
            if len(node.factors) == len(self._factors) and node.given >= self._ready:
                continue
            inside = self._graph.needed(node.outputs)
            hidden = {name for one in inside for name in one.outputs} - set(node.outputs)
            hidden |= {name for name, factor in self._graph.factor_of.items() if factor in node.factors}
            hidden -= {name for name in hidden if not self._graph.factors([name])}
            others = [one for one in self._nodes if one not in inside]
            if any(one.inputs & hidden for one in others) or hidden & set(self._targets):
                continue
            found, contexts = self._of_node(node)
            place = min(list(self._factors).index(name) for name in node.factors)
            left = [(name, f) for name, f in self._factors.items() if name not in node.factors]
            left.insert(place, (node.outputs[0], Factor(found, contexts)))
            self._factors = dict(left)
            kept = {one.outputs for one in inside if one.factors}
            self._nodes = [one for one in self._nodes if one.outputs not in kept]

    def _of_node(self, node: Node) -> tuple[Distribution, Ints]:
        """Return the distribution of a node in its own contexts; one that is the same everywhere is kept."""
        points, known = self._points.with_factors(node.factors), self._graph.constants
        if node.outputs in known:
            return known[node.outputs], np.zeros(points.size, dtype=np.int64)
        own = Enumeration(self._graph, points, node.outputs, self._report)
        found = own.distribution()
        if not node.given and all(f.distribution.lengths.size == 1 for f in points.factors.values()):
            known[node.outputs] = found
        return found, own.group

    def _planned(self) -> list[tuple[str | None, list[Node], tuple[str, ...]]]:
        """Return the stages: a factor, the nodes that follow with it, and the columns that are still needed."""
        ready, left = set(self._ready), list(self._nodes)
        stages: list[tuple[str | None, list[Node], tuple[str, ...]]] = []
        for name in (None, *self._factors):
            if name is not None:
                ready |= set(self._factors[name].distribution.values)
            now = []
            for node in left:
                if node.inputs <= ready:
                    now.append(node)
                    ready |= set(node.outputs)
            left = [node for node in left if node not in now]
            still = set(self._targets).union(*(node.inputs for node in left))
            stages.append((name, now, tuple(sorted(still & ready - self._graph.pair_names))))
        assert not left, "a column depends on what is not known"
        return stages

    def distribution(self, merged: bool = True) -> Distribution:
        """Return the distribution of the targets at the first points, merged or with a row for every outcome."""
        rows = joined_rows([block.merged() if merged else block for block in self.blocks()])
        return Distribution(
            np.searchsorted(rows.points, np.arange(self.first.size + 1)), rows.columns, rows.probabilities
        )

    def blocks(self) -> Iterator[Rows]:
        """Return the rows of the targets, for some of the first points after the other; they are not merged."""
        _, nodes, kept = self._stages[0]
        for k in range(0, max(self.first.size, 1), ROWS_AT_ONCE):
            places = np.arange(k, min(k + ROWS_AT_ONCE, self.first.size))
            rows = Rows(places, np.ones(places.size), {})
            yield from self._continued(self._with_nodes(rows, nodes, kept), 1)

    def _continued(self, rows: Rows, stage: int) -> Iterator[Rows]:
        if stage == len(self._stages):
            self._report(f"{', '.join(self._targets)}: {rows.points[-1] + 1:,} of {self.first.size:,} cases")
            yield self._finished(rows)
            return
        name, nodes, kept = self._stages[stage]
        assert name is not None
        factor = self._factors[name]
        number = rows.grown(factor)
        if number > ROWS_AT_ONCE and rows.points[0] != rows.points[-1]:
            for half in rows.halves():
                yield from self._continued(half, stage)
            return
        need(8.0 * number * (len(rows.columns) + 4), f"{number:.3g} joint outcomes of noise", ModelError)
        grown = self._with_nodes(rows.with_factor(factor), nodes, kept)
        last = stage == len(self._stages) - 1
        yield from self._continued(grown if last or self.jointly else grown.merged(), stage + 1)

    def _with_nodes(self, rows: Rows, nodes: list[Node], kept: tuple[str, ...]) -> Rows:
        columns: dict[str, NDArray[Any]] = dict(rows.columns)
        for node in nodes:
            for name in sorted(node.inputs - columns.keys()):
                columns[name] = self._given[name][rows.points]
            columns |= node.values({name: columns[name] for name in sorted(node.inputs)}, rows.points.size)
        return Rows(rows.points, rows.probabilities, {name: columns[name] for name in kept})

    def _finished(self, rows: Rows) -> Rows:
        columns = {name: rows.columns.get(name) for name in self._targets}
        found = {name: self._given[name][rows.points] if v is None else v for name, v in columns.items()}
        return Rows(rows.points, rows.probabilities, found)
