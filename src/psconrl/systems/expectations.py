r"""What is expected of a system in all its pairs: transitions, means of costs, and distributions of expressions.

.. math:: P(s' \mid s,a) = \sum_{w:\, f(s,a,w) = s'} p(w \mid s,a), \qquad
          \bar c(s,a) = \sum_w p(w \mid s,a)\, c(s,a,w).

They do not depend on objective and limits, and are computed once for all systems that differ in these only. For a
belief, which needs every outcome, see ``structure``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Floats, Ints
from psconrl.base.escaping import quoted
from psconrl.base.sizes import PLANNED_DENSE_STATES
from psconrl.errors import ModelError
from psconrl.model.transition import Transition
from psconrl.systems.enumeration import Enumeration
from psconrl.systems.expressions import Expression
from psconrl.systems.functions import Rule, rule_numbers, shown_values
from psconrl.systems.outcome_rows import Columns, Distribution, Rows
from psconrl.systems.quantities import ONE, Combination, LinearLimit
from psconrl.systems.reachable_states import Reachable
from psconrl.systems.reports import Reports
from psconrl.systems.sources import RandomSource

VALUE, PLAIN = "value of ", "plain "  # before the text of an expression, and the name of a cost without its events


@dataclass(frozen=True, eq=False)
class Weighted:
    """The values of an expression and of the weight of a round, with their probabilities, in groups of like pairs."""

    groups: Distribution
    of_pair: Ints  # (S*A,) the group of every pair
    available: Ints  # the pairs that are available

    @property
    def values(self) -> Floats:
        """The values of the expression, by row."""
        return self.groups.values["value"]

    @property
    def weights(self) -> Floats:
        """The probabilities times the weights, by row."""
        return np.asarray(self.groups.probabilities * self.groups.values["weight"])

    def sums(self, costs: Floats) -> Floats:
        """Return the weighted sum (S*A,) of a cost of the values."""
        return self.groups.sums(costs * self.weights)[self.of_pair]

    def visited(self, occupancy: Floats) -> tuple[Floats, Floats]:
        """Return the values of rows, and their average weights under an occupancy (S*A,)."""
        rates = np.bincount(
            self.of_pair[self.available], weights=occupancy[self.available], minlength=self.groups.lengths.size
        )
        return self.values, self.weights * rates[self.groups.contexts]


class Expectations:
    """Transitions, means and distributions of a system in its reachable states, at the prior means of its noise."""

    def __init__(self, source: RandomSource, reachable: Reachable, rules: Mapping[str, Rule], report: Reports) -> None:
        self._source, self._reachable, self._report = source, reachable, report
        self.shape = reachable.available.shape
        source.need_probabilities(reachable.states)
        self._graph = source.graph()
        for name, rule in rules.items():
            if name in source.cost_names:
                self._define_paid(name, rule)
            else:
                self._graph.define(name, rule, partial(rule_numbers, what=rule.what))
        self._points = source.points(reachable.pairs)
        self._where = np.flatnonzero(reachable.available.ravel())
        self._taken = reachable.taken
        self.least_averages: dict[tuple[tuple[float, str], ...], float] = {}  # of sums of expressions
        self._means: dict[str, Floats] = {}
        self._weighted: dict[tuple[str, str], Weighted] = {}

    def _define_paid(self, name: str, rule: Rule) -> None:
        """Define a cost to which events add."""
        self._graph.define(PLAIN + name, rule, partial(rule_numbers, what=rule.what))
        names = frozenset((*self._source.states.names, *self._source.actions.names, *self._source.names))

        def values(columns: Columns, size: int) -> Columns:
            variables = {key: columns[key] for key in names}
            return {name: columns[PLAIN + name] + self._source.paid(name, variables, size)}

        self._graph.add((name,), names | {PLAIN + name}, values)

    @cached_property
    def transition(self) -> Transition:
        """The transitions, dense if there are few states."""
        return self.transition_stored(self.shape[0] > PLANNED_DENSE_STATES)

    def transition_stored(self, sparse: bool) -> Transition:
        """Return the transitions, sparse or dense."""
        matrix = self._reachable.transition()
        return Transition.of(matrix if sparse else matrix.toarray())

    def mean(self, expression: Expression, name: str = "") -> Floats:
        """Return the expected values (S*A,) of an expression. ``name``: what it is a part of, for errors."""
        text = expression.text
        if text not in self._means:
            if text in self._source.cost_names:
                plain = self._mean(Expression(text), PLAIN + text, name)
                self._means[text] = plain + self._source.event_means(text, self._reachable.states)[self._taken]
            else:
                self._means[text] = self._mean(expression, text, name)
        return self._means[text]

    def cost(self, cost: Combination | LinearLimit) -> Floats:
        """Return the expected values (S, A) of a cost."""
        parts = [weight * self.mean(term, cost.name) for weight, term in cost.terms]
        return np.asarray(sum(parts, np.zeros(self._taken.size)).reshape(self.shape))

    def _value(self, text: str, expression: Expression | None) -> str:
        """Return the name of the column that has the values of an expression as numbers."""
        if VALUE + text not in self._graph:
            convert = partial(rule_numbers, what=text)
            if expression is None:
                self._graph.add(
                    (VALUE + text,), frozenset([text]), lambda columns, size: {VALUE + text: convert(columns[text])}
                )
            else:
                self._graph.express(VALUE + text, expression, convert)
        return VALUE + text

    def _mean(self, expression: Expression, text: str, name: str) -> Floats:
        column = self._value(text, None if text in self._graph else expression)
        enumeration = Enumeration(self._graph, self._points, [column], self._report)
        size = enumeration.first.size
        first, sums, fixed = np.zeros(size), np.zeros(size), True
        for rows in enumeration.blocks():
            values = self._checked(rows, column, name or text, enumeration)
            new = np.flatnonzero(np.append(True, rows.points[1:] != rows.points[:-1]))
            first[rows.points[new]] = values[new]
            fixed = fixed and bool((values == first[rows.points]).all())
            sums += np.bincount(rows.points, weights=rows.probabilities * values, minlength=size)
        return self._everywhere((first if fixed else sums)[enumeration.group])

    def _checked(self, rows: Rows, column: str, name: str, enumeration: Enumeration) -> Floats:
        """Return the values of some rows; raise an error if one is infinite or NaN."""
        values = rows.columns[column]
        wrong = np.flatnonzero(~np.isfinite(values))
        if wrong.size:
            pair = enumeration.first[rows.points[wrong[0]]]
            point = shown_values({key: column[pair] for key, column in self._points.columns.items()})
            raise ModelError(f"the cost {quoted(name)} must be finite; it is {values[wrong[0]]} at {point}")
        return values

    def _everywhere(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of the available pairs as values of all."""
        found = np.zeros(self._taken.size, dtype=values.dtype)
        found[self._where] = values
        return found[self._taken]

    def values(self, expression: Expression) -> Floats:
        """Return all values that an expression has with positive probability, in increasing order."""
        found = self.weighted(expression, ONE)
        return np.unique(found.values[found.groups.probabilities > 0])

    def weighted(self, expression: Expression, given: Expression) -> Weighted:
        """Return the distribution of an expression and of the weight of a round."""
        key = expression.text, given.text
        if key not in self._weighted:
            columns = [self._value(one.text, None if one.text in self._graph else one) for one in (expression, given)]
            enumeration = Enumeration(self._graph, self._points, list(dict.fromkeys(columns)), self._report)
            found = enumeration.distribution(merged=not enumeration.jointly)
            rows = Rows(found.contexts, found.probabilities, found.values)
            values, weights = (
                self._checked(rows, column, text, enumeration) for column, text in zip(columns, key, strict=True)
            )
            own = Distribution(found.starts, {"value": values, "weight": weights}, found.probabilities)
            self._weighted[key] = Weighted(own, self._everywhere(enumeration.group), self._where)
        return self._weighted[key]
