"""Optimal policies inside every end component for a weighted cost, kept as the start of the next call."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Floats, Ints
from psconrl.base.sizes import PLANNED_DENSE_STATES, SMALL_COMPONENT_STATES
from psconrl.errors import SolverError
from psconrl.kernels.graphs import successors
from psconrl.kernels.graphs.moves import inside_rows
from psconrl.kernels.search.small_components import Room, plan_small
from psconrl.markov.structure import EndComponents
from psconrl.model.transition import Transition
from psconrl.planning.mixture.solve import solve
from psconrl.planning.problem import Problem
from psconrl.planning.tolerances import NEARLY_CLOSED, SAME_CLASS_COST, SEARCH_GAP, SWITCH_TOL, WORSE_TOL


class ComponentPlans(NamedTuple):
    """Plans of all components for one weighted cost."""

    policy: Ints  # (S,) stays in the components; arbitrary elsewhere
    bounds: Floats  # (K,) no policy that stays costs less
    potential: Floats  # (S,) bias that proves the bounds
    low_potential: Floats  # (S,) low-order part, to be added to the potential
    distribution: Floats  # (S,) stationary distribution within each component; zero elsewhere


class Inside:
    """Plans the components of a problem: small ones in one compiled call, each large one as a separate model."""

    def __init__(self, problem: Problem, parts: EndComponents) -> None:
        self.problem, self.parts = problem, parts
        self._rows = problem.transition.csr()
        self._inside = np.ascontiguousarray(parts.inside.ravel())
        self._start, self._members = successors.grouped(parts.of_state, parts.number)
        sizes = np.diff(self._start)
        largest = int(sizes[sizes <= SMALL_COMPONENT_STATES].max(initial=1))
        self._room = Room(largest, parts.inside.shape[1], NEARLY_CLOSED, SAME_CLASS_COST)
        # A state outside the components plays any available action.
        self._policy: Ints = np.where(
            parts.of_state >= 0, parts.inside.argmax(axis=1), problem.available.argmax(axis=1)
        )
        self._models: dict[int, Problem] = {}

    def plan(self, cost: Floats) -> ComponentPlans:
        """Return the cheapest policy in every component for a cost (S*A,)."""
        S, K = self._policy.size, self.parts.number
        rows, policy = self._rows, self._policy.copy()
        bounds, distribution = np.zeros(K), np.zeros(S)
        potential, low = np.zeros(S), np.zeros(S)
        done = plan_small(
            self._room, rows.indptr, rows.indices, rows.data, cost, self._inside, self._start, self._members, policy,
            bounds, potential, distribution, SEARCH_GAP, SWITCH_TOL, WORSE_TOL,
        )  # fmt: skip
        for k in np.flatnonzero(~done):
            states = self._members[self._start[k] : self._start[k + 1]]
            pairs = self.problem.transition.pairs_of(states)
            model = self._model(int(k), states)._replace(costs=np.where(self._inside[pairs], cost[pairs], 0.0)[None, :])
            found = solve(model, [np.ascontiguousarray(policy[states])])
            if not found.settled:
                raise SolverError(f"rounding left a gap of {found.gap:.1e} in an end component")
            best = found.mixture
            policy[states], distribution[states] = best.answers[0].policy, best.answers[0].stationary
            bounds[k] = found.value - best.gap
            potential[states], low[states] = best.proof.potential(np.ones(1))
        self._policy = policy
        return ComponentPlans(policy, bounds, potential, low, distribution)

    def _model(self, k: int, states: Ints) -> Problem:
        """Return one component without costs and constraints; pairs that leave it are not available."""
        if k not in self._models:
            available = self.parts.inside[states]
            rows, A = self._rows, available.shape[1]
            distribution = inside_rows(rows.indptr, rows.indices, rows.data, states, available, self._policy.size)
            P = Transition.of(
                csr_array((distribution[2], distribution[1], distribution[0]), shape=(states.size * A, states.size))
            )
            nothing, none = np.zeros((1, states.size * A)), np.empty(0)
            self._models[k] = Problem(
                P.dense_up_to(PLANNED_DENSE_STATES), nothing, none, available, self.problem.scaling
            )
        return self._models[k]
