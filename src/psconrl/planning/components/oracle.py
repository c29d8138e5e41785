r"""Oracle for models with several end components: the cheapest policy for given weights.

Each component is planned separately, which gives its least cost :math:`b_k` and a bias. Let V be the values of the
problem of moves in which staying in component k costs :math:`b_k`. They are gains that no move lowers, with
:math:`V \le b_k` in each component. Together with the biases they are a multichain proof that no policy costs less than
:math:`\beta V` (Hordijk and Kallenberg 1979; decomposed as by Ashok et al. 2017, and with several costs by Quatmann and
Katoen 2021).
"""

from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.markov.structure import EndComponents
from psconrl.model.matrix_product import product
from psconrl.planning.candidate import Dual
from psconrl.planning.components.inside import ComponentPlans, Inside
from psconrl.planning.components.optimal_stopping import Ending
from psconrl.planning.components.quotient import Quotient
from psconrl.planning.mixture.oracle import Oracle
from psconrl.planning.problem import Problem
from psconrl.planning.tolerances import SEARCH_GAP, SWITCH_TOL, WORSE_TOL


class WholePolicy(NamedTuple):
    """A deterministic policy of the whole model and its averages from the initial distribution, in scaled costs."""

    policy: Ints  # (S,)
    costs: Floats  # (m+1,)


class ComponentsOracle(Oracle[WholePolicy]):
    """Oracle for models with several end components; every answer is optimal for its weights."""

    def __init__(self, problem: Problem, initial: Floats, parts: EndComponents) -> None:
        self.problem, self.parts = problem, parts
        self._inside = Inside(problem, parts)
        self._quotient = Quotient(problem.transition, problem.available, parts)
        self._initial = self._quotient.of_nodes(initial)
        self._most_moves: float | None = None

    def first(self, weights: Floats) -> WholePolicy:
        """Return the best policy for these weights."""
        return self._answer(*self._best(weights))

    def improve(self, answer: WholePolicy, weights: Floats) -> tuple[float, WholePolicy | None]:
        """Return a lower bound on the weighted cost of every policy, and the best one unless ``answer`` is as good."""
        planned, ending = self._best(weights)
        bound = product(self._initial, ending.values) - self._lost(ending.values)
        price = product(weights, answer.costs)
        if price - bound <= SEARCH_GAP:
            return bound, None
        better = self._answer(planned, ending)
        return bound, better if product(weights, better.costs) < price - WORSE_TOL else None

    def proof(self, weights: Floats, multipliers: Floats) -> Dual:
        """Return the dual point that proves the bound for these weights, which need not sum to one."""
        planned, ending = self._best(weights)
        gains = ending.values[self._quotient.node]
        return Dual(multipliers, planned.potential, planned.low_potential, gains)

    def _best(self, weights: Floats) -> tuple[ComponentPlans, Ending]:
        planned = self._inside.plan(product(weights, self.problem.costs))
        stay = np.full(self._quotient.moves.n_nodes, np.inf)
        stay[: self.parts.number] = planned.bounds
        return planned, self._quotient.moves.cheapest(stay, 0.0, SWITCH_TOL)

    def _answer(self, planned: ComponentPlans, ending: Ending) -> WholePolicy:
        policy = self._quotient.policy(ending.choice, planned.policy, self.problem.transition)
        A = self.problem.available.shape[1]
        q = len(self.problem.costs)
        inside = np.flatnonzero(self.parts.of_state >= 0)
        met = self.problem.costs[:, inside * A + planned.policy[inside]] * planned.distribution[inside]
        averages = np.zeros((self._quotient.moves.n_nodes, q))
        for i in range(q):
            averages[: self.parts.number, i] = np.bincount(
                self.parts.of_state[inside], met[i], minlength=self.parts.number
            )
        return WholePolicy(policy, product(self._initial, self._quotient.moves.collected(ending.choice, averages)))

    def _lost(self, gains: Floats) -> float:
        """Bound the total loss of gains that decrease slightly in some moves; the number of moves is computed once."""
        fall = self._quotient.moves.largest_fall(gains)
        if fall > 0.0 and self._most_moves is None:
            self._most_moves = self._quotient.most_moves()
        return fall * self._most_moves if fall > 0.0 and self._most_moves is not None else 0.0
