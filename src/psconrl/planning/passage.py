r"""How much a multichain proof may lose on the way: gains that are only almost subharmonic.

Whatever the policy, a path moves on only finitely often before it stays in one end component. Let U bound the
expected number of moves, each from one component or transient state to another:

.. math:: U(k) \ge 1 + \sum_{l \ne k} P(l|s,a)\, U(l) \Big/ \sum_{l \ne k} P(l|s,a)
          \quad\text{for every pair that may leave } k,\qquad U \ge 0.

If no such pair lowers the gains by more than r a move, the initial law does not lower them by more than
:math:`r \max U`. Counting moves instead of steps leaves out how long they are waited for.
"""

import numpy as np
from scipy.sparse import csr_array, diags_array

from psconrl.arrays import Floats, Ints
from psconrl.errors import SolverError
from psconrl.model.cmdp import CMDP
from psconrl.model.structure import EndComponent
from psconrl.model.unichain import hitting_solve

MAX_ROUNDS = 100
SWITCH_TOL = 1e-6  # U need not be the least bound


def loss(cmdp: CMDP, states: Ints, components: list[EndComponent], gains: Floats) -> float:
    """An upper bound on what gains, constant on each component, lose in mean from the given states."""
    node = np.arange(cmdp.n_states)
    for component in components:
        node[component.states] = component.states[0]
    leaving = cmdp.available.copy()
    for component in components:
        leaving.ravel()[component.pairs] = False
    pairs = np.flatnonzero(leaving.ravel() & np.repeat(np.isin(np.arange(cmdp.n_states), states), cmdp.n_actions))
    if not pairs.size or np.ptp(gains) == 0.0:
        return 0.0
    source = node[pairs // cmdp.n_actions]
    moves = csr_array(cmdp.transition)[pairs].tocoo()
    row, target = moves.coords[0], node[moves.coords[1]]
    away = target != source[row]
    law = csr_array((moves.data[away], (row[away], target[away])), shape=(pairs.size, cmdp.n_states))
    law = csr_array(diags_array(1.0 / law.sum(axis=1)) @ law)
    drop = float((gains[source] - law @ gains).max())
    rounding = cmdp.n_states * float(np.finfo(float).eps * np.ptp(gains))
    settled = np.array([component.states[0] for component in components])
    return (max(0.0, drop) + rounding) * most_moves(law, source, settled)


def most_moves(law: csr_array, source: Ints, settled: Ints) -> float:
    """The largest expected number of moves, over all policies that may stay in settled nodes; inf if not proven.

    ``law`` (pairs, nodes) is where each pair moves to, ``source`` the node that it leaves.
    """
    U = np.zeros(law.shape[1])
    choice = np.full(U.size, -1)  # the pair by which each node moves on; -1 stays
    choice[source[::-1]] = np.arange(source.size)[::-1]
    choice[settled] = -1
    for _ in range(MAX_ROUNDS):
        moving = np.flatnonzero(choice >= 0)
        rows = law[choice[moving]]
        U[:] = 0.0
        if moving.size:
            try:
                U[moving] = hitting_solve(rows[:, moving], np.ones((1, moving.size)), rows @ (choice < 0))[:, 0]
            except SolverError:
                break
        longer = 1.0 + law @ U
        switch = longer > U[source] * (1.0 + SWITCH_TOL) + SWITCH_TOL
        if not switch.any():
            # Half a move is left for rounding: the bound then still holds with twice as many.
            return 2.0 * float(U.max())
        order = np.flatnonzero(switch)[np.argsort(longer[switch], kind="stable")]
        choice[source[order]] = order
    return float("inf")
