r"""The inequalities of docs/theorems-further.md in numbers: ``python benchmarks/theorems_further.py``.

As in ``theorems.py``, a ratio above 1 refutes an inequality, and a ratio below 1 does not prove it. Expectations are
exact: linear systems and recursions, distributions on a lattice, and dynamic programming with the account in the state.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

from itertools import product
from math import asinh, ceil, cosh, e, exp, isqrt, log, log2, sqrt
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

import psconrl
from theorems import confidence_constant, epochs_bound, extended_optimum, largest, optimistic_rows, tilt_function

# --- Lemma 5: stages


def root_above(n: int) -> int:
    """Return the root of n, rounded up, by whole numbers."""
    return isqrt(n - 1) + 1 if n else 0


def stage_ratios(epochs: list[int]) -> dict[str, float]:
    """Return the sum of L_n and the number of stages of epochs of these lengths, relative to their bounds."""
    total, stages = 0, 0
    for rounds in epochs:
        n, left = 1, rounds
        while left > 0:
            total, stages, left, n = total + root_above(n), stages + 1, left - n, 2 * n
    T, K = sum(epochs), len(epochs)
    return {"5: sum of L_n": total / (3.5 * sqrt(K * T)), "5: number of stages": stages / (K * (1 + log2(T)))}


# --- Lemma 8: tracking


class Chain(NamedTuple):
    """A chain with a stationary distribution, which need not be the only one, and d costs of its states."""

    P: np.ndarray
    mu: np.ndarray
    costs: np.ndarray  # (states, d)


def islands(leak: float) -> Chain:
    """Return two states that are left with the probability ``leak``; each has one of the two costs."""
    return Chain(np.array([[1 - leak, leak], [leak, 1 - leak]]), np.full(2, 0.5), np.eye(2))


def drawn_chain(rng: np.random.Generator) -> Chain:
    """Return a chain of two to five states, which may be nearly decomposable or have nearly parallel costs."""
    S = int(rng.integers(2, 6))
    weights = rng.dirichlet(np.full(S, 0.4), size=S) + 1e-3
    flow = weights + weights.T
    mu = flow.sum(axis=1) / flow.sum()
    slow = 10.0 ** rng.uniform(-4, 0)
    costs = np.where(rng.random((S, 2)) < 0.5, rng.integers(0, 2, (S, 2)), rng.random((S, 2)))
    if rng.random() < 0.4:
        costs[:, 1] = 0.99 * costs[:, 0] + 0.01 * costs[:, 1]
    return Chain(slow * flow / flow.sum(axis=1, keepdims=True) + (1 - slow) * np.eye(S), mu, costs)


def segment_means(chain: Chain, L: int) -> tuple[np.ndarray, np.ndarray]:
    """Return v, the costs less their averages, and u_k(s) for k = 0, ..., L."""
    v = chain.costs - chain.mu @ chain.costs
    u = np.zeros((L + 1, *v.shape))
    for k in range(L):
        u[k + 1] = v + chain.P @ u[k]
    return v, u


def second_moments(chain: Chain, x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return E[(sum of x)^2] over k rounds from every state, for all k."""
    found = np.zeros((len(u), len(x)))
    for k in range(1, len(u)):
        found[k] = x**2 + 2 * x * (chain.P @ u[k - 1]) + chain.P @ found[k - 1]
    return found


def segment_ratio(chain: Chain, axis: np.ndarray, L: int) -> float:
    """Return the largest ratio of "drift bounds noise", for a fixed number of rounds and one direction."""
    v, u = segment_means(chain, L)
    x, means = v @ axis, u @ axis
    X, moments = np.abs(x).max(), second_moments(chain, x, means) @ chain.mu
    drift = np.cumsum(np.abs(means) @ chain.mu)
    bounds = [k * X**2 + 2 * X * drift[k - 1] for k in range(1, L + 1)]
    return float((moments[1:] / bounds).max()) if X > 0 else 0.0


def outer_ellipse(points: np.ndarray) -> np.ndarray:
    """Return C such that x' C^-1 x <= 1 for all points, and C nearly the smallest (Khachiyan's algorithm)."""
    n, d = points.shape
    weights = np.full(n, 1.0 / n)
    for _ in range(3_000):
        C = points.T @ (points * weights[:, None])
        lengths = np.einsum("ij,jk,ik->i", points, np.linalg.inv(C), points)
        j = int(lengths.argmax())
        if lengths[j] <= d * (1 + 1e-3):
            break
        step = (lengths[j] / d - 1) / (lengths[j] - 1)
        weights *= 1 - step
        weights[j] += step
    return C * lengths.max()


def axes_of(generators: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the axes e_i, as columns, and r_i of the set of means, two-dimensional, with r_i smaller by 1e-3."""
    _, sizes, V = np.linalg.svd(generators, full_matrices=False)
    if sizes[1] < 1e-9 * sizes[0]:  # the set is a segment
        return V.T, np.array([np.abs(generators @ V[0]).sum(), 0.0]) * (1 - 1e-3)
    scaled = generators @ (V.T / sizes)
    angles = np.linspace(0, np.pi, 400)
    signs = np.sign(np.stack([np.cos(angles), np.sin(angles)], axis=1) @ scaled.T)
    C = outer_ellipse(np.unique(np.round(signs @ scaled, 12), axis=0))
    back = sizes[:, None] * V
    squares, axes = np.linalg.eigh(back.T @ C @ back)
    return axes, np.sqrt(squares / 2) * (1 - 2e-3)


def lap_ratios(chain: Chain, L: int, heights: tuple[float, ...] = (0.01, 0.3, 3.0)) -> dict[str, float]:
    """Return the ratios of a lap with two costs, for all signs of y: axes, mean, second moment and change of cosh."""
    d, S = 2, len(chain.mu)
    R = 9 * d**1.5 * L
    v, u = segment_means(chain, L)
    generators = (u * chain.mu[None, :, None] / (L + 1)).reshape(-1, d)
    if np.abs(generators).max() < 1e-12:
        return {}
    E, r = axes_of(generators)
    sizes = np.abs(generators @ E).sum(axis=0)
    inside = r > 1e-9 * r.max()
    ratios = {"8: alpha <= sqrt(d) r": float((sizes[inside] / (sqrt(d) * r[inside])).max()),
              "8: r <= sqrt(d) L / 2": float(r.max() / (sqrt(d) * L / 2)),
              "8: mean of a lap": 0.0, "8: second moment of a lap": 0.0,
              "8: change of cosh in a lap": -np.inf}  # fmt: skip
    moments = [second_moments(chain, v @ E[:, i], u @ E[:, i]) for i in range(d)]
    for signs in product((1, -1), repeat=d):
        target = -E @ (np.array(signs) * r) / sqrt(d)
        scale = np.abs(generators).max()
        found = linprog(np.zeros(len(generators)), A_eq=generators.T / scale, b_eq=target / scale, bounds=(-1, 1))
        if found.status:
            return {**ratios, "8: mean of a lap": np.inf}
        psi = found.x.reshape(L + 1, S)
        nu = chain.mu * (1 + 0.5 * psi - 0.5 * (psi @ chain.mu)[:, None])
        first = np.einsum("ks,ksd->kd", nu, u)
        error = np.abs((first + first[::-1]).mean(axis=0) - target).max()
        ratios["8: mean of a lap"] = max(ratios["8: mean of a lap"], float(1 + error / np.abs(target).max()))
        for i in range(d):
            second, mean = np.einsum("ks,ks->k", nu, moments[i]), first @ E[:, i]
            both = float((second + second[::-1] + 2 * mean * mean[::-1]).mean())
            key = "8: second moment of a lap"
            ratios[key] = max(ratios[key], both / (4 * d * L + 16 * d * L * r[i]))
            for height in heights:
                change = cosh_after_a_lap(chain, v @ E[:, i] / R, nu, signs[i] * height) - cosh(height)
                bound = 0.0262 / (d * d * L) * cosh(height) + 0.0523 / d**1.5
                ratios["8: change of cosh in a lap"] = max(ratios["8: change of cosh in a lap"], change / bound)
    return ratios


def cosh_after_a_lap(chain: Chain, x: np.ndarray, nu: np.ndarray, y: float) -> float:
    """Return E cosh(y + sum of x) over the two segments of a lap, from the moment generating functions."""
    total = 0.0
    for sign in (1, -1):
        weight, M, segments = np.exp(sign * x), np.ones(len(x)), []
        for k in range(len(nu)):
            segments.append(float(nu[k] @ M))
            M = weight * (chain.P @ M)
        total += 0.5 * exp(sign * y) * float(np.mean(np.array(segments) * segments[::-1]))
    return total


# --- Theorem 6: the exponential supermartingales


def potential(V: np.ndarray, L: int, price: float) -> np.ndarray:
    """Return Psi(V) in closed form."""
    cap = np.where(V >= 0, 1.0 + price, price)
    inner = np.minimum(np.abs(V), 8 * L * np.arcsinh(cap * L))
    return 8 * (np.cosh(inner / (8 * L)) - 1) + cap * (np.abs(V) - inner)


def path_ratio(L: int, price: float, V: float) -> float:
    """Return the largest ratio of Psi(V + Delta) - Psi(V) - f Delta to g over |Delta| <= L."""
    f, changes = tilt_function(V, L, price), np.linspace(-L, L, 81)
    changes = changes[changes != 0]
    g = exp(1 / 8) / (16 * L) * (abs(f) + 1 / L) * changes**2
    rise = potential(V + changes, L, price) - potential(np.array([V]), L, price) - f * changes
    return float((rise / g).max())


class Sum(NamedTuple):
    """The exact distribution of the sum of c - tau in an episode, and bounds on means until and from any time."""

    values: np.ndarray
    probabilities: np.ndarray  # (states, values)
    largest_mean: float  # of f times the sum, over initial states and lengths


def drawn_sum(rng: np.random.Generator, L: int, f: float, noisy: bool) -> Sum:
    """Return the sum over L rounds of a random chain; a noisy cost may depend on the next state."""
    S, grid = int(rng.integers(2, 5)), 4
    P = rng.dirichlet(np.full(S, 0.3), size=S)
    if rng.random() < 0.5:
        P = 0.05 * P + 0.95 * np.eye(S)
    tau, costs = int(rng.integers(0, grid + 1)), rng.integers(0, grid + 1, size=S)
    high = rng.random((S, S)) if rng.random() < 0.7 else np.full((S, S), tau / grid)
    width = grid * L
    values = np.arange(-width, width + 1) / grid
    D, mean = np.zeros((S, 2 * width + 1)), 0.0
    D[:, width] = 1
    for _ in range(L):
        before, D = D, np.zeros_like(D)
        for s, t in np.ndindex(S, S):
            moved = (high[s, t] * np.roll(before[t], grid - tau) + (1 - high[s, t]) * np.roll(before[t], -tau)
                     if noisy else np.roll(before[t], costs[s] - tau))  # fmt: skip
            D[s] += P[s, t] * moved
        mean = max(mean, float((f * D @ values).max()))
    return Sum(values, D, mean)


def exponential_ratios(rng: np.random.Generator) -> dict[str, float]:
    """Return the two means of exponentials of one episode, less their compensators, with the least b that is valid.

    A supermartingale has at most 1. The ratio of (5) is that of its left side to its right side.
    """
    L, f = int(rng.integers(1, 25)), float(rng.uniform(-3, 3))
    noisy = bool(rng.random() < 0.5)
    found = drawn_sum(rng, L, f, noisy)
    b = found.largest_mean + (abs(f) if noisy else 0.0)
    x = f * found.values
    mean, second = found.probabilities @ x, found.probabilities @ x**2
    falls, a = np.maximum(0.0, -mean), abs(f) * L
    eta, variances = 1 / (8 * a), a * (6 * b + 2 * falls)
    tilted = (found.probabilities * np.exp(eta * (x - mean[:, None]))).sum(axis=1)
    g = exp(1 / 8) / (16 * L) * (abs(f) + 1 / L) * found.values**2
    top, least = 0.0709 * L * (abs(f) + 1 / L), max(b, 0.15 / 0.85)
    squares = (found.probabilities * np.exp(g / top)).sum(axis=1)
    return {
        "6: (5)": float((second / variances).max()) if b > 1e-9 else 0.0,
        "6: exponential of M": float((tilted * np.exp(-(e - 2) * eta**2 * variances)).max()),
        "6: exponential of Q": float((squares * np.exp(-(e - 1) * (0.85 * least + 0.29 * falls) / top)).max()),
    }


def noisy_moment_ratios(rng: np.random.Generator) -> dict[str, float]:
    """Return the ratio of the lemma of step 3 with random costs, with b and with the additional a of Proposition 10."""
    L, f = int(rng.integers(1, 25)), float(rng.choice([-1, 1]) * rng.uniform(0.1, 3))
    found = drawn_sum(rng, L, f, True)
    x, a = f * found.values, abs(f)
    mean, second = found.probabilities @ x, found.probabilities @ x**2
    with_it, without = (
        float((second / np.maximum(2 * b * mean + 2 * a * L * (2 * b - mean), 1e-12)).max())
        for b in (found.largest_mean + a, max(found.largest_mean, 1e-9))
    )
    return {"10: second moment with random costs": with_it, "without the additional a (it fails)": without}


# --- Theorem 7: the account in a box


class Box(NamedTuple):
    """A problem with the accounts in a box; costs, thresholds and the box are multiples of 1/grid."""

    P: np.ndarray
    beta: np.ndarray  # radii of the rows
    costs: np.ndarray  # (1 + m, S, A)
    tau: np.ndarray
    prices: np.ndarray
    half: int  # half the width of the box, in multiples of 1/grid
    grid: int


def least_in_balls(p: np.ndarray, beta: float, U: np.ndarray) -> np.ndarray:
    """Return the least q U over the 1-norm ball around p, for every account; U is (S, ...)."""
    columns = U.reshape(len(p), -1)
    order = np.argsort(columns, axis=0)
    rows = p[order]
    rows[0] = np.minimum(1.0, rows[0] + 0.5 * beta)
    excess = rows.sum(axis=0) - 1.0
    for last in range(len(p) - 1, 0, -1):
        cut = np.minimum(rows[last], excess)
        rows[last] -= cut
        excess = excess - cut
    return (rows * np.take_along_axis(columns, order, axis=0)).sum(axis=0).reshape(U.shape[1:])


def box_values(box: Box, rounds: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Return U with 0, ..., ``rounds`` rounds to go, each (S, accounts ...), and the accounts (m, accounts ...)."""
    m, cells = len(box.tau), np.arange(-box.half, box.half + 1)
    z = np.array(np.meshgrid(*[cells] * m, indexing="ij")) / box.grid
    U = np.repeat(np.tensordot(box.prices, z, 1)[None], len(box.P), axis=0)
    values = [U]
    for _ in range(rounds):
        after, U = U, np.full_like(U, np.inf)
        for s, a in np.ndindex(box.beta.shape):
            moves = np.rint((box.costs[1:, s, a] - box.tau) * box.grid).astype(int)
            targets = np.ix_(*[np.clip(cells + move, -box.half, box.half) + box.half for move in moves])
            over = np.array([np.maximum(0.0, z[i] + (moves[i] - box.half) / box.grid) for i in range(m)])
            paid = box.costs[0, s, a] + np.tensordot(1.0 + box.prices, over, 1)
            U[s] = np.minimum(U[s], paid + least_in_balls(box.P[s, a], box.beta[s, a], after[(slice(None), *targets)]))
        values.append(U)
    return values, z


def extended_diameter(P: np.ndarray, beta: np.ndarray) -> float:
    """Return the diameter of the extended model; infinity if it exceeds 60."""
    largest_time = 0.0
    for target in range(len(P)):
        h = np.zeros(len(P))
        for _ in range(2_000):
            new = 1.0 + (optimistic_rows(P, beta, h) @ h).min(axis=1)
            new[target] = 0.0
            if np.abs(new - h).max() < 1e-9:
                break
            h = new
        largest_time = max(largest_time, float(h.max()))
    return largest_time if largest_time < 60 else np.inf


def box_ratios(box: Box, rounds: int, D: float) -> dict[str, float]:
    """Return the ratios of the span, of the slopes in the account, and of (10)."""
    values, z = box_values(box, rounds)
    prices, kappa = box.prices, 1.0 + box.prices
    span = D * (1.0 + float((kappa * (1 - box.tau) + prices * box.tau).sum()))
    lagrangian = box.costs[0] + np.tensordot(prices, box.costs[1:] - box.tau[:, None, None], 1)
    average = extended_optimum(box.P, box.beta, lagrangian).average
    line = np.tensordot(prices, z, 1)
    short = max(float((n * average + line - U).max()) for n, U in enumerate(values))
    slopes = [np.diff(U, axis=i + 1) * box.grid / kappa[i] for U in values for i in range(len(kappa))]
    least = min(float(slope.min()) for slope in slopes)
    return {
        "7: span of U": max(float(np.ptp(U, axis=0).max()) for U in values) / span,
        "7: slope of U in the account": max(float(slope.max()) for slope in slopes) if least > -1e-9 else np.inf,
        "7: (10)": short / (D * (1.0 + float(prices.sum()))),
    }


def drawn_box(rng: np.random.Generator) -> Box:
    """Return a random extended model with one or two constraints; the inequalities hold at any price."""
    S, m, grid = int(rng.integers(2, 4)), int(rng.integers(1, 3)), 4
    P = rng.dirichlet(np.full(S, 0.3), size=(S, 2))
    if rng.random() < 0.5:
        P[:, 0] = 0.9 * np.eye(S) + 0.1 * P[:, 0]
    beta = rng.choice([1e-3, 0.02, 0.2, 0.6], size=(S, 2))
    costs, tau = rng.integers(0, grid + 1, size=(m + 1, S, 2)) / grid, rng.integers(1, grid, size=m) / grid
    return Box(P, beta, costs, tau, rng.exponential(size=m) * (rng.random(m) < 0.8), int(rng.choice([2, 4, 6])), grid)


def steep_box(k: int, price: float) -> Box:
    """Return a model in which the bound on the span is attained: k costly states on the way to one that is free."""
    P, costs = np.zeros((k + 1, 2, k + 1)), np.zeros((2, k + 1, 2))
    for s in range(1, k + 1):
        P[s, :, s - 1], costs[:, s, :] = 1.0, 1.0
    P[0, 0, 0] = P[0, 1, k] = 1.0
    return Box(P, np.zeros((k + 1, 2)), costs, np.array([0.5]), np.array([price]), 2 * k, 2)


# --- Proposition 11: two models with the same optimal plan


class Twin(NamedTuple):
    """A model of Proposition 11 (a), with the optimal averages of its Lagrangian."""

    model: psconrl.CMDP
    lines: np.ndarray  # (policies, 2): averages of the objective and of the constrained cost

    def dual(self, price: float) -> float:
        """Return phi at a price."""
        return float((self.lines[:, 0] + price * (self.lines[:, 1] - 0.5)).min())


def twin(x_b: float, x_e: float) -> Twin:
    """Return the model in which the actions b and e leave state 0 with these probabilities."""
    leave = np.array([0.5, x_b, x_e])
    P = np.zeros((2, 3, 2))
    P[0, :, 1], P[0, :, 0], P[1] = leave, 1 - leave, 0.5
    costs = np.array([[[0.5, 1.0, 0.2], [1.0] * 3], [[0.5, 0.0, 1.0], [0.5] * 3]])
    share = leave / (leave + 0.5)  # of state 1
    return Twin(psconrl.CMDP(P, costs, [0.5]), ((1 - share) * costs[:, 0] + share * costs[:, 1]).T)


# --- the bounds


def staged_bounds(S: int, A: int, T: int, D: float, zeta: float, delta: float = 0.05) -> tuple[float, float]:
    """Return the bounds of Theorem 6 on regret and violation."""
    b, E, L, ell = 9 * D * (1 + 1 / zeta), epochs_bound(S, A, T), ceil(sqrt(T)), log(1 / delta)
    K = 3.5 * sqrt(E * T) + E * (1 + log2(T)) + 1 + 2.5 * confidence_constant(S, A, T, delta) * sqrt(S * A * T)
    regret = 7.2 * b * K + (1 + 1 / zeta) * (13 * L * ell + D * sqrt(2 * T * ell))
    violation = 3.1 * b * K + 9 * (1 + 1 / zeta) * L * ell + 28 * asinh(L) * sqrt(E * T)
    return regret + 28 / zeta * asinh(L / zeta) * sqrt(E * T), violation


def box_bounds(S: int, A: int, T: int, D: float, zeta: float, m: int, delta: float = 0.05) -> tuple[float, float]:
    """Return the bounds of Theorem 7 on regret and violations."""
    d, E, ell = m + 1, epochs_bound(S, A, T), log(1 / delta)
    gamma, walls = D * (1 + m + 1 / zeta), 35 * d * d * log(2 * d * T * T) * sqrt(E * T)
    learning = 2.5 * confidence_constant(S, A, T, delta) * sqrt(S * A * T)
    regret = gamma * (learning + 14 * sqrt(E * T) + sqrt(T * ell / 2)) + (1 + 2 / zeta) * walls
    return regret, gamma * (learning + 18 * sqrt(E * T) + sqrt(2 * T * ell)) + (2 + 1 / zeta) * walls


def half_box(n: int, m: int) -> float:
    """Return B_n."""
    d = m + 1
    return 10 * d * d * root_above(n) * log(2 * d * n * n)


def checks(scale: int = 10) -> dict[str, tuple[float, int]]:
    """Return all checks, with ``10 * scale`` cases of most."""
    rng = np.random.default_rng(1)

    def box(_: int) -> dict[str, float]:
        drawn = drawn_box(rng)
        D = extended_diameter(drawn.P, drawn.beta)
        return box_ratios(drawn, 30, D) if np.isfinite(D) else {}

    groups = [
        largest(20 * scale, lambda _: stage_ratios(list(rng.integers(1, 10 ** int(rng.integers(1, 6)), 20)))),
        largest(20 * scale, lambda _: {
            "8: drift bounds noise": segment_ratio(drawn_chain(rng), rng.normal(size=2), 40)}),
        largest(10 * scale, lambda _: lap_ratios(drawn_chain(rng), int(rng.integers(1, 30)))),
        largest(50 * scale, lambda _: {"6: potential on every path": path_ratio(
            int(rng.integers(1, 500)), float(rng.choice([0.0, rng.exponential()])), float(rng.normal() * 20_000))}),
        largest(50 * scale, lambda _: exponential_ratios(rng)),
        largest(50 * scale, lambda _: noisy_moment_ratios(rng)),
        largest(10 * scale, box),
        {"7: span of U, attained": (box_ratios(steep_box(5, 1.5), 5, 5.0)["7: span of U"], 1)},
    ]  # fmt: skip
    return {name: ratio for group in groups for name, ratio in group.items()}


def main() -> None:
    """Print a table."""
    print("| inequality | cases | largest ratio |\n|---|---|---|")
    for name, (ratio, cases) in checks().items():
        print(f"| {name} | {cases} | {ratio:.3g} |", flush=True)


if __name__ == "__main__":
    main()
