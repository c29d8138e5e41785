"""Long-run averages of expressions under a policy."""

from typing import TYPE_CHECKING

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.model.matrix_product import product
from psconrl.systems.expectations import Expectations
from psconrl.systems.expressions import Expression
from psconrl.systems.quantities import Averages, Combination

if TYPE_CHECKING:
    from psconrl.answers.stated_model import ModelCosts


class PolicyAverages(Averages):
    """Long-run averages under one occupancy (S, A)."""

    def __init__(self, expectations: "Expectations | ModelCosts", occupancy: Floats) -> None:
        self._expectations, self._occupancy = expectations, occupancy

    def mean(self, combination: Combination) -> float:
        """Return the average of a combination of expressions."""
        return float(product(self._expectations.cost(combination).ravel(), self._occupancy.ravel()))

    def distribution(self, expression: Expression, given: Expression) -> tuple[Floats, Floats]:
        """Return the values of an expression, increasing, and the average weight of each."""
        assert isinstance(self._expectations, Expectations), "only systems have percentiles and shortfalls"
        values, both = self._expectations.weighted(expression, given).visited(self._occupancy.ravel())
        distinct, place = np.unique(values[both != 0], return_inverse=True)
        return distinct, np.bincount(place, both[both != 0], minlength=distinct.size).astype(np.float64)
