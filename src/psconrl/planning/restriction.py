"""Restriction of a model to its reachable states, and extension of a plan back to all states."""

from dataclasses import replace
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.kernels.chains.occupancy import one_hot
from psconrl.markov.structure import reachable
from psconrl.model.cmdp import CMDP
from psconrl.planning.mixture_policy import PolicyMixture
from psconrl.planning.plan import Plan


class Restriction:
    """The states of a model that are reachable from its initial distribution, a closed set."""

    def __init__(self, cmdp: CMDP) -> None:
        self.whole = cmdp
        self.states = reachable(cmdp)

    @property
    def leaves_out(self) -> int:
        """Number of states that cannot be reached."""
        return self.whole.n_states - self.states.size

    def apply(self) -> CMDP:
        """Return the model on these states, in the storage that planning prefers."""
        part = self.whole.restricted(self.states) if self.leaves_out else self.whole
        return part.stored(part.transition.sparse_if_empty())

    def apply_to_policy(self, policy: Ints) -> Ints:
        """Restrict a deterministic policy to these states."""
        return np.asarray(policy[self.states])

    def invert(self, part: Plan) -> Plan:
        """Extend a plan of the part to the whole model; unreachable states play an arbitrary action."""
        if not self.leaves_out:
            return part
        S = self.whole.n_states
        idle = self.whole.available.argmax(axis=1)
        anything = one_hot(idle, self.whole.n_actions)
        missing = f"{self.leaves_out} of {S} states cannot be reached and were left out"
        return replace(
            part,
            policy=self._spread(part.policy, anything),
            occupancy=self._spread(part.occupancy, np.zeros_like(anything)),
            potential=self._spread(part.potential, np.zeros(S)),
            low_potential=self._spread(part.low_potential, np.zeros(S)),
            gains=None if part.gains is None else self._spread(part.gains, np.zeros(S)),
            columns=tuple(self._spread(column, idle) for column in part.columns),
            mixture=None if part.mixture is None else self._spread_mixture(part.mixture, idle),
            exact=None if part.exact is None else part.exact.extended(self.states.tolist(), anything),
            names=self.whole.names,
            note="; ".join(filter(None, (part.note, missing))),
        )

    def _spread_mixture(self, part: PolicyMixture, idle: Ints) -> PolicyMixture:
        policies = np.array([self._spread(actions, idle) for actions in part.policies])
        distributions = np.array(
            [self._spread(distribution, np.zeros(idle.size)) for distribution in part.distributions]
        )
        return replace(part, policies=policies, distributions=distributions)

    def _spread(self, values: Floats | Ints, elsewhere: Floats | Ints) -> Any:
        full = elsewhere.copy()
        full[self.states] = values
        return full
