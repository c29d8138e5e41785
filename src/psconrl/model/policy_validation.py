"""Validation of policies given by the user."""

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.errors import PolicyError
from psconrl.model.cmdp import CMDP
from psconrl.model.validation import as_floats

POLICY_TOL = 1e-9  # allowed deviation of a policy's row from a distribution


def as_policy(cmdp: CMDP, policy: ArrayLike) -> Floats:
    """Return a policy as an (S, A) array of probabilities, given such an array or one action per state.

    >>> import psconrl
    >>> as_policy(psconrl.load("counterexample"), [1, 0]).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    S, A = cmdp.n_states, cmdp.n_actions
    if hasattr(policy, "policy"):
        initially_randomised = getattr(policy, "mixture", None) is not None
        wanted = "one of its .mixture.policies, of which each run draws one" if initially_randomised else "its .policy"
        raise PolicyError(f"policy must be an array; got {type(policy).__name__}: give {wanted}")
    array = as_floats(policy, "policy", PolicyError)
    if array.shape == (S,):
        unknown = ~np.isin(array, np.arange(A))
        if unknown.any():
            s = int(unknown.argmax())
            raise PolicyError(f"policy[{s}] must be an action from 0 to {A - 1}; got {array[s]:g}")
        pi = np.zeros((S, A))
        pi[np.arange(S), array.astype(np.int64)] = 1.0
    elif array.shape == (S, A):
        pi = array.copy()
    else:
        raise PolicyError(f"policy must have shape (S,) = {(S,)} of actions or (S, A) = {(S, A)}; got {array.shape}")
    wrong = ~(np.isfinite(pi).all(axis=1) & (pi >= 0).all(axis=1) & (abs(pi.sum(axis=1) - 1) <= POLICY_TOL))
    if wrong.any():
        s = int(wrong.argmax())
        raise PolicyError(f"policy[{s}] must be a distribution; got {quoted(pi[s].tolist())}")
    if (pi[~cmdp.available] > 0).any():
        s, a = np.argwhere((pi > 0) & ~cmdp.available)[0]
        raise PolicyError(f"policy[{s}] plays action {quoted(cmdp.action_name(int(a)))}, which is not available there")
    return pi
