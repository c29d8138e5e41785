"""GTH elimination in a fixed order against SciPy's ``splu``: ``python benchmarks/elimination.py [--largest 100000]``.

Both compute gains, biases and the stationary distribution of sparse chains. A learning loop solves thousands of chains
with the same sparsity pattern: the order is computed once for all of them, ``splu`` orders and factorises each chain
again. ``splu`` gets its best case: a diagonal without cancellation, the symmetric ordering, no pivoting, the busiest
state as the reference, and one step of refinement.

Accuracy is entry by entry, so that a probability of 1e-200 counts as much as one of 0.1. *Balance*: the largest
difference between the flow into and out of a state, relative to the flow. *Error*: the largest relative error, where
the distribution has a closed form. Memory: of the order and the factors, or of the LU factors.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, diags_array
from scipy.sparse.linalg import splu

from psconrl.base.arrays import in_32_bits
from psconrl.kernels.linear.sparse_elimination import unichain
from psconrl.markov.elimination_order import Order, order_for

MOST_WORK = 5e9  # multiplications; beyond, neither method is timed
SMALLEST = 1e-290  # probabilities below may be subnormal
REPEATS = 3


def chain(n: int, moves: list[tuple[Any, Any, Any]]) -> csr_array:
    """Return the chain with these moves (from, to, probability); the rest of the probability stays."""
    start, end, p = (np.concatenate([np.broadcast_to(move[i], np.shape(move[0])) for move in moves]) for i in range(3))
    P = csr_array((p, (start, end)), shape=(n, n))
    return in_32_bits(csr_array(P + diags_array(1.0 - np.asarray(P.sum(axis=1)).ravel())))


def queue(n: int) -> tuple[csr_array, np.ndarray | None]:
    """One queue; the last of its states has about 1e-250 times the mass of the first."""
    busy = 10.0 ** (-250.0 / n)
    s, up, down = np.arange(n), 0.4 * busy, 0.4
    return chain(n, [(s[:-1], s[1:], up), (s[1:], s[:-1], down)]), _geometric(up / down, n)


def two_queues(n: int) -> tuple[csr_array, np.ndarray | None]:
    """Two independent queues; in each, the last state has about 1e-100 times the mass of the first."""
    m = round(n**0.5)
    s = np.arange(m * m).reshape(m, m)
    up, down = 0.2 * 10.0 ** (-100.0 / m), 0.2
    moves = [
        *((s[:-1].ravel(), s[1:].ravel(), up), (s[1:].ravel(), s[:-1].ravel(), down)),
        *((s[:, :-1].ravel(), s[:, 1:].ravel(), up), (s[:, 1:].ravel(), s[:, :-1].ravel(), down)),
    ]
    one = _geometric(up / down, m)
    return chain(m * m, moves), np.outer(one, one).ravel()


def tandem(n: int) -> tuple[csr_array, np.ndarray | None]:
    """Two stations in series; arrivals at a full one are lost, and the first waits while the second is full."""
    m = round(n**0.5)
    s = np.arange(m * m).reshape(m, m)
    moves = [
        (s[:-1].ravel(), s[1:].ravel(), 0.2),
        (s[1:, :-1].ravel(), s[:-1, 1:].ravel(), 0.45),
        (s[:, 1:].ravel(), s[:, :-1].ravel(), 0.35),
    ]
    return chain(m * m, moves), None


def two_rooms(n: int) -> tuple[csr_array, np.ndarray | None]:
    """Two square rooms with a door that is used once in 1e12 rounds, or in 5e11 from the other side."""
    m = round((n / 2) ** 0.5)
    rooms = np.arange(2 * m * m).reshape(2, m, m)
    moves = []
    for s in rooms:
        for one, other in ((s[:-1], s[1:]), (s[:, :-1], s[:, 1:])):
            moves += [(one.ravel(), other.ravel(), 0.2), (other.ravel(), one.ravel(), 0.2)]
    door, beyond = rooms[0, -1:, -1], rooms[1, :1, 0]
    moves += [(door, beyond, 1e-12), (beyond, door, 2e-12)]
    mass = np.repeat(np.array([2, 1], dtype=np.longdouble), m * m)
    return chain(rooms.size, moves), mass / mass.sum()


def random_sparse(n: int) -> tuple[csr_array, np.ndarray | None]:
    """Four random successors of every state."""
    rng = np.random.default_rng(0)
    start = np.repeat(np.arange(n), 4)
    p = rng.dirichlet(np.ones(4), size=n).ravel() * 0.9
    return chain(n, [(start, rng.integers(0, n, 4 * n), p), (np.arange(n), np.roll(np.arange(n), 1), 0.05)]), None


def _geometric(ratio: float, n: int) -> np.ndarray:
    mass = ratio ** np.arange(n, dtype=np.longdouble)
    return mass / mass.sum()


def by_order(P: csr_array, costs: np.ndarray, reference: int, order: Order) -> np.ndarray:
    stuck, *_, stationary = unichain(P.indptr, P.indices, P.data, np.arange(P.shape[0]), costs, reference, 0.0, order)
    assert stuck < 0
    return stationary


def by_splu(P: csr_array, costs: np.ndarray, reference: int) -> tuple[np.ndarray, int, float]:
    """Return the stationary distribution, the bytes of the factors and the seconds of the factorisation alone.

    Gains and biases are computed, too.
    """
    n = P.shape[0]
    others = np.delete(np.arange(n), reference)
    inside, back = P[others][:, others], P[others][:, [reference]].toarray().ravel()
    moves = csr_array(inside - diags_array(inside.diagonal()))
    system = csc_array(diags_array(back + np.asarray(moves.sum(axis=1)).ravel()) - moves)
    start = time.perf_counter()
    lu = splu(system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    alone = time.perf_counter() - start
    right = np.vstack([costs[:, others], np.ones(n - 1)]).T
    u = lu.solve(right)
    u += lu.solve(right - system @ u)
    leave = P[[reference]][:, others].toarray().ravel()
    cycle = np.append(costs[:, reference], 1.0) + leave @ u
    _biases = u[:, :-1] - np.outer(u[:, -1], cycle[:-1] / cycle[-1])
    mass = lu.solve(leave, trans="T")
    mass += lu.solve(leave - system.T @ mass, trans="T")
    stationary = np.insert(mass, reference, 1.0)
    return stationary / stationary.sum(), 12 * lu.nnz, alone


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Return the median time of a call, and the result of that call."""
    runs = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        result = action()
        runs.append((time.perf_counter() - start, result))
    return sorted(runs, key=lambda run: run[0])[REPEATS // 2]


def accuracy(P: csr_array, found: np.ndarray, exact: np.ndarray | None) -> str:
    """Return balance and error."""
    moves = csr_array(P - diags_array(P.diagonal()))
    out = found * np.asarray(moves.sum(axis=1)).ravel()
    into = found @ moves
    large = np.maximum(np.abs(out), np.abs(into)) > SMALLEST
    balance = np.max(np.abs(into - out)[large] / np.maximum(np.abs(out), np.abs(into))[large])
    if exact is None:
        return f"{balance:.0e} | "
    large = exact > SMALLEST
    return f"{balance:.0e} | {float(np.max(np.abs(found - exact)[large] / exact[large])):.0e}"


def row(name: str, P: csr_array, exact: np.ndarray | None) -> str:
    n = P.shape[0]
    costs = np.random.default_rng(1).random((2, n))
    ordering, order = timed(lambda: order_for(P.indptr, P.indices, n, MOST_WORK))
    if not order.position.size:
        return f"| {name} | {n:,} | fills in | | | | | | | | | |"
    reference = int(by_order(P, costs, 0, order).argmax())
    eliminating, found = timed(lambda: by_order(P, costs, reference, order))
    bytes_ = sum(part.nbytes for part in order[:-1]) + 8 * (order.before.size + order.after.size)
    factorising, (rival, rival_bytes, alone) = timed(lambda: by_splu(P, costs, reference))
    return (
        f"| {name} | {n:,} | {1e3 * ordering:,.1f} | {1e3 * eliminating:,.1f} | "
        f"{1e3 * factorising:,.1f} | {1e3 * alone:,.1f} | "
        f"{factorising / eliminating:.1f} | {accuracy(P, found, exact)} | {accuracy(P, rival, exact)} | "
        f"{bytes_ / 2**20:,.1f} | {rival_bytes / 2**20:,.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=100_000)
    largest = parser.parse_args().largest
    print(
        "| chain | states | order, once, ms | GTH, ms | splu with solves, ms | factorisation alone, ms | ratio "
        "| GTH: balance | error | splu: balance | error | GTH, MiB | splu, MiB |"
    )
    print("|---" * 13 + "|")
    for make in (queue, two_queues, tandem, two_rooms, random_sparse):
        for n in (1_000, 10_000, 100_000):
            if n <= largest:
                print(row(make.__name__.replace("_", " "), *make(n)), flush=True)


if __name__ == "__main__":
    main()
