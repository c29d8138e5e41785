r"""Exploration that trades the information of a try against the distance to it, until all pairs are tried evenly.

The n-th try of a pair reduces the uncertainty about it by about 1/n², and a state that is d steps away costs d + 1
rounds. So the next state minimises

.. math:: (n(s) + 1)^2 \, (d(s) + 1), \qquad n(s) = \min_a N(s, a),

and in a state that is no worse than this minimum, the least tried action is tried. An untried pair is worth a long
path, but not any path: a state that was met once in ten thousand rounds is sought only when the others are known well.
Distances are those of the graph of observed transitions, where a step of frequency p counts as 1/p steps. States that
can no longer be reached are left out.
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from psconrl.base.arrays import Floats, Ints
from psconrl.simulation.observations import Observations

PATIENCE = 4.0  # times the expected length of a path, after which a new path is computed


class Explorer:
    """Chooses actions given the observations so far; ties are broken at random."""

    def __init__(self, seen: Observations, rng: np.random.Generator) -> None:
        self.seen = seen
        self._rng = rng
        self._bar = -1.0  # largest score of a state in which to try an action
        self._hops: Ints = np.full(seen.n_states, -1, dtype=np.int64)  # (S,) the action towards the target
        self._left = 0.0  # steps until the next planning

    def action(self, state: int) -> int:
        """Return the action to try in a state, or the action towards a state where more can be learned."""
        tries = self._tries(state)
        if (tries.min() + 1.0) ** 2 > self._bar:
            if self._hops[state] >= 0 and self._left > 0:
                self._left -= 1
                return int(self._hops[state])
            self._plan(state)
            if (tries.min() + 1.0) ** 2 > self._bar:
                return int(self._hops[state])
        return int(self._rng.choice(np.flatnonzero(tries == tries.min())))

    def _tries(self, state: int) -> Floats:
        """Return the number of tries of every action; inf where it is not available."""
        return np.where(self.seen.allowed[state], self.seen.visits[state], np.inf)

    def _plan(self, state: int) -> None:
        """Choose a target, and the paths to it from all states."""
        graph, best_action = self._graph()
        away: Floats = dijkstra(graph, indices=state)
        tried = np.where(self.seen.allowed, self.seen.visits, np.inf).min(axis=1)
        scores = (tried + 1.0) ** 2 * (away + 1.0)
        target = int(scores.argmin())
        self._bar = float(scores[target])
        self._left = PATIENCE * (float(away[target]) + 1.0)
        _, following = dijkstra(csr_array(graph.T), indices=target, return_predecessors=True)
        self._hops.fill(-1)
        on_the_way = np.flatnonzero(following >= 0)
        steps = on_the_way * self.seen.n_states + following[on_the_way]
        numbers, actions = best_action
        self._hops[on_the_way] = actions[np.searchsorted(numbers, steps)]

    def _graph(self) -> tuple[csr_array, tuple[Ints, Ints]]:
        """Return the graph of states, weighted by the expected tries of every step, and the best action of each."""
        seen, S, A = self.seen, self.seen.n_states, self.seen.n_actions
        length = seen.visits.ravel()[seen.pairs] / seen.times
        steps = (seen.pairs // A) * S + seen.successors
        order = np.lexsort((length, steps))
        numbers, first = np.unique(steps[order], return_index=True)
        best = order[first]
        graph = csr_array((length[best], (numbers // S, numbers % S)), shape=(S, S))
        return graph, (numbers, seen.pairs[best] % A)
