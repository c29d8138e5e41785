"""Random CMDPs: Garnets, and draws from a Dirichlet prior, on which Bayesian regret is defined."""

import numpy as np
from scipy.sparse import csr_array

from psconrl.errors import ModelError
from psconrl.limits import need_dense
from psconrl.model.chain import evaluate
from psconrl.model.cmdp import CMDP
from psconrl.model.structure import is_communicating

MAX_DRAWS = 1000


def garnet(
    states: int = 20,
    actions: int = 3,
    branching: int = 4,
    constraints: int = 1,
    slack: float = 0.1,
    sparse: bool = False,
    seed: int = 0,
) -> CMDP:
    """A Garnet: from every pair ``branching`` random successors with random probabilities, uniform costs.

    Drawn again until it is communicating. The thresholds lie ``slack`` below the averages of the uniform policy.

    >>> garnet(seed=1)
    CMDP(20 states, 3 actions, 1 constraint, dense)
    """
    S, A, B = int(states), int(actions), int(branching)
    if not 1 <= B <= S or A < 1:
        raise ModelError(f"branching must lie between 1 and states = {S}, actions be at least 1; got {B} and {A}")
    need_dense(S, A)
    rng = np.random.default_rng(int(seed))
    for _ in range(MAX_DRAWS):
        successors = np.argpartition(rng.random((S * A, S)), B - 1, axis=1)[:, :B]
        weights = rng.dirichlet(np.ones(B), size=S * A)
        rows = np.repeat(np.arange(S * A), B)
        P = csr_array((weights.ravel(), (rows, successors.ravel())), shape=(S * A, S))
        cmdp = _with_limits(P if sparse else P.toarray(), rng.random((int(constraints) + 1, S, A)), slack)
        if is_communicating(cmdp):
            return cmdp
    raise ModelError(f"no communicating Garnet in {MAX_DRAWS} draws; raise branching (now {B})")


def dirichlet_cmdp(
    states: int = 10, actions: int = 3, prior: float = 0.1, constraints: int = 1, slack: float = 0.1, seed: int = 0
) -> CMDP:
    """Transitions drawn from Dirichlet(prior), uniform costs: a model from the very prior of a learner.

    >>> dirichlet_cmdp(seed=1)
    CMDP(10 states, 3 actions, 1 constraint, dense)
    """
    if not prior > 0 or states < 1 or actions < 1:
        raise ModelError(f"prior, states and actions must be positive; got {prior}, {states}, {actions}")
    rng = np.random.default_rng(int(seed))
    S, A = int(states), int(actions)
    need_dense(S, A)
    P = rng.dirichlet(np.full(S, prior), size=S * A)
    return _with_limits(P, rng.random((int(constraints) + 1, S, A)), slack)


def _with_limits(P: object, costs: np.ndarray, slack: float) -> CMDP:
    m = len(costs) - 1
    cmdp = CMDP(P, costs, np.zeros(m))
    uniform = np.full(costs.shape[1:], 1.0 / costs.shape[2])
    return cmdp.with_thresholds(evaluate(cmdp, uniform).costs[1:] - slack)
