"""Policies that were evaluated in earlier searches of the same model, for searches that differ in thresholds only.

Averages of a policy do not depend on thresholds. So a plan for the next number of a limit begins with the best mixture
of all policies that were found for the others, which lie around it, and evaluates only what is new.
"""

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.markov.policy_iteration import PolicySteps
from psconrl.model.matrices import same_entries
from psconrl.planning.mixture.howard import Column, Howard
from psconrl.planning.problem import Problem

MOST_BYTES_OF_BIASES = 2**27  # of biases that are kept; of large models, those of the last policies


class KnownPolicies:
    """The evaluated policies of one model after the other: those of the last one are kept."""

    def __init__(self) -> None:
        self._problem: Problem | None = None
        self._steps: PolicySteps | None = None
        self._columns: dict[bytes, Column] = {}

    @property
    def columns(self) -> list[Column]:
        """All policies that are kept, the last found last."""
        return list(self._columns.values())

    def oracle(self, problem: Problem, hasty: bool) -> "RecordingHoward":
        """Return an oracle that evaluates no policy of this model twice."""
        if self._problem is None or not _only_thresholds_differ(self._problem, problem):
            self._problem, self._steps, self._columns = problem, None, {}
        found = RecordingHoward(problem, hasty, self._steps, self)
        self._steps = found.steps
        return found

    def find(self, policy: Ints) -> Column | None:
        """Return the evaluation of a policy, if it is kept."""
        return self._columns.get(policy.tobytes())

    def add(self, column: Column) -> None:
        """Keep an exact evaluation."""
        if column.chain.rough:
            return
        self._columns[column.policy.tobytes()] = column
        while len(self._columns) > max(1, MOST_BYTES_OF_BIASES // column.biases.nbytes):
            del self._columns[next(iter(self._columns))]


def _only_thresholds_differ(first: Problem, second: Problem) -> bool:
    return (
        np.array_equal(first.costs, second.costs)
        and np.array_equal(first.available, second.available)
        and first.transition.restarts_in is second.transition.restarts_in is None
        and same_entries(first.transition.matrix, second.transition.matrix)
    )


class RecordingHoward(Howard):
    """Policy iteration that keeps what it evaluates."""

    def __init__(self, problem: Problem, hasty: bool, steps: PolicySteps | None, known: KnownPolicies) -> None:
        super().__init__(problem, hasty=hasty, steps=steps)
        self._known = known

    def evaluate(self, policy: Ints, weights: Floats, near: Column | None = None) -> Column:
        """Evaluate a policy, unless that is known."""
        found = self._known.find(policy)
        if found is None:
            found = super().evaluate(policy, weights, near)
            self._known.add(found)
        return found

    def refined(self, answer: Column) -> Column | None:
        """Return a rough answer evaluated exactly; None if it is exact already."""
        found = super().refined(answer)
        if found is not None:
            self._known.add(found)
        return found
