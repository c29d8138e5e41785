"""Policy iteration in all small end components of a model, one after the other.

For thousands of components of a few states, calls from Python would take longer than the planning.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import (
    ConstFlags,
    ConstInts,
    ConstPlaces,
    ConstVector,
    FlagMatrix,
    Flags,
    Ints,
    Matrix,
    Vector,
)
from cython.cimports.psconrl.kernels.chains.policy_chain import gather_rows
from cython.cimports.psconrl.kernels.graphs.successors import (
    check_closed,
    check_graph,
    check_lists,
    check_numbers,
)
from cython.cimports.psconrl.kernels.linear.elimination import solve_unichain
from cython.cimports.psconrl.kernels.search.drive_to_best import DriveToBest
from cython.cimports.psconrl.kernels.search.improvement import dense_rounding, improve_dense

_MAX_ROUNDS = cython.declare(cython.Py_ssize_t, 200)
_INFINITE = cython.declare(cython.double, float("inf"))


@cython.cclass
class Room:
    """Workspace for one component as a model of its own, of up to n states and A actions, and its policies.

    ``nearly_closed``: exit probability up to which a set of states counts as closed; ``same_cost``: by how much one
    such set must be cheaper than another.
    """

    P: Matrix  # (n*A, n)
    costs: Matrix  # (1, n*A)
    available: FlagMatrix  # (n, A)
    policy: Ints
    better: Ints
    rows: Ints
    chain: Matrix
    W: Matrix
    C: Matrix
    cost: Matrix
    biases: Matrix
    stationary: Vector
    difference: Vector
    gain: Vector
    one: Vector
    bound: cython.double
    drive: DriveToBest
    nearly_closed: cython.double
    same_cost: cython.double

    def __init__(
        self, n: cython.Py_ssize_t, A: cython.Py_ssize_t, nearly_closed: cython.double, same_cost: cython.double
    ):
        self.P, self.costs, self.available = np.empty((n * A, n)), np.empty((1, n * A)), np.empty((n, A), np.uint8)
        self.policy, self.better, self.rows = (np.empty(n, np.int64) for _ in range(3))
        self.chain, self.W, self.C = np.empty((n, n)), np.empty((n, n)), np.empty((n, 2))
        self.cost, self.biases, self.stationary = np.empty((1, n)), np.empty((1, n)), np.empty(n)
        self.difference, self.gain, self.one = np.empty(n), np.empty(1), np.ones(1)
        self.drive, self.nearly_closed, self.same_cost = DriveToBest(n), nearly_closed, same_cost

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def solve(self, n: cython.Py_ssize_t, reference: cython.Py_ssize_t) -> tuple[cython.Py_ssize_t, cython.double]:
        """Compute gain, bias and stationary distribution of the policy; see ``solve_unichain``."""
        A = self.available.shape[1]
        for i in range(n):
            self.rows[i] = i * A + self.policy[i]
        gather_rows(self.P[: n * A, :n], self.rows[:n], self.costs, self.chain[:n, :n], self.cost[:, :n])
        return solve_unichain(
            self.chain[:n, :n],
            self.cost[:, :n],
            reference,
            self.W[:n, :n],
            self.C[:n],
            self.gain,
            self.biases[:, :n],
            self.stationary[:n],
        )

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def howard(
        self, n: cython.Py_ssize_t, gap: cython.double, switch: cython.double, worse: cython.double
    ) -> cython.bint:
        """Replace the initial policy by the best one; return if it was found. ``bound``: least cost of any policy."""
        A = self.available.shape[1]
        reference: cython.Py_ssize_t = 0
        caution: cython.double = 1.0
        lowest: cython.double = _INFINITE
        for _ in range(_MAX_ROUNDS):
            found, slowest = self.solve(n, reference)
            if slowest < self.nearly_closed:
                self.drive.lead(
                    self.P[: n * A, :n], self.chain[:n, :n], self.cost[:, :n], self.one, self.available[:n],
                    self.policy[:n], reference, self.nearly_closed, self.same_cost,
                )  # fmt: skip
                found, slowest = self.solve(n, max(found, 0))
            if found < 0:
                return False
            reference = found
            gain = self.gain[0]
            if gain > lowest + worse:
                caution *= 100.0  # the switch made things worse: rounding
            lowest = min(lowest, gain)
            h: ConstVector = self.biases[0, :n]
            bound, switched = improve_dense(
                self.P[: n * A, :n], self.costs, self.one, self.available[:n], self.policy[:n], h, caution * switch,
                self.difference[:n], self.better[:n],
            )  # fmt: skip
            self.bound = bound - dense_rounding(self.P[: n * A, :n], h, self.difference[:n])
            if gain - self.bound <= gap:
                return True
            if switched == 0:
                return False
            for i in range(n):
                self.policy[i] = self.better[i]
        return False


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fill(
    room: Room,
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    cost: ConstVector,
    inside: ConstFlags,
    states: ConstInts,
    place: Ints,
    policy: ConstInts,
) -> cython.void:
    """Fill in the component of these states."""
    n, A = states.shape[0], room.available.shape[1]
    for i in range(n):
        place[states[i]] = i
    for i in range(n):
        s: cython.Py_ssize_t = states[i]
        room.policy[i] = policy[s]
        for a in range(A):
            p = s * A + a
            k = i * A + a
            room.available[i, a] = inside[p]
            room.costs[0, k] = cost[p] if inside[p] else 0.0
            for j in range(n):
                room.P[k, j] = 0.0
            if inside[p]:
                for e in range(indptr[p], indptr[p + 1]):
                    if data[e] > 0.0:
                        room.P[k, place[indices[e]]] += data[e]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _stay(
    s: cython.Py_ssize_t, A: cython.Py_ssize_t, cost: ConstVector, inside: ConstFlags, policy: Ints
) -> cython.double:
    """Return the least cost of staying in a component of one state; its action is put into the policy."""
    best: cython.double = _INFINITE
    for a in range(A):
        if inside[s * A + a] and cost[s * A + a] < best:
            best = cost[s * A + a]
            policy[s] = a
    return best


def plan_small(
    room: Room,
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    cost: ConstVector,
    inside: ConstFlags,
    start: ConstInts,
    members: ConstInts,
    policy: Ints,
    bounds: Vector,
    potential: Vector,
    stationary: Vector,
    gap: cython.double,
    switch: cython.double,
    worse: cython.double,
):
    """Find the cheapest policy in each component that fits, from the one given; return which are done, (K,).

    ``cost`` (S*A,) and ``inside`` (S*A,) of every pair; ``members[start[k] : start[k + 1]]`` are the states of
    component k. Filled in: policy (S,), a lower bound on the cost of every policy, ``bounds`` (K,), the bias that
    proves it, ``potential`` (S,), and the stationary distribution (S,). A component is done if its cost is at most
    ``gap`` above its bound; a ``switch`` of actions must gain something, and a policy may seem ``worse`` by some
    rounding.
    """
    S, K = policy.shape[0], bounds.shape[0]
    if S == 0 or cost.shape[0] % S:
        raise ValueError("a cost of every pair is needed")
    A = cost.shape[0] // S
    fits: cython.bint = room.available.shape[1] == A and indptr.shape[0] == S * A + 1 and inside.shape[0] == S * A
    if not fits or potential.shape[0] != S or stationary.shape[0] != S:
        raise ValueError("the numbers of states and pairs must be those of one model")
    if start.shape[0] != K + 1:
        raise ValueError("the states of every component are needed")
    check_graph(indptr, indices, data.shape[0], S)
    check_lists(start, members, S)
    check_closed(indptr, indices, data, inside, start, members, S)
    check_numbers(policy, A, "there is no such action")
    finished, places = np.zeros(K, np.bool_), np.empty(S, np.int64)
    done: Flags = finished
    place: Ints = places
    states: ConstInts
    with cython.nogil:
        for k in range(K):
            n: cython.Py_ssize_t = start[k + 1] - start[k]
            if n > room.rows.shape[0]:
                continue
            states = members[start[k] : start[k + 1]]
            if n == 1:
                bounds[k] = _stay(states[0], A, cost, inside, policy)
                potential[states[0]], stationary[states[0]], done[k] = 0.0, 1.0, True
                continue
            _fill(room, indptr, indices, data, cost, inside, states, place, policy)
            if room.howard(n, gap, switch, worse):
                done[k], bounds[k] = True, room.bound
                for i in range(n):
                    s: cython.Py_ssize_t = states[i]
                    policy[s], potential[s], stationary[s] = room.policy[i], room.biases[0, i], room.stationary[i]
    return finished
