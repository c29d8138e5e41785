r"""What is played on a known model, evaluated exactly: the averages :math:`J_i(\pi)` that strong regret is made of.

Every policy is evaluated once, in the long run; a policy that changes with the step, and a plan that several episodes
are pieces of, by what it is expected to cost in the rounds that it was played, from the state where it began. Of an
agent that learns at every round the live policy is evaluated at rounds 0, n, 2n, ..., n a thousandth of the horizon (of
models with more than a hundred states a hundredth), and counts until the next of them: a Riemann sum.
"""

import hashlib
from typing import Any

import numpy as np

from psconrl.arrays import Floats
from psconrl.errors import SolverError
from psconrl.kernels import policy_chain
from psconrl.kernels.closed_classes import long_run
from psconrl.kernels.play import expected_averages
from psconrl.learning.checks import saved_floats
from psconrl.learning.runtime.contract import Episode
from psconrl.learning.runtime.player import Player
from psconrl.learning.runtime.stepping import Stepping
from psconrl.markov.chain import chain_of
from psconrl.markov.evaluation import evaluate_policy
from psconrl.model.cmdp import CMDP
from psconrl.simulation.trace import PolicyLog

EVALUATED_STATES = 2_000  # of models on which sweeps do this unasked: beyond, it may take half as long as planning
EVALUATIONS, FEWER = 1_000, 100  # of a policy that is alive, in a run: on small models, and on others
SMALL = 100  # states
MOST_KNOWN = 2_000_000  # numbers: averages of policies that are remembered
LONG_KEY = 4096  # bytes of a policy: longer ones are remembered by a digest
MOST_DENSE = 100  # states of a closed class of a sparse model that is solved as a dense one
NEVER = 1e-15  # actions that are less likely than this are played in no run; they would only spoil the numerics


class PolicyValues:
    """Follows a run, and keeps a log of the exact averages of what is played."""

    def __init__(self, cmdp: CMDP) -> None:
        self.cmdp = cmdp
        self.log = PolicyLog()
        self._averages = np.empty((0, len(cmdp.costs)))  # of the present entry, after 1, 2, ... rounds
        self._longer: Any = None  # the plan that the present entry is of, if that has several episodes
        self._every = 0  # rounds between two evaluations of a policy that is alive
        self._known: dict[bytes, Floats] = {}  # (m+1, S) by policy, from every state; nan where not yet asked for
        self._unknown = np.full((len(cmdp.costs), cmdp.n_states), np.nan)
        self._most_known = max(1, MOST_KNOWN // (len(cmdp.costs) * cmdp.n_states))
        self._most_dense = MOST_DENSE if cmdp.transition.is_sparse else cmdp.n_states
        P = cmdp.transition.csr()
        self._model = P.indptr, P.indices, P.data, cmdp.costs

    def begin(self, agent: Player, episode: Episode, is_new: bool, state: int, round_: int, horizon: int) -> None:
        """Open an entry, where something else is going to be played than before."""
        if isinstance(agent, Stepping):
            self._every = self._every or max(1, horizon // (EVALUATIONS if self.cmdp.n_states <= SMALL else FEWER))
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
        """How many rounds may be played before it must be asked again; None if there is no such limit."""
        return self._every - round_ % self._every if self._every else None

    def played(self, rounds: int) -> None:
        """So many rounds have been played; of a plan for several, no more counts than that."""
        self.log.length[-1] += rounds
        self.log.costs[-1] = self._averages[min(self.log.length[-1], len(self._averages)) - 1]

    def _open(self, averages: Floats) -> None:
        self._averages = averages
        self.log.length.append(0)
        self.log.costs.append(averages[0])

    def _in_the_long_run(self, policy: Floats, state: int) -> Floats:
        """The averages of a stationary policy from a state, (1, m+1); unknown where double precision cannot tell."""
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
        """Fill in the gains (m+1, S) of a state, and of others that end where it does."""
        most = self._most_dense
        played, met, ends = long_run(policy, NEVER, *self._model, state, most, gains)
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
        """For saving."""
        return {"log": self.log.state(), "averages": self._averages, "every": self._every}

    def restore(self, state: dict[str, Any], agent: Player) -> None:
        """Put back what ``state`` returned; the agent is in the midst of what it was playing."""
        q = len(self.cmdp.costs)
        self.log.restore(state["log"], q)
        self._averages = saved_floats(state["averages"], (len(state["averages"]), q), "averages")
        self._every = int(state["every"])
        if self._every < 0 or (len(self.log) > 0 and not len(self._averages)):
            raise ValueError("an evaluation that cannot be")
        self._longer = agent.longer_plan
