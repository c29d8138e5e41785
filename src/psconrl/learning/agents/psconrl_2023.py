r"""PSConRL as in the authors' code of August 2023, which is close to the curve of the paper's Figure 2 on the 8x8 grid.

In the history of the authors' repository the parameters of the posterior have the floors 1 (2022), 0.01 (May 2023),
0.001 (August 2023), 1 (January 2024) and 0.05 (since then: ``psconrl-published``). This is the rule of August 2023. An
episode draws transitions

.. math:: p(\cdot|s,a) \sim \mathrm{Dirichlet}(\max(N(s,a,\cdot), 0.001))

and plays the optimal policy of the sampled model. In states whose long-run frequency under that policy is 0, it plays
all actions with equal probability: their code divides the frequencies of pairs by those of states, and replaces 0/0 by
:math:`1/A`. An episode ends once a pair has been visited :math:`3 (1 + N)` times. Costs are learned as in
``PublishedMeans``. The paper does not say which version made its figure; that this one made the panel of the 8x8 grid
is an inference from its curve (benchmarks/published_agents.py).

A frequency counts as 0 up to 1e-7, the feasibility tolerance of their solver. Two things differ. The sample is planned
exactly, while that tolerance lets their linear program choose a part of the model which cannot be reached. And their
code does not ask whether the program is feasible, and plays what the solver returns if it is not. This agent then plays
uniformly, as their later code does.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.errors import SolverError
from psconrl.learning.part import Part
from psconrl.learning.parts.schedules import Published
from psconrl.learning.posterior.cost_beliefs import PublishedMeans
from psconrl.learning.posterior.transition_beliefs import FlooredCounts
from psconrl.learning.runtime.contract import Episode
from psconrl.learning.runtime.episode_plan import EpisodePlan
from psconrl.learning.sampler import Sampler
from psconrl.markov.chain import chain_of
from psconrl.model.transition import Transition

NO_FREQUENCY = 1e-7  # a long-run frequency up to this counts as 0


class PSConRL2023(Sampler):
    """PSConRL of the authors' code of August 2023: it plays uniformly where its plan has no long-run frequency.

    Its parts are ``belief``, ``schedule`` and ``cost_belief``; the other arguments are those of ``PSConRL``.
    """

    name: ClassVar[str] = "psconrl-published-2023"
    parts: ClassVar[Mapping[str, Part | None]] = {
        "belief": FlooredCounts(0.001),
        "schedule": Published(),
        "cost_belief": PublishedMeans(),
    }

    def begin(self, state: int) -> Episode:
        """Draw a model, and return its optimal policy, uniform where that policy has no long-run frequency."""
        P, costs = self._draw(), self._episode_costs()
        basis = EpisodePlan(P, costs, self.thresholds, sampled=P)
        max_steps, caps = self.schedule.caps(self.counts)
        kind = "uniform"
        try:
            choice = self.planner.optimal(P, costs, self.thresholds, state)
            if choice is not None:
                basis = replace(basis, model=choice.model, prices=choice.prices, policy=choice.policy)
                policy = uniform_where_absent(P, choice.policy)
                return Episode(policy, max_steps, caps, value=choice.value, plan=basis)
        except SolverError:  # the sample cannot be solved in floating point
            kind = "unsettled"
        return replace(Episode.uniform(self.n_states, self.n_actions, max_steps, caps, kind), plan=basis)


def uniform_where_absent(P: Transition, policy: Floats) -> Floats:
    """Return a policy (S, A), replaced by the uniform one in states whose long-run frequency under it is 0.

    In a chain with several closed classes, the frequency of a state is that of a run in its class.

    >>> P = Transition.of(np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]))  # state 1 is never left
    >>> uniform_where_absent(P, np.array([[1.0, 0.0], [1.0, 0.0]])).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    frequency = chain_of(P, policy).solve_classes(np.zeros((1, P.n_states))).distribution
    return np.where(frequency[:, None] > NO_FREQUENCY, policy, 1.0 / P.n_actions)
