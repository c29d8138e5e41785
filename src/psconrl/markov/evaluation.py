r"""Exact long-run evaluation of a policy whose chain may have any number of closed classes.

From the initial distribution :math:`\beta` the chain ends in one of its closed classes; in each it has a stationary
distribution :math:`\mu_k` and a gain. So the averages are :math:`\sum_k \beta_k\, \mu_k c_i`, with :math:`\beta_k` the
probability of being absorbed in class k (Puterman 1994, appendix A.4 and section 8.2).
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats, Ints
from psconrl.base.sizes import FEW_CLASSES
from psconrl.errors import SolverError
from psconrl.kernels.chains import policy_chain
from psconrl.kernels.chains.policy_evaluation import evaluated
from psconrl.markov.chain import Chain, chain_of
from psconrl.markov.gain_bias import FALLS_APART, Unichain
from psconrl.model.cmdp import CMDP, need_model
from psconrl.model.matrix_product import product
from psconrl.model.policy_validation import as_policy

BY_DISTRIBUTION = 1e-10  # relative to the mean absolute cost: gains with a larger error are taken from the distribution


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Exact long-run behaviour of one policy from the initial distribution of the model."""

    costs: Floats  # (m+1,) averages from the initial distribution
    occupancy: Floats  # (S, A) long-run frequencies from the initial distribution
    gains: Floats  # (m+1, S) averages from every state
    biases: Floats  # (m+1, S) relative costs, with stationary mean zero in every class
    classes: tuple[Ints, ...]  # the closed classes of the chain
    objective_sign: float = 1.0

    @property
    def value(self) -> float:
        """Average of the objective in the user's sense: a reward if the model was built from rewards."""
        return self.objective_sign * float(self.costs[0])


def evaluate(cmdp: CMDP, policy: ArrayLike) -> Evaluation:
    """Return the exact averages, occupancy, gains and biases of a policy.

    ``cmdp``: the model. ``policy``: (S, A) probabilities, or (S,) actions. Its chain may have several closed classes.

    >>> import psconrl
    >>> rover = psconrl.load("marsrover-4x4")
    >>> uniform = np.full((rover.n_states, rover.n_actions), 0.25)
    >>> bool(evaluate(rover, uniform).costs[0] < 1)
    True
    """
    need_model(cmdp, "evaluate")
    return evaluate_policy(cmdp, as_policy(cmdp, policy))


def evaluate_policy(cmdp: CMDP, pi: Floats) -> Evaluation:
    """Evaluate a policy (S, A) that is known to fit the model."""
    pi, dense = np.ascontiguousarray(pi), cmdp.transition.array
    sign = -1.0 if cmdp.maximise else 1.0
    if dense is None:
        return _evaluate_sparse(cmdp, pi, sign)
    try:
        costs, occupancy, gains, biases, start, members = evaluated(dense, pi, cmdp.costs, cmdp.initial)
    except ZeroDivisionError:  # a closed class is irreducible, but products of its probabilities may vanish
        raise SolverError(FALLS_APART) from None
    classes = tuple(members[first:end] for first, end in pairwise(start.tolist()))
    return Evaluation(costs, occupancy, gains, biases, classes, sign)


def _evaluate_sparse(cmdp: CMDP, pi: Floats, sign: float) -> Evaluation:
    """Evaluate a policy (S, A) of a sparse model."""
    chain = chain_of(cmdp.transition, pi)
    # Remove offsets and scales: a large offset would hide cost differences, and a huge entry all the others.
    C, base = policy_chain.mixed_costs(cmdp.costs, pi)
    classes = chain.closed_classes()
    if len(classes) > FEW_CLASSES:
        distribution, averages, gains, biases = _absorbed_in_many(chain, C, cmdp.initial)
    else:
        parts = [chain.solve_class(C, states) for states in classes]
        for states, part in zip(classes, parts, strict=True):
            _use_distribution(part, C[:, states])
        if classes[0].size == cmdp.n_states:
            distribution, averages, biases = parts[0].stationary, parts[0].gains, parts[0].centred_biases()
            gains = averages[:, None].repeat(cmdp.n_states, axis=1)
        else:
            distribution, averages, gains, biases = _absorbed(chain, C, cmdp.initial, classes, parts)
    return Evaluation(base + averages, distribution[:, None] * pi, base[:, None] + gains, biases, tuple(classes), sign)


def _use_distribution(part: Unichain, costs: Floats) -> None:
    """Recompute gains from the stationary distribution where huge costs of rarely visited states cause large errors."""
    if part.off > 0.0:
        drowned = part.off > BY_DISTRIBUTION * product(np.abs(costs), part.stationary)
        part.gains = np.where(drowned, product(costs, part.stationary), part.gains)


def _absorbed(
    chain: Chain, C: Floats, initial: Floats, classes: list[Ints], parts: list[Unichain]
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return distribution (S,), averages (q,), gains and biases (q, S) of a chain with few closed classes."""
    S = chain.n_states
    absorbed = np.zeros((S, len(classes)))
    biases = np.zeros((S, C.shape[0]))
    for k, (states, part) in enumerate(zip(classes, parts, strict=True)):
        absorbed[states, k] = 1.0
        biases[states] = part.centred_biases().T
    passing = np.flatnonzero(~absorbed.any(axis=1))
    if len(classes) == 1:
        absorbed[passing] = 1.0
    elif passing.size:
        # Probability flow from the transient states into each class.
        absorbed[passing] = chain.collect(passing, (chain @ absorbed)[passing])
        absorbed[passing] /= absorbed[passing].sum(axis=1, keepdims=True)
    gains = product(absorbed, np.array([part.gains for part in parts]))
    if passing.size:
        onward = C[:, passing].T - gains[passing] + (chain @ biases)[passing]
        try:
            biases[passing] = chain.collect(passing, onward)
        except SolverError:
            if len(classes) > 1:
                raise
            biases[passing] = np.inf  # left too rarely, but the averages are those of the only class
    share = product(initial, absorbed)
    distribution = np.zeros(S)
    for k, (states, part) in enumerate(zip(classes, parts, strict=True)):
        distribution[states] = share[k] * part.stationary
    return distribution, product(initial, gains), gains.T, biases.T


def _absorbed_in_many(chain: Chain, C: Floats, initial: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return what ``_absorbed`` returns, from visits to transient states: one number per state, not per class."""
    solved = chain.solve_classes(C)
    ended = solved.of_state >= 0
    passing = np.flatnonzero(~ended)
    gains, biases = np.zeros(C.shape), solved.biases
    gains[:, ended] = solved.gains[:, solved.of_state[ended]]
    arrivals = np.where(ended, initial, 0.0)
    if passing.size:
        into = np.vstack([gains, ended.astype(float)])
        found = chain.collect(passing, (chain @ into.T)[passing])
        gains[:, passing] = (found[:, :-1] / found[:, -1:]).T
        onward = C[:, passing].T - gains[:, passing].T + (chain @ biases.T)[passing]
        biases[:, passing] = chain.collect(passing, onward).T
        visits = np.zeros(initial.size)
        visits[passing] = chain.visits(passing, initial)
        arrivals += np.where(ended, product(visits, chain.matrix), 0.0)
    share = np.bincount(solved.of_state[ended], arrivals[ended], minlength=solved.number)
    distribution = np.zeros(initial.size)
    distribution[ended] = (share / share.sum())[solved.of_state[ended]] * solved.distribution[ended]
    return distribution, product(gains, initial), gains, biases
