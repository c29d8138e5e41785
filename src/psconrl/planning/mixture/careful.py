"""Policy iteration in twice the working precision, for the few models on which rounding would have the last word.

Where parts of a model are left once in 1e8 to 1e18 steps, one double a state cannot hold the bias. Here it has two.
Dense, and some ten times slower than ``howard.Howard``: a second try.
"""

import numpy as np

from psconrl.arrays import Floats
from psconrl.model.unichain import Evaluator, RefinedEvaluator
from psconrl.planning.mixture.howard import Howard
from psconrl.planning.tolerances import NEARLY_CLOSED_DOUBLED

CAREFUL_STATES = 1000  # dense, O(S^3) three times over for every policy


class CarefulHoward(Howard):
    """Howard's policy iteration with biases of two doubles a state."""

    nearly_closed = NEARLY_CLOSED_DOUBLED

    def _new_evaluator(self) -> Evaluator:
        return RefinedEvaluator(self.problem.transition.toarray())

    def _noise(self, h: Floats, current: Floats) -> Floats:
        """The size of what is compared; the biases carry no rounding that counts."""
        return np.maximum(1.0, np.abs(current))
