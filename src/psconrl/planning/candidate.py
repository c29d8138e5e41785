"""Candidate plans: a policy and the dual point meant to prove it, as a method returns them before they are checked."""

from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.kernels.chains.occupancy import least_positive, one_hot
from psconrl.planning.tolerances import RESIDUE


class Dual(NamedTuple):
    """A dual point, which proves a bound on the objective."""

    multipliers: Floats  # (m,)
    potential: Floats  # (S,)
    low_potential: Floats  # (S,) low-order part, to be added to the potential
    gains: Floats | None  # (S,) of a multichain proof

    @classmethod
    def nothing(cls, n_states: int, n_constraints: int) -> "Dual":
        """Return the zero dual point, which proves nothing."""
        return cls(np.zeros(n_constraints), np.zeros(n_states), np.zeros(n_states), None)


class Candidate(NamedTuple):
    """The result of a method, in scaled costs, on a model whose states are all reachable."""

    feasible: bool
    occupancy: Floats  # (S, A)
    policy: Floats  # (S, A)
    dual: Dual
    columns: tuple[Ints, ...]  # deterministic policies to start a later plan from
    method: str
    note: str = ""
    shares: Floats | None = None  # of the columns, if an initial randomisation may choose among them


def without_residue(candidate: Candidate) -> Candidate | None:
    """Drop shares of actions and of mixed policies that are rounding residue; None if there are none."""
    shares, columns = candidate.shares, candidate.columns
    clean = least_positive(candidate.policy) > RESIDUE
    if clean and (shares is None or all(share > RESIDUE for share in shares.tolist())):
        return None
    if shares is not None:
        columns = tuple(column for column, share in zip(columns, shares, strict=True) if share > RESIDUE)
        shares = shares[shares > RESIDUE] / shares[shares > RESIDUE].sum()
    policy = np.where(candidate.policy > RESIDUE, candidate.policy, 0.0)
    occupancy = np.where(candidate.occupancy > RESIDUE, candidate.occupancy, 0.0)
    if shares is not None and candidate.dual.gains is None:
        # In states that only dropped policies visited, play the policy with the largest share.
        left = (occupancy.sum(axis=1) == 0) & (candidate.occupancy.sum(axis=1) > 0)
        policy[left] = one_hot(columns[int(shares.argmax())], policy.shape[1])[left]
    return candidate._replace(
        occupancy=occupancy / occupancy.sum(),
        policy=policy / policy.sum(axis=1, keepdims=True),
        columns=columns,
        shares=shares,
    )
