r"""SpanFHA (Chen, Jain and Luo 2022, Algorithm 4): FHA with constraints on the span of every value function.

.. math:: \min_{\pi,\, p \in \mathcal C} V^{0}_1(s) \quad\text{s.t.}\quad V^{i}_1(s) \le H \tau_i + sp,\qquad
          \max V^i_h - \min V^i_h \le 2\, sp \ \ \text{for all } h, i

The span constraints couple the states, and the problem is not convex: the regret is near-optimal, but no
polynomial-time algorithm is known. This implementation is approximate: it searches for a local solution from several
starts (SLSQP), on very small models only, and labels its episodes "approximate". The paper has a span for each cost;
here the span of the objective is bounded by the largest of those of the constraints.
"""

import math
from typing import ClassVar

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.errors import AgentError
from psconrl.learning.parts.radii import Box
from psconrl.learning.rivals.fha import FHA
from psconrl.learning.runtime.contract import Episode

MAX_STATES = 4
MAX_BLOCK = 6
STARTS = 2
SLACK = 1e-6  # SLSQP's own accuracy


class SpanFHA(FHA):
    """SpanFHA, finite-horizon approximation with span constraints; at most 4 states, approximate.

    ``H``: by default sqrt(T / (S^2 A)), at most 6. ``span``: the bounds sp_i, a number or (m,), in units of the costs;
    the largest bounds the objective. The rest is as in FHA.
    """

    name: ClassVar[str] = "span-fha"
    table_bytes: ClassVar[float] = 40.0  # counts, frequencies, radii and the planned model

    def _check_sizes(self) -> None:
        if self.n_states > MAX_STATES:
            raise AgentError(
                f"SpanFHA solves a non-convex program and takes at most {MAX_STATES} states; got {self.n_states}. "
                "Use FHA."
            )
        if self.H > MAX_BLOCK:
            raise AgentError(f"SpanFHA takes blocks of at most {MAX_BLOCK} rounds; got H = {self.H}. Use FHA.")

    def _default_block(self) -> int:
        wanted = math.ceil(math.sqrt(self.horizon / (self.n_states**2 * self.n_actions)))
        return min(MAX_BLOCK, max(1, wanted))

    def begin(self, state: int) -> Episode:
        """Return a local solution with the span constraints, or the policy of FHA if none is found."""
        relaxed = super().begin(state)
        box, costs = self._box(), self._known_or_hopeful_costs()
        found = self._search(relaxed.policy, box, costs, state)
        if found is None:
            return Episode(relaxed.policy, self.H, kind="without span", value=relaxed.value)
        policy, value = found
        return Episode(policy, self.H, kind="approximate", value=value)

    def _search(self, policy: Floats, box: Box, costs: Floats, state: int) -> tuple[Floats, float] | None:
        """Return the best of the local solutions that satisfy all constraints."""
        H, (S, A) = self.H, (self.n_states, self.n_actions)
        n_transitions, sp = S * A * S, np.broadcast_to(self.span, self.thresholds.shape)
        spans = np.concatenate([[np.max(self.span)], sp])
        middle = box.low + box.high
        middle /= middle.sum(axis=1, keepdims=True)

        def values(x: Floats) -> Floats:
            """Compute V (m+1, H, S) by backward recursion."""
            p, pi = x[:n_transitions].reshape(S, A, S), x[n_transitions:].reshape(H, S, A)
            V = np.zeros((len(costs), H + 1, S))
            for h in range(H - 1, -1, -1):
                Q = costs + np.einsum("saj,ij->isa", p, V[:, h + 1])
                V[:, h] = np.einsum("sa,isa->is", pi[h], Q)
            return V[:, :H]

        def slack(x: Floats) -> Floats:
            V = values(x)
            budget = H * self.thresholds + sp - V[1:, 0, state]
            return np.concatenate([budget, (2 * spans[:, None] - np.ptp(V, axis=2)).ravel()])

        def distributions(x: Floats) -> Floats:
            sums = (x[:n_transitions].reshape(-1, S).sum(axis=1), x[n_transitions:].reshape(-1, A).sum(axis=1))
            return np.asarray(np.concatenate(sums) - 1.0)

        from scipy.optimize import minimize  # takes longer to load than a small run

        bounds = [*zip(box.low.ravel(), box.high.ravel(), strict=True), *[(0.0, 1.0)] * (H * S * A)]
        constraints = [{"type": "ineq", "fun": slack}, {"type": "eq", "fun": distributions}]
        best: tuple[Floats, float] | None = None
        for start in range(STARTS):
            pi = policy if start == 0 else self.rng.dirichlet(np.ones(A), size=(H, S))
            x0 = np.concatenate([middle.ravel(), pi.ravel()])
            result = minimize(
                lambda x: values(x)[0, 0, state],
                x0,
                method="SLSQP",
                bounds=bounds,
                constraints=constraints,
                options={"maxiter": 60},
            )
            sound = (
                np.isfinite(result.x).all()
                and slack(result.x).min() >= -SLACK
                and abs(distributions(result.x)).max() <= SLACK
            )
            if sound and (best is None or result.fun / H < best[1]):
                found = np.maximum(result.x[n_transitions:].reshape(H, S, A), 0.0)
                best = (found / found.sum(axis=2, keepdims=True), float(result.fun) / H)
        return best
