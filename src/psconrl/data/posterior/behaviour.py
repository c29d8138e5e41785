r"""The posterior of the policy that wrote a log.

The policy that wrote the log has rows :math:`\pi_b(\cdot|s) \sim \mathrm{Dirichlet}(M b + N(s,\cdot))`, with common
frequencies b and a mass M that are learned: M is 1 if states have the same frequencies, and tiny if every state has an
action of its own. In states that were never visited the policy is thus believed to do what it does elsewhere. A mass of
more than one observation would be learned from a rule that differs from state to state and explores a little, too:
common frequencies of the explored actions are then taken for common frequencies of the rule (benchmarks/RESULTS.md).
Given M, :math:`b \sim \mathrm{Dirichlet}(\sum_s M b_a (\psi(M b_a + N(s,a)) - \psi(M b_a)))`, with the expected number
of actions that came from b (Antoniak 1974) in place of a random one. Actions that the log does not have have no share.
"""

import numpy as np
from scipy.special import digamma, gammaln

from psconrl.base.arrays import Floats, Ints
from psconrl.learning.posterior.sampled_rows import dirichlet_rows

MASSES_OF_BEHAVIOUR = 10.0 ** np.arange(-3.0, 1.0)


class Behaviour:
    """The posterior of the policy that wrote the log, from the visits of pairs (S, A).

    >>> Behaviour(np.array([[4, 0], [0, 6], [0, 0]])).mean().round(2).tolist()
    [[0.99, 0.01], [0.01, 0.99], [0.49, 0.51]]
    """

    def __init__(self, pairs: Ints) -> None:
        self._pairs = pairs.astype(np.float64)
        usual = self._pairs.sum(axis=0) / self._pairs.sum()
        self.taken = np.flatnonzero(usual > 0.0)  # actions that the log has
        base, seen = np.multiply.outer(MASSES_OF_BEHAVIOUR, usual[self.taken])[:, None], self._pairs[:, self.taken]
        logs = (gammaln(base + seen) - gammaln(base)).sum(axis=(1, 2))
        logs += (gammaln(base.sum(axis=2)) - gammaln((base + seen).sum(axis=2))).sum(axis=1)
        shares = np.exp(logs - logs.max())
        self._shares = shares / shares.sum()  # posterior of the mass
        # How often a state's action came from the common frequencies rather than from earlier ones in the same state.
        self._common = (base * (digamma(base + seen) - digamma(base))).sum(axis=1)

    def mean(self) -> Floats:
        """Return the expected policy (S, A)."""
        common = self._common / self._common.sum(axis=1, keepdims=True)
        alpha = self._parameters(MASSES_OF_BEHAVIOUR, common)
        means = alpha / alpha.sum(axis=2, keepdims=True)
        return np.asarray((self._shares[:, None, None] * means).sum(axis=0))

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw policies (n, S, A)."""
        which = rng.choice(self._shares.size, size=n, p=self._shares)
        alpha = self._parameters(MASSES_OF_BEHAVIOUR[which], dirichlet_rows(self._common[which], rng))
        return dirichlet_rows(alpha.reshape(-1, alpha.shape[2]), rng).reshape(alpha.shape)

    def _parameters(self, masses: Floats, common: Floats) -> Floats:
        """Return the parameters (n, S, A) of the rows, given masses (n,) and common frequencies of the actions."""
        alpha = np.repeat(self._pairs[None], len(masses), axis=0)
        alpha[:, :, self.taken] += (masses[:, None] * common)[:, None]
        return np.asarray(alpha)
