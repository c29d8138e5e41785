r"""Going where a try tells most for the way there, until every pair has been tried evenly.

The n-th try of a pair shortens what is not known of it by some 1/n², and a state that is d steps away costs d + 1
rounds. So the next state is that of the least

.. math:: (n(s) + 1)^2 \, (d(s) + 1), \qquad n(s) = \min_a N(s, a),

and in a state that is no worse than that the action tried least is tried. An untried pair is worth a long way, but not
any: a state that was met once in ten thousand rounds is looked for when the others are known as well. Distances are
those of the graph of what was seen, a step of frequency p counting as 1/p steps; what cannot be reached any more is
left.
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from psconrl.arrays import Floats, Ints
from psconrl.simulation.observations import Observations

PATIENCE = 4.0  # times the expected length of a way, after which it is looked for anew


class Explorer:
    """Chooses actions from what was seen, and from a generator where several were tried as often."""

    def __init__(self, seen: Observations, rng: np.random.Generator) -> None:
        self.seen = seen
        self._rng = rng
        self._bar = -1.0  # what a state must not exceed to be worth a try
        self._hops: Ints = np.full(seen.n_states, -1, dtype=np.int64)  # (S,) the action that leads to the target
        self._left = 0.0  # steps until it is time to think again

    def action(self, state: int) -> int:
        """What to try in a state, or the action that leads to where there is more to be learned."""
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
        """How often every action was tried, inf where there is none."""
        return np.where(self.seen.allowed[state], self.seen.visits[state], np.inf)

    def _plan(self, state: int) -> None:
        """Choose a target, and the way there from everywhere."""
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
        """States, and the expected tries of a step from one to the next by the action that does it best; and which."""
        seen, S, A = self.seen, self.seen.n_states, self.seen.n_actions
        length = seen.visits.ravel()[seen.pairs] / seen.times
        steps = (seen.pairs // A) * S + seen.successors
        order = np.lexsort((length, steps))
        numbers, first = np.unique(steps[order], return_index=True)
        best = order[first]
        graph = csr_array((length[best], (numbers // S, numbers % S)), shape=(S, S))
        return graph, (numbers, seen.pairs[best] % A)
