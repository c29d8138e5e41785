"""Expressions of a system at all its points, and their long-run averages under a policy."""

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.model.matrix_product import product
from psconrl.model.transition import Transition
from psconrl.systems.expectations import Weighted
from psconrl.systems.expressions import Expression
from psconrl.systems.quantities import ONE, Averages, Combination, LinearLimit
from psconrl.systems.stated import Stated


class Measures:
    """The values of expressions at all points (s, a, w) of a system without unknown parameters."""

    def __init__(self, system: Stated) -> None:
        self._known = system.expectations
        self.shape = self._known.shape

    @property
    def transition(self) -> Transition:
        """The transitions."""
        return self._known.transition

    def cost(self, combination: Combination) -> Floats:
        """Return the expected value of a combination in every pair, (S, A)."""
        return self._known.cost(LinearLimit(str(combination), combination.terms))

    def values(self, expression: Expression) -> Floats:
        """Return all values that an expression has with positive probability, in increasing order."""
        found = self.weighted(expression, ONE)
        return np.unique(found.values[found.groups.probabilities > 0])

    def weighted(self, expression: Expression, given: Expression) -> Weighted:
        """Return the values of an expression, and their probabilities times the weight of the round."""
        return self._known.weighted(expression, given)


class PolicyAverages(Averages):
    """Long-run averages under one occupancy (S, A)."""

    def __init__(self, measures: Measures, occupancy: Floats) -> None:
        self._measures, self._occupancy = measures, occupancy

    def mean(self, combination: Combination) -> float:
        """Return the average of a combination of expressions."""
        return float(product(self._measures.cost(combination).ravel(), self._occupancy.ravel()))

    def distribution(self, expression: Expression, given: Expression) -> tuple[Floats, Floats]:
        """Return the values of an expression, increasing, and the average weight of each."""
        values, both = self._measures.weighted(expression, given).visited(self._occupancy.ravel())
        distinct, place = np.unique(values[both != 0], return_inverse=True)
        return distinct, np.bincount(place, both[both != 0], minlength=distinct.size).astype(np.float64)
