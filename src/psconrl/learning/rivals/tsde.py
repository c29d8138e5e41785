"""TSDE (Ouyang, Gagrani, Nayyar and Jain 2017): Thompson sampling with dynamic episodes, without constraints.

Each episode plays the policy that minimises the objective in a model drawn from the posterior. It ends once it is
longer than the last one, or once the visits of a pair have doubled. Bayesian regret O~(H S sqrt(A T)) in weakly
communicating models whose span is at most H. Constraints are ignored: a sanity check where none binds, and the price of
one where it does.
"""

from typing import ClassVar

from psconrl.learning.runtime.contract import Episode
from psconrl.learning.runtime.episode_plan import EpisodePlan
from psconrl.learning.sampler import Sampler


class TSDE(Sampler):
    """TSDE: posterior sampling of the transitions; constraints are ignored. Its parts are those of PSConRL."""

    name: ClassVar[str] = "tsde"

    def begin(self, state: int) -> Episode:
        """Draw a model, and return its optimal policy for the objective alone."""
        P, costs = self._draw(), self._episode_costs()
        return self._minimising(P, costs[:1], state, "unconstrained", EpisodePlan(P, costs, sampled=P))
