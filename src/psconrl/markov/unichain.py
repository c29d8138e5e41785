"""Whether every deterministic policy of a model has a single closed class."""

import itertools
import math

import numpy as np

from psconrl.base.sizes import ENUMERATED_POLICIES
from psconrl.markov.chain import chain_of
from psconrl.markov.structure import end_components
from psconrl.model.cmdp import CMDP


def is_unichain(cmdp: CMDP) -> bool | None:
    """True if every deterministic policy has a single closed class; None if that could not be decided.

    Two end components that share no state refute it; a state that no end component avoids proves it. In between the
    question is NP-hard, and small models are decided by trying all policies.
    """
    if len(end_components(cmdp)) > 1:
        return False
    for r in range(cmdp.n_states):
        rest = end_components(cmdp, without=np.array([r]))
        if not rest:
            return True
        if len(rest) > 1 or end_components(cmdp, without=rest[0].states):
            return False
    choices = [np.flatnonzero(mask) for mask in cmdp.available]
    if math.prod(c.size for c in choices) > ENUMERATED_POLICIES:
        return None
    return all(
        len(chain_of(cmdp.transition, np.array(actions)).closed_classes()) == 1
        for actions in itertools.product(*choices)
    )
