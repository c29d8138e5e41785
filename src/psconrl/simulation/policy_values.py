r"""Exact evaluation of the policies played on a known model: the averages :math:`J_i(\pi)` used by strong regret.

Every stationary policy is evaluated once, by its long-run averages. A policy that changes with the step, or a plan that
spans several episodes, is evaluated by its expected costs in the rounds in which it was played, from the state where it
began. For an agent that learns at every round, the present policy is evaluated at rounds 0, n, 2n, ..., where n is a
thousandth of the horizon (a hundredth for models with more than a hundred states), and counts until the next
evaluation: a Riemann sum.
"""

import hashlib
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.saved_fields import integer, need_that, read_fields, reals
from psconrl.base.sizes import DENSE_PLAYED_CLASS_STATES, OFTEN_EVALUATED_STATES
from psconrl.errors import SolverError
from psconrl.kernels.chains import policy_chain
from psconrl.kernels.chains.small_classes import long_run
from psconrl.kernels.play.play_loop import expected_averages
from psconrl.learning.runtime.contract import Episode
from psconrl.learning.runtime.player import Player
from psconrl.learning.runtime.stepping import Stepping
from psconrl.markov.chain import chain_of
from psconrl.markov.evaluation import evaluate_policy
from psconrl.model.cmdp import CMDP
from psconrl.simulation.trace import PolicyLog

EVALUATIONS, FEWER = 1_000, 100  # evaluations per run of a policy updated every round: small models, and others
MOST_KNOWN = 2_000_000  # numbers in the cache of policies' averages
LONG_KEY = 4096  # bytes of a policy; longer ones are cached by a digest
NEVER_PLAYED = 1e-15  # actions less likely than this are played in no run, and would only harm the numerics


class PolicyValues:
    """Follows a run, and keeps a log of the exact averages of the policies played."""

    def __init__(self, cmdp: CMDP) -> None:
        self.cmdp = cmdp
        self.log = PolicyLog()
        self._averages = np.empty((0, len(cmdp.costs)))  # of the present entry, after 1, 2, ... rounds
        self._longer: Any = None  # the plan of the present entry, if it spans several episodes
        self._every = 0  # rounds between two evaluations of a policy updated every round
        self._known: dict[bytes, Floats] = {}  # (m+1, S) by policy, from every state; nan where not yet computed
        self._unknown = np.full((len(cmdp.costs), cmdp.n_states), np.nan)
        self._most_known = max(1, MOST_KNOWN // (len(cmdp.costs) * cmdp.n_states))
        self._most_dense = cmdp.n_states if cmdp.transition.eliminates else DENSE_PLAYED_CLASS_STATES
        P = cmdp.transition.csr()
        self._model = P.indptr, P.indices, P.data, cmdp.costs

    def begin(self, agent: Player, episode: Episode, is_new: bool, state: int, round_: int, horizon: int) -> None:
        """Open an entry if a new policy or plan is about to be played."""
        if isinstance(agent, Stepping):
            evaluations = EVALUATIONS if self.cmdp.n_states <= OFTEN_EVALUATED_STATES else FEWER
            self._every = self._every or max(1, horizon // evaluations)
            if round_ % self._every == 0:
                self._open(self._in_the_long_run(agent.policy, state))
        elif is_new:
            longer, before = agent.longer_plan, self._longer
            self._longer = longer
            if longer is not None:
                if longer is not before:
                    self._open(longer.averages(*self._model, state))
            elif episode.policy.ndim == 3:
                self._open(expected_averages(episode.policy, *self._model, state))
            else:
                self._open(self._in_the_long_run(episode.policy, state))

    def room(self, round_: int) -> int | None:
        """Return how many rounds may be played before the next call of ``begin``; None if there is no such limit."""
        return self._every - round_ % self._every if self._every else None

    def played(self, rounds: int) -> None:
        """Count rounds played. A plan for several rounds is evaluated over the rounds played so far."""
        self.log.length[-1] += rounds
        self.log.costs[-1] = self._averages[min(self.log.length[-1], len(self._averages)) - 1]

    def _open(self, averages: Floats) -> None:
        self._averages = averages
        self.log.length.append(0)
        self.log.costs.append(averages[0])

    def _in_the_long_run(self, policy: Floats, state: int) -> Floats:
        """Return the averages of a stationary policy from a state, (1, m+1); nan if they cannot be computed."""
        key = policy.tobytes()
        if len(key) > LONG_KEY:
            key = hashlib.blake2b(key, digest_size=16).digest()
        gains = self._known.get(key)
        if gains is None:
            if len(self._known) >= self._most_known:
                del self._known[next(iter(self._known))]
            gains = self._known[key] = self._unknown.copy()
        if gains[0, state] != gains[0, state]:  # unknown
            self._evaluate(policy, state, gains)
        return gains[None, :, state]

    def _evaluate(self, policy: Floats, state: int, gains: Floats) -> None:
        """Fill in the gains (m+1, S) of a state, and of others that reach the same closed class."""
        most = self._most_dense
        played, met, ends = long_run(policy, NEVER_PLAYED, *self._model, state, most, gains)
        if 0 < ends.size <= most:
            return
        try:
            if ends.size:
                costs, base = policy_chain.mixed_costs(self.cmdp.costs, played)
                part = chain_of(self.cmdp.transition, played).solve_class(costs, ends)
                gains[:, met] = (base + part.gains)[:, None]
            else:
                gains[:] = evaluate_policy(self.cmdp, played).gains
        except SolverError:
            return

    def state(self) -> dict[str, Any]:
        """Return what to save."""
        return {"log": self.log.state(), "averages": self._averages, "every": self._every}

    def restore(self, state: dict[str, Any], agent: Player) -> None:
        """Put back what ``state`` returned; the agent is in the middle of an episode or plan."""
        q = len(self.cmdp.costs)
        averages = reals((None, q), unknown=True)
        log = {"log": lambda saved: self.log.restore(saved, q)}
        self._averages, self._every, _ = read_fields(state, {"averages": averages, "every": integer()} | log).values()
        need_that(len(self._averages) or not len(self.log), "averages must not be empty")
        self._longer = agent.longer_plan
