r"""The inequalities of docs/theorems.md, checked in numbers: ``python benchmarks/theorems.py``.

For each it prints the cases tried and the largest ratio of the left side to the right side. A ratio above 1 refutes
the inequality; a ratio below 1 does not prove it. Expectations are exact: values of optimal stopping problems, moments
by recursion, and all policies by dynamic programming.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

from collections.abc import Callable
from math import asinh, ceil, exp, log, log2, sqrt
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

import psconrl

GRID = 8  # confidence radii are multiples of 1/GRID, so that their sums in an episode are too


class Problem(NamedTuple):
    """A communicating model with one constraint, its optimum, diameter and Slater constant."""

    P: np.ndarray
    costs: np.ndarray
    tau: float
    J: float
    price: float
    D: float
    zeta: float


def drawn_problem(rng: np.random.Generator, states: int = 4, actions: int = 2) -> Problem:
    """Return a random model of four states; rows are spiky, costs are 0, 1 or uniform, and the threshold binds."""
    while True:
        P = 0.95 * rng.dirichlet(np.full(states, 0.3), size=(states, actions)) + 0.05 / states
        costs = np.where(rng.random((2, states, actions)) < 0.5, rng.integers(0, 2, (2, states, actions)),
                         rng.random((2, states, actions)))  # fmt: skip
        least = psconrl.plan(psconrl.CMDP(P, costs[1:])).value
        free = psconrl.plan(psconrl.CMDP(P, costs[:1])).policy
        spent = psconrl.evaluate(psconrl.CMDP(P, costs, [0.5]), free).costs[1]
        if spent - least < 0.02:
            continue
        tau = least + rng.uniform(0.1, 0.9) * (spent - least)
        best = psconrl.plan(psconrl.CMDP(P, costs, [tau]))
        D = psconrl.diameter(psconrl.CMDP(P, costs, [tau]))
        return Problem(P, costs, tau, best.value, float(best.multipliers[0]), D, tau - least)


def lagrangian(problem: Problem, price: float) -> np.ndarray:
    """Return c_0 + price (c - tau)."""
    return problem.costs[0] + price * (problem.costs[1] - problem.tau)


# --- the extended model


def optimistic_rows(P: np.ndarray, beta: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Return the rows in the 1-norm balls around P that minimise p h (Jaksch et al. 2010, figure 2)."""
    order = np.argsort(h)
    rows = P[..., order].copy()
    rows[..., 0] = np.minimum(1.0, rows[..., 0] + 0.5 * beta)
    excess = rows.sum(axis=-1) - 1.0
    for last in range(len(h) - 1, 0, -1):
        cut = np.minimum(rows[..., last], excess)
        rows[..., last] -= cut
        excess = excess - cut
    found = np.empty_like(rows)
    found[..., order] = rows
    return found


class Extended(NamedTuple):
    """The optimal average of one cost in the extended model, a bias, a conserving policy and its transitions."""

    average: float
    h: np.ndarray
    policy: np.ndarray
    rows: np.ndarray


def extended_optimum(P: np.ndarray, beta: np.ndarray, cost: np.ndarray, tol: float = 1e-9) -> Extended:
    """Return the optimum over policies and over rows in the balls, by relative value iteration of a lazy chain."""
    h = np.zeros(len(P))
    while True:
        rows = optimistic_rows(P, beta, h)
        q = cost + rows @ h
        change = q.min(axis=1) - h
        if np.ptp(change) < tol:
            return Extended(float(change.mean()), h, q.argmin(axis=1), rows)
        h = h + 0.7 * change
        h -= h[0]


def centre(P: np.ndarray, beta: np.ndarray, problem: Problem) -> tuple[float, float]:
    """Return the price at which the optimistic dual function is largest, and its value."""
    value = lambda price: -extended_optimum(P, beta, lagrangian(problem, price), 1e-7).average  # noqa: E731
    found = minimize_scalar(value, bounds=(0.0, 1.0 / problem.zeta), method="bounded", options={"xatol": 1e-4})
    return max(((float(found.x), -float(found.fun)), (0.0, -value(0.0))), key=lambda pair: pair[1])


def confidence_problem(rng: np.random.Generator) -> tuple[Problem, np.ndarray, np.ndarray]:
    """Return a problem, radii on the grid and empirical rows whose balls have the true rows."""
    problem = drawn_problem(rng)
    beta = rng.integers(1, rng.choice([3, 9, 17]), problem.P.shape[:2]) / GRID
    other = rng.dirichlet(np.full(problem.P.shape[2], 0.3), size=problem.P.shape[:2])
    away = np.abs(other - problem.P).sum(axis=2)
    share = np.minimum(1.0, beta / np.maximum(away, 1e-12)) * rng.random(beta.shape)
    return problem, beta, problem.P + share[..., None] * (other - problem.P)


# --- Lemma 0


def lemma_ratios(problem: Problem, price: float) -> dict[str, float]:
    """Return the ratios of Lemma 0: the price, the span, and the least Lagrangian of any policy until any stop."""
    alone = psconrl.plan(psconrl.CMDP(problem.P, [lagrangian(problem, price)]))
    bound, u = problem.D * (1.0 + price), np.zeros(len(problem.P))
    for _ in range(400):
        u = np.minimum(0.0, (lagrangian(problem, price) - alone.value + problem.P @ u).min(axis=1))
    return {
        "0(a) price <= 1 / zeta": problem.price * problem.zeta,
        "0(b) span <= D (1 + lambda)": float(np.ptp(alone.potential)) / bound,
        "0(c) -(Lagrangian until a stop) <= D (1 + lambda)": -float(u.min()) / bound,
    }


# --- Theorem 1: the dual steps


def projected(x: np.ndarray, ceiling: float) -> np.ndarray:
    """Return the Euclidean projection onto {x >= 0, sum <= ceiling}."""
    found = np.maximum(x, 0.0)
    if found.sum() <= ceiling:
        return found
    ordered = np.sort(x)[::-1]
    shifts = (np.cumsum(ordered) - ceiling) / np.arange(1, len(x) + 1)
    return np.maximum(x - shifts[np.nonzero(ordered > shifts)[0][-1]], 0.0)


def dual_ratio(rng: np.random.Generator, constraints: int, L: int, T: int) -> float:
    """Return the regret of the dual steps against the best price afterwards, relative to Lambda sqrt(m L T)."""
    ceiling = rng.uniform(1, 10)
    step, price, total, against = ceiling / sqrt(constraints * L * T), np.zeros(constraints), np.zeros(constraints), 0.0
    mode = int(rng.integers(3))
    for _ in range(T // L):
        signs = np.where(price > rng.uniform(0, ceiling), -1.0, 1.0)
        change = L * (rng.uniform(-1, 1, constraints), signs, np.ones(constraints))[mode]
        against += float(price @ change)
        total += change
        price = projected(price + step * change, ceiling)
    return (ceiling * max(0.0, float(total.max())) - against) / (ceiling * sqrt(constraints * L * T))


# --- Theorem 2: episodes of tilted optimism


class Episode(NamedTuple):
    """Exact moments of x = f (c - tau) in an episode, from the worst state and stop."""

    worst: float  # the largest expectation until a stop
    first: float  # E[X] from one state
    second: float  # E[X^2]


def episode_moments(problem: Problem, beta: np.ndarray, found: Extended, tilt: float, L: int, start: int) -> Episode:
    """Return the moments of an episode that lasts L rounds, or until the radii add up to more than 1."""
    S = len(problem.P)
    pairs = np.arange(S), found.policy
    x = tilt * (problem.costs[1][pairs] - problem.tau)
    P, used = problem.P[pairs], np.rint(beta[pairs] * GRID).astype(int)
    stop, first, second = np.zeros((S, GRID + 1)), np.zeros((S, GRID + 1)), np.zeros((S, GRID + 1))
    worst = 0.0
    for _ in range(L):
        after = [np.zeros((S, GRID + 1)) for _ in range(3)]
        for s in range(S):
            for j in range(GRID + 1 - used[s]):
                for target, source in zip(after, (stop, first, second), strict=True):
                    target[s, j] = P[s] @ source[:, j + used[s]]
        second = x[:, None] ** 2 + 2.0 * x[:, None] * after[1] + after[2]
        first = x[:, None] + after[1]
        stop = np.maximum(0.0, x[:, None] + after[0])
        worst = max(worst, float(stop.max()))
    return Episode(worst, float(first[start, 0]), float(second[start, 0]))


def tilt_ratios(rng: np.random.Generator, L: int = 60) -> dict[str, float]:
    """Return the ratios of (2), (4) and of the lemma of step 3 in one extended model, over tilts of both signs."""
    problem, beta, hat = confidence_problem(rng)
    price, top = centre(hat, beta, problem)
    ratios = {"2: (2) value of the optimistic program <= J*": top / problem.J if problem.J > 0 else 0.0,
              "2: optimistic price <= 1 / zeta": price * problem.zeta, "2: spans in the extended model": 0.0,
              "2: (4) f (c - tau) until a stop": 0.0, "2: E[X^2] of the lemma": 0.0}  # fmt: skip
    signs = (-1.0, -0.3) if price else ()
    for tilt in (*(sign * price for sign in signs), 0.05, 0.5, 1.0 + price):
        found = extended_optimum(hat, beta, lagrangian(problem, price + tilt))
        spans = np.ptp(found.h) / (problem.D * (1.0 + price + tilt))
        episode = episode_moments(problem, beta, found, tilt, L, int(rng.integers(len(hat))))
        bound = 4.0 * problem.D * (1.0 + price + tilt) + problem.D * (1.0 + price)
        b = max(episode.worst, 1e-9)
        moment = 2.0 * b * episode.first + 2.0 * abs(tilt) * L * (2.0 * b - episode.first)
        for key, ratio in zip(list(ratios)[2:], (spans, episode.worst / bound, episode.second / moment), strict=True):
            ratios[key] = max(ratios[key], float(ratio))
    return ratios


def tilt_function(V: float, L: int, price: float) -> float:
    """Return f(V): the sinh of the account, cut off at minus the price and at one plus the price."""
    return max(-price, min(1.0 + price, float(np.sinh(min(max(V / (8 * L), -700.0), 700.0))) / L))


def slope_ratio(L: int, price: float, V: float) -> float:
    """Return the largest f' within L of V, relative to e^(1/8) (|f(V)| + 1/L) / (8 L)."""
    near = np.clip(np.linspace(V - L, V + L, 401) / (8 * L), -700.0, 700.0)
    f = np.sinh(near) / L
    slopes = np.where((f > -price) & (f < 1.0 + price), np.cosh(near) / (8 * L * L), 0.0)
    return float(slopes.max()) / (exp(0.125) * (abs(tilt_function(V, L, price)) + 1.0 / L) / (8 * L))


def potential_ratios(L: int, price: float, V: float) -> dict[str, float]:
    """Return the lower bounds of step 5 on F(V), the integral of f from 0, relative to F."""
    grid = np.linspace(0.0, V, 20_001)
    F = float(np.trapezoid([tilt_function(v, L, price) for v in grid], grid))
    least = V - 8 * L * asinh(L) if V > 0 else price * (-V - 8 * L * asinh(price * L))
    return {"2: F(V) from below, V > 0" if V > 0 else "2: F(V) from below, V < 0": least / F if F > 0 else 0.0}


# --- confidence radii added up


def radius(S: int, A: int, n: int, delta: float) -> float:
    """Return the radius of a row after n visits."""
    return min(2.0, sqrt(2.0 * (S * log(2) + log(S * A * n * (n + 1) / delta)) / n)) if n else 2.0


def radii_ratios(rng: np.random.Generator, T: int, H: int = 0) -> dict[str, float]:
    """Return the sum of radii along a random path, and the number of epochs, relative to their bounds.

    Counts are renewed when the visits of a pair have doubled or, with ``H``, after every H rounds.
    """
    S, A, delta = 3, 2, 1.0 / T
    q = sqrt(2.0 * (S * log(2) + log(S * A * T * (T + 1) / delta)))
    weights = rng.dirichlet(np.full(S * A, 0.2))
    runs = rng.integers(1, 2 + T // 50)
    path = np.repeat(rng.choice(S * A, size=T // runs + 1, p=weights), runs)[:T]
    before, now, total, epochs = np.zeros(S * A, int), np.zeros(S * A, int), 0.0, 1
    for t, pair in enumerate(path):
        if H and t % H == 0:
            before = now.copy()
        total += radius(S, A, int(before[pair]), delta)
        now[pair] += 1
        if not H and now[pair] - before[pair] == max(1, before[pair]):
            before, epochs = now.copy(), epochs + (t + 1 < T)
    if H:
        return {"3: sum of radii, renewed by blocks": total / (4 * S * A * H + 3 * q * sqrt(S * A * T))}
    return {"sum of radii, renewed by doubling": total / (2.5 * q * sqrt(S * A * T)),
            "number of epochs": epochs / (S * A * log2(8 * T / (S * A)))}  # fmt: skip


# --- Theorem 3: the account in the state


def account_values(problem: Problem, ceiling: float, width: float, H: int) -> tuple[np.ndarray, np.ndarray]:
    """Return U_h(s, z) - Phi(z) for all h, (H + 1, accounts, S), and the accounts z; costs and 2 tau are whole."""
    half = np.arange(-6 * H, 6 * H + 1)  # accounts in halves
    z = half / 2.0
    phi = np.where(z <= 0, 0.0, np.where(z <= width, ceiling * z**2 / (2 * width), ceiling * (z - width / 2)))
    moves = np.rint(2.0 * (problem.costs[1] - problem.tau)).astype(int)
    U, values = np.repeat(phi[:, None], len(problem.P), axis=1), []
    values.append(U - phi[:, None])
    for _ in range(H):
        q = np.empty((*U.shape, problem.P.shape[1]))
        for s, a in np.ndindex(moves.shape):
            q[:, s, a] = problem.costs[0, s, a] + np.roll(U, -moves[s, a], axis=0) @ problem.P[s, a]
        U = q.min(axis=2)
        values.append(U - phi[:, None])
    inner = slice(2 * H, -2 * H)  # no path from there leaves the table
    return np.array(values)[:, inner], z[inner]


def account_ratios(rng: np.random.Generator, H: int = 40) -> dict[str, float]:
    """Return the ratios of the span and of (ii) in Theorem 3, and of (i) if the optimum has constant averages."""
    problem = drawn_problem(rng)
    costs = np.stack([problem.costs[0], rng.integers(0, 2, problem.costs[1].shape)]).astype(float)
    model = psconrl.CMDP(problem.P, costs, [0.5])
    best = psconrl.plan(model)
    least = psconrl.plan(psconrl.CMDP(problem.P, costs[1:])).value
    if best.status is not psconrl.Status.OPTIMAL or least > 0.45:
        return {}
    problem = problem._replace(costs=costs, tau=0.5, J=best.value, zeta=0.5 - least)
    ceiling, width = 2.0 / problem.zeta, float(rng.choice([2.0, H**0.5, H, 4.0 * H]))
    values, _ = account_values(problem, ceiling, width, H)
    most = float((values[-1] - H * problem.J).max())
    second = min((H / n + 1) * problem.D * (1 + ceiling) + ceiling / (2 * width) * H * n for n in range(1, H + 1))
    ratios = {"3: span of U_h <= (1 + Lambda) D": float(np.ptp(values, axis=2).max()) / ((1 + ceiling) * problem.D),
              "3: (ii)": most / second}  # fmt: skip
    B0, B = np.ptp(psconrl.evaluate(model, best.policy).biases, axis=1)
    ratios["3: (i)"] = most / (B0 + ceiling * B + ceiling / width * (B**2 + H * (B + 1) ** 2))
    return ratios


# --- the planning horizon, and the islands


def returning_ratios(problem: Problem, eta: float) -> dict[str, float]:
    """Return the ratios of the section on the planning horizon in docs/theory.md."""
    S = len(problem.P)
    model = psconrl.CMDP(problem.P, problem.costs, [problem.tau])
    policies = [np.eye(problem.P.shape[1])[list(choice)] for choice in np.ndindex((problem.P.shape[1],) * S)]
    B = max(float(np.ptp(psconrl.evaluate(model, policy).biases, axis=1).max()) for policy in policies)
    lower = eta * B / (1.0 - eta)
    if lower > problem.zeta / 2:
        return {}
    restart = (1.0 - eta) * problem.P + eta * np.eye(S)[0]
    tighter = psconrl.plan(model.with_thresholds(problem.tau - lower)).value
    horizon = psconrl.plan(psconrl.CMDP(restart, problem.costs, [problem.tau]))
    one = psconrl.plan(psconrl.CMDP(restart, [lagrangian(problem, problem.price)]))
    return {
        "horizon: J'(tau) - J(tau) <= (1 + 2 / zeta) eta B / (1 - eta)":
            (horizon.value - problem.J) / ((1.0 + 2.0 / problem.zeta) * lower),
        "horizon: J'(tau) <= J(tau - eta B / (1 - eta)) + eta B / (1 - eta)": horizon.value / (tighter + lower),
        "horizon: span of the Lagrangian <= D (1 + lambda)":
            float(np.ptp(one.potential)) / (problem.D * (1.0 + problem.price)),
    }  # fmt: skip


def balance_deviation(rate: float, rounds: int) -> float:
    """Return the standard deviation of the time spent on one of the islands, if each is left with the same rate.

    The chain starts with its stationary distribution.
    """
    k = np.arange(1, rounds)
    return sqrt(0.25 * rounds + 0.5 * float(((rounds - k) * (1.0 - 2.0 * rate) ** k).sum()))


def steps_ratio(rate: float, rounds: int) -> float:
    """Return this deviation relative to sqrt(T / rate) / 2."""
    return balance_deviation(rate, rounds) / (0.5 * sqrt(rounds / rate))


# --- the bounds of the theorems


def confidence_constant(S: int, A: int, T: int, delta: float) -> float:
    """Return q."""
    return sqrt(2.0 * (S * log(2) + log(S * A * T * (T + 1) / delta)))


def epochs_bound(S: int, A: int, T: int) -> float:
    """Return the bound on the number of epochs, S A log2(8 T / S A)."""
    return S * A * log2(8 * T / (S * A))


def lagrangian_bounds(S: int, A: int, T: int, D: float, zeta: float, m: int = 1) -> tuple[float, float]:
    """Return the bounds of Theorem 1 on regret and violation."""
    L, ceiling, E = ceil(T ** (1 / 3)), 2.0 / zeta, epochs_bound(S, A, T)
    q = confidence_constant(S, A, T, T**-2)
    total = (1 + ceiling) * (D * (T / L + E + 1 + 2.5 * q * sqrt(S * A * T) + 2) + L * E)
    return total + 0.5 * ceiling * sqrt(m * L * T), zeta * total + 2 * sqrt(m * L * T) + D * (1 + zeta)


def tilted_bounds(S: int, A: int, T: int, D: float, zeta: float) -> tuple[float, float]:
    """Return the bounds of Theorem 2 on regret and violation."""
    L, b, E = ceil(sqrt(T)), 9 * D * (1 + 1 / zeta), epochs_bound(S, A, T)
    K = sqrt(T) + E + 1 + 2.5 * confidence_constant(S, A, T, 1 / T) * sqrt(S * A * T)
    return 7 * b * K + 8 * L / zeta * asinh(L / zeta) * E + 1, 3 * b * K + 8 * L * asinh(L) * E + 1


def largest(count: int, ratios: Callable[[int], dict[str, float]]) -> dict[str, tuple[float, int]]:
    """Return the largest of all ratios, with the number of cases."""
    found: dict[str, tuple[float, int]] = {}
    for i in range(count):
        for name, ratio in ratios(i).items():
            before, cases = found.get(name, (-np.inf, 0))
            found[name] = (max(before, ratio), cases + 1)
    return found


def checks(scale: int = 10) -> dict[str, tuple[float, int]]:
    """Return all checks, with ``10 * scale`` cases of each; two minutes with 10."""
    rng = np.random.default_rng(1)
    groups = [
        largest(10 * scale, lambda _: lemma_ratios(drawn_problem(rng), float(rng.uniform(0, 5)))),
        largest(10 * scale, lambda _: {"1: dual steps": dual_ratio(rng, int(rng.integers(1, 4)), 20, 8000)}),
        largest(4 * scale, lambda _: tilt_ratios(rng)),
        largest(100 * scale, lambda _: {"2: f' near V": slope_ratio(
            int(rng.integers(3, 1000)), float(rng.choice([0.0, rng.exponential()])), float(rng.normal() * 30_000))}),
        largest(5 * scale, lambda _: potential_ratios(100, float(rng.exponential()), float(rng.normal() * 20_000))),
        largest(2 * scale, lambda _: radii_ratios(rng, 5000)),
        largest(2 * scale, lambda _: radii_ratios(rng, 5000, 70)),
        largest(10 * scale, lambda _: account_ratios(rng)),
        largest(5 * scale, lambda _: returning_ratios(drawn_problem(rng, 3), float(10 ** rng.uniform(-4, -2)))),
        largest(scale, lambda i: {"islands: deviation at a rate": steps_ratio(10.0 ** (-1 - i % 4), 10_000)}),
    ]  # fmt: skip
    return {name: ratio for group in groups for name, ratio in group.items()}


def main() -> None:
    """Print a table."""
    print("| inequality | cases | largest ratio |\n|---|---|---|")
    for name, (ratio, cases) in checks().items():
        print(f"| {name} | {cases} | {ratio:.3g} |", flush=True)


if __name__ == "__main__":
    main()
