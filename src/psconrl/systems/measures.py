"""Expressions of a system at all its points, and their long-run averages under a policy."""

from collections.abc import Iterable

import numpy as np

from psconrl.arrays import Floats
from psconrl.model.transition import Transition
from psconrl.products import product
from psconrl.systems.expressions import Expression
from psconrl.systems.quantities import ONE, Averages, Combination, LinearLimit, Quantity
from psconrl.systems.stated import Stated


class Measures:
    """The values of some expressions at all points (s, a, w) of a system without unknown parameters."""

    def __init__(self, system: Stated, expressions: Iterable[Expression]) -> None:
        self._place = {text: i for i, text in enumerate(dict.fromkeys((ONE.text, *(e.text for e in expressions))))}
        self.structure = system.with_costs(
            [LinearLimit(text, ((1.0, Expression(text)),)) for text in self._place]
        ).structure
        parameters = self.structure.randomness.initial()
        self._table, self._means = self.structure.table(parameters), self.structure.costs(parameters)

    @classmethod
    def of(cls, system: Stated, quantities: Iterable[Quantity]) -> "Measures":
        """Return what is needed to evaluate some quantities."""
        parts = (part for quantity in quantities for part in quantity.parts)
        return cls(system, (expression for part in parts for _, expression in part.terms))

    def transition(self) -> Transition:
        """Return the transitions."""
        return self.structure.transition(self._table)

    def cost(self, combination: Combination) -> Floats:
        """Return the expected value of a combination in every pair, (S, A)."""
        return sum((w * self._means[self._place[e.text]] for w, e in combination.terms), np.zeros_like(self._means[0]))

    def points(self, expression: Expression) -> tuple[Floats, Floats]:
        """Return the values (S*A, W) of an expression and their probabilities in every pair; W is 1 if it is fixed."""
        i = self._place[expression.text]
        of_outcome = self.structure.paid(i)
        if of_outcome is None:
            fixed = self.structure.fixed_costs[i][:, None]
            return fixed, np.ones_like(fixed)
        return of_outcome + self.structure.fixed_costs[i][:, None], self._table[self.structure.contexts]

    def values(self, expression: Expression) -> Floats:
        """Return all values that an expression has with positive probability, in increasing order."""
        values, probabilities = self.points(expression)
        return np.unique(values[probabilities > 0])

    def weighted(self, expression: Expression, given: Expression) -> tuple[Floats, Floats]:
        """Return the values of an expression, and their probabilities times the weight of the round, (S*A, W or 1)."""
        values, probabilities = self.points(expression)
        weights, of_outcome = self.points(given)
        return values, weights * (of_outcome if weights.shape[1] > probabilities.shape[1] else probabilities)


class PolicyAverages(Averages):
    """Long-run averages under one occupancy (S, A)."""

    def __init__(self, measures: Measures, occupancy: Floats) -> None:
        self._measures, self._occupancy = measures, occupancy

    def mean(self, combination: Combination) -> float:
        """Return the average of a combination of expressions."""
        return float(product(self._measures.cost(combination).ravel(), self._occupancy.ravel()))

    def distribution(self, expression: Expression, given: Expression) -> tuple[Floats, Floats]:
        """Return the values of an expression, increasing, and the average weight of each."""
        visited = np.flatnonzero(self._occupancy.ravel() > 0)
        values, weights = (array[visited] for array in self._measures.weighted(expression, given))
        values, both = np.broadcast_arrays(values, weights * self._occupancy.ravel()[visited, None])
        values, both = values.ravel(), both.ravel()
        distinct, place = np.unique(values[both != 0], return_inverse=True)
        return distinct, np.bincount(place, both[both != 0], minlength=distinct.size).astype(np.float64)
