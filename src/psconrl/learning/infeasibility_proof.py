"""A proof that a sampled model is infeasible, kept to refute other thresholds without solving the model again."""

from typing import NamedTuple

from psconrl.base.arrays import Floats
from psconrl.kernels.arithmetic.products import dot
from psconrl.model.transition import Transition
from psconrl.planning.mixture.solve import Solution
from psconrl.planning.problem import Problem
from psconrl.planning.tolerances import FEASIBLE


class Refutation(NamedTuple):
    """A dual ray: in this model, every policy's weighted average constrained cost is at least a bound."""

    transition: Transition
    costs: Floats
    weights: Floats  # (m,)
    bound: float

    @classmethod
    def of(cls, found: Solution, problem: Problem, transition: Transition, costs: Floats) -> "Refutation":
        """Return the proof of an infeasible solution, in the units of the costs."""
        shift, scale = (part[1:] for part in problem.scaling)
        weights = found.weights[1:] / scale
        bound = dot(found.weights[1:], problem.thresholds) - found.gap + dot(weights, shift)
        return cls(transition, costs, weights, bound)

    def holds_for(self, transition: Transition, costs: Floats, thresholds: Floats) -> bool:
        """True if the bound also proves these thresholds infeasible in this model."""
        same = self.transition is transition and self.costs is costs
        return same and bool(self.bound - dot(self.weights, thresholds) > 2.0 * FEASIBLE)
