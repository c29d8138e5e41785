"""Families of tiny models on which planners fail, each drawn from a seed; most have few enough policies to try all.

A family draws transitions, costs and an initial distribution. Thresholds are then set by the exact averages of the
deterministic policies: inside what can be met, at its edge, a little beyond it.
"""

import zlib
from fractions import Fraction

import numpy as np

from adversarial import KINDS, adversarial
from exact import number_of_policies, points
from exact_draws import MOST_POLICIES, later, sizes, some_costs, some_rows, start_of
from exact_hostile import HOSTILE
from psconrl import evaluate
from psconrl.base.caps import LARGEST_COST
from psconrl.learning.posterior.sampled_rows import dirichlet_rows

AWAY = (0.0, 0.0, 1e-15, 1e-13, 1e-11, 1e-10, 1e-9, 1e-8, 1e-6)  # distances of a threshold from an edge


def drawn(family, seed):
    """Return a model of a family, or None if the draw has no model that can be judged."""
    rng = np.random.default_rng([zlib.crc32(family.encode()), seed])
    model = FAMILIES[family](rng)
    if model is None or model.n_constraints == 0 or np.isfinite(model.thresholds).all():
        return model
    if number_of_policies(model, MOST_POLICIES) > MOST_POLICIES:
        return None
    how = "edge" if family == "edge" else "any"
    return model.with_thresholds(thresholds(points(model), model.n_constraints, rng, how))


def thresholds(reached, m, rng, how="any"):
    """Draw thresholds relative to the averages that can be attained."""
    tau = np.empty(m)
    columns = [[p[i + 1] for p in reached] for i in range(m)]
    rule = rng.choice(["inside", "point", "edge", "beyond"], p=[0.5, 0.2, 0.2, 0.1]) if how == "any" else "edge"
    weights = [Fraction(int(x)) for x in rng.integers(0, 5, size=len(reached))]
    weights[int(rng.integers(len(reached)))] += 1
    vertex = reached[int(rng.integers(len(reached)))]
    for i, column in enumerate(columns):
        low, high = min(column), max(column)
        if rule == "inside":
            mean = sum(w * x for w, x in zip(weights, column, strict=True)) / sum(weights)
            tau[i] = float(mean + Fraction(float(rng.choice([0.0, 0.0, 0.1, 0.3]))) * (high - low))
        elif rule == "point":
            tau[i] = float(vertex[i + 1])
        elif rule == "edge":
            scale = float(rng.choice([float(high - low), abs(float(low)), 1.0]))
            tau[i] = float(low) + float(rng.choice([-1, 1])) * float(rng.choice(AWAY)) * scale
        else:
            tau[i] = float(low) - 10.0 ** rng.uniform(-8, 0) * max(float(high - low), 1e-3)
    return tau.clip(-LARGEST_COST, LARGEST_COST)


def ties(rng):
    S, A = sizes(rng)
    m = int(rng.integers(0, 3))
    costs = rng.integers(0, 2, size=(m + 1, S, A)).astype(float)
    return later(some_rows(rng, S, A, rng.integers(1, 3)), costs, initial=start_of(rng, S))


def masked(rng):
    S, A = sizes(rng, actions=(3, 4))
    available = rng.random((S, A)) < 0.5
    available[np.arange(S), rng.integers(0, A, size=S)] = True
    m = int(rng.integers(0, 4))
    return later(some_rows(rng, S, A), some_costs(rng, m, S, A), initial=start_of(rng, S), available=available)


def magnitudes(rng):
    """Costs of all sizes and signs, and probabilities of all sizes."""
    S, A = sizes(rng, states=(2, 4))
    m = int(rng.integers(0, 3))
    reach = float(rng.choice([3, 6, 10]))
    costs = 10.0 ** rng.uniform(-reach, reach, size=(m + 1, S, A)) * rng.choice([-1, 0, 1], size=(m + 1, S, A))
    P = some_rows(rng, S, A)
    P *= 10.0 ** -rng.integers(0, 7, size=P.shape)
    return later(P / P.sum(axis=1, keepdims=True), costs, initial=start_of(rng, S))


def leaks(rng):
    """Some rows stay, but for a probability of down to 1e-12."""
    S, A = sizes(rng)
    m = int(rng.integers(0, 3))
    P = some_rows(rng, S, A)
    for i in np.flatnonzero(rng.random(S * A) < 0.6):
        leak = 10.0 ** -int(rng.integers(1, 13))
        P[i] *= leak
        P[i, i // A] = 0.0
        P[i, i // A] = 1.0 - P[i].sum()
    return later(P, some_costs(rng, m, S, A), initial=start_of(rng, S))


def islands(rng):
    """Stay where you are, or move on to the next state, at a price."""
    S = int(rng.integers(2, 6))
    A, m = 2, int(rng.integers(1, 4))
    P = np.zeros((S, A, S))
    P[np.arange(S), 0, np.arange(S)] = 1.0
    slow = float(rng.choice([1.0, 1.0, 0.5, 1e-3, 1e-9]))
    P[np.arange(S), 1, np.arange(S)] += 1.0 - slow
    P[np.arange(S), 1, (np.arange(S) + 1) % S] += slow
    costs = some_costs(rng, m, S, A)
    costs[:, :, 1] = rng.choice([costs.max(), 0.0, 1.0, 2.0])
    return later(P, costs, initial=start_of(rng, S))


def traps(rng):
    """Several end components: from some states there is no way back."""
    S, A = sizes(rng, states=(3, 6))
    m = int(rng.integers(0, 3))
    P = np.zeros((S * A, S))
    for i, row in enumerate(P):
        targets = np.arange(i // A, S) if rng.random() < 0.75 else np.arange(S)
        some = rng.choice(targets, min(targets.size, int(rng.integers(1, 4))), replace=False)
        row[some] = rng.dirichlet(np.ones(some.size))
        if rng.random() < 0.25:
            leak = 10.0 ** -int(rng.integers(1, 13))
            row *= leak
            row[i // A] = 0.0
            row[i // A] = 1.0 - row.sum()
    return later(P, some_costs(rng, m, S, A), initial=start_of(rng, S))


def edge(rng):
    S, A = sizes(rng, states=(2, 5))
    m = int(rng.integers(1, 3))
    return later(some_rows(rng, S, A), some_costs(rng, m, S, A), initial=start_of(rng, S))


def one_state(rng):
    """One reachable state; the rest of the model must not matter."""
    S, A = sizes(rng, states=(1, 5), actions=(1, 4))
    m = int(rng.integers(0, 4))
    P, costs = some_rows(rng, S, A), some_costs(rng, m, S, A)
    P[:A] = np.eye(S)[0]
    if S > 1:
        costs[:, 1:] *= 10.0 ** rng.uniform(-6, 6)
    return later(P, costs, initial=0)


def constant(rng):
    """A constrained cost that is the same everywhere, with a threshold there or very near."""
    S, A = sizes(rng, states=(2, 5))
    m = int(rng.integers(1, 4))
    P, costs = some_rows(rng, S, A), some_costs(rng, m, S, A)
    which = 1 + int(rng.integers(m))
    costs[which] = float(rng.choice([0.0, 0.1, 1.0, -0.3, 1e-9, 1e6])) + float(rng.choice([0.0, 0.0, 1e-12])) * (
        rng.random((S, A))
    )
    if rng.random() < 0.3:
        costs[0] = costs[0, 0, 0]
    return later(P, costs, initial=start_of(rng, S))


def birth_death(rng):
    S, m = int(rng.integers(3, 8)), int(rng.integers(1, 3))
    P = np.zeros((S, 2, S))
    up, down = rng.uniform(0.05, 0.4), rng.uniform(0.05, 0.4, size=2) * float(rng.choice([1.0, 1.0, 1e-4]))
    for s in range(S):
        for a in range(2):
            P[s, a, min(s + 1, S - 1)] += up
            P[s, a, max(s - 1, 0)] += down[a]
            P[s, a, s] += 1 - up - down[a]
    costs = np.zeros((m + 1, S, 2))
    costs[0, :, 1] = rng.choice([1.0, 0.1, 3.0])
    costs[1] = np.arange(S)[:, None]
    if m > 1:
        costs[2, -1] = 1.0
    return later(P, costs, initial=start_of(rng, S))


def tandem(rng, first=1, second=2):
    """Two queues in tandem, of which the first server is slow or fast, and arrivals may be rejected."""
    states = [(i, j) for i in range(first + 1) for j in range(second + 1)]
    number = {state: k for k, state in enumerate(states)}
    S, A = len(states), 2
    arrive, slow, fast, leave = rng.uniform(0.05, 0.25, size=4)
    P, costs = np.zeros((S, A, S)), np.zeros((3, S, A))
    for k, (i, j) in enumerate(states):
        for a in range(A):
            moves = [((i + 1, j), arrive, i < first)]
            moves += [((i - 1, j + 1), (slow, fast)[a], i > 0 and j < second), ((i, j - 1), leave, j > 0)]
            for to, p, possible in moves:
                P[k, a, number[to] if possible else k] += p
            P[k, a, k] += 1 - P[k, a].sum()
            costs[:, k, a] = a, i + j, float(i == first)
    m = int(rng.integers(1, 3))
    return later(P, costs[: m + 1], initial=start_of(rng, S))


def polling(rng):
    """One server that stays at its queue or switches to the other; each queue holds one customer."""
    states = [(at, i, j) for at in range(2) for i in range(2) for j in range(2)]
    number = {state: k for k, state in enumerate(states)}
    S, A = 8, 2
    arrive, serve = rng.uniform(0.05, 0.3, size=2), rng.uniform(0.1, 0.4)
    P, costs = np.zeros((S, A, S)), np.zeros((3, S, A))
    switching = float(rng.choice([1.0, 0.5, 1e-3]))
    for k, (at, i, j) in enumerate(states):
        for a in range(A):
            queue = [i, j]
            for q in range(2):
                fuller = [*queue]
                fuller[q] = 1
                P[k, a, number[(at, *fuller)]] += arrive[q] if a == 0 else arrive[q] * (1 - switching)
            if a == 1:
                P[k, a, number[(1 - at, i, j)]] += switching * arrive.sum()
            elif queue[at]:
                queue[at] = 0
                P[k, a, number[(at, *queue)]] += serve
            P[k, a, k] += 1 - P[k, a].sum()
            costs[:, k, a] = a, i + j, j
    m = int(rng.integers(1, 3))
    return later(P, costs[: m + 1], initial=start_of(rng, S))


def two_queues(rng):
    """One server for two queues of room for two: which one is served, where both have customers."""
    states = [(i, j) for i in range(3) for j in range(3)]
    number = {state: k for k, state in enumerate(states)}
    S, A = 9, 2
    arrive, serve = rng.uniform(0.05, 0.25, size=2), rng.uniform(0.1, 0.25, size=2)
    P, costs, available = np.zeros((S, A, S)), np.zeros((3, S, A)), np.zeros((S, A), dtype=bool)
    for k, (i, j) in enumerate(states):
        for a in range(A):
            available[k, a] = a == 0 or (i > 0 and j > 0)
            served = a if available[k, 1] or (i > 0 and j > 0) else (0 if i else 1)
            P[k, a, number[min(i + 1, 2), j]] += arrive[0]
            P[k, a, number[i, min(j + 1, 2)]] += arrive[1]
            left = (i - 1, j) if served == 0 else (i, j - 1)
            if min(left) >= 0:
                P[k, a, number[left]] += serve[served]
            P[k, a, k] += 1 - P[k, a].sum()
            costs[:, k, a] = i, j, float(i == 2)
    m = int(rng.integers(1, 3))
    return later(P, costs[: m + 1], initial=start_of(rng, S), available=available)


def resets(rng):
    """A machine that wears out step by step until it is replaced."""
    S, m = int(rng.integers(2, 8)), int(rng.integers(1, 3))
    wear = float(rng.choice([1.0, 0.3, 1e-2, 1e-6]))
    P = np.zeros((S, 2, S))
    P[:, 1, 0] = 1.0
    for s in range(S):
        P[s, 0, min(s + 1, S - 1)] += wear
        P[s, 0, s] += 1 - wear
    costs = np.zeros((m + 1, S, 2))
    costs[0, :, 1] = 1.0
    costs[1] = (np.arange(S) / S)[:, None] ** int(rng.integers(1, 5))
    if m > 1:
        costs[2, -1] = 1.0
    return later(P, costs, initial=start_of(rng, S))


def restarts(rng):
    """A model of any structure that returns to its start with a small probability at every step."""
    base = (traps, ties, leaks, islands)[int(rng.integers(4))](rng)
    probability = float(rng.choice([1e-3, 1e-6, 1e-9, 1e-9, 1e-11]))
    state = int(rng.integers(base.n_states))
    matrix = (1.0 - probability) * np.asarray(base.transition)
    matrix[:, state] += probability
    return later(matrix, base.costs, initial=state)


def posterior(rng):
    """A sample from a posterior of small mass: rows that are all but deterministic, with entries of all sizes."""
    S, A = sizes(rng)
    m = int(rng.integers(0, 3))
    mass = 10.0 ** rng.uniform(-3, 0)
    counts = rng.integers(0, 4, size=(S * A, S)) * (rng.random((S * A, S)) < 0.3)
    P = dirichlet_rows(mass / S + counts.astype(float), rng)
    P[rng.choice([1e-15, 1e-30, 1e-60]) > P] = 0.0
    return later(P / P.sum(axis=1, keepdims=True), some_costs(rng, m, S, A), initial=start_of(rng, S))


def coincident(rng):
    """Several constraints that are nearly the same."""
    S, A = sizes(rng, states=(2, 5))
    m = int(rng.integers(2, 5))
    P, costs = some_rows(rng, S, A), some_costs(rng, m, S, A)
    for i in range(2, m + 1):
        costs[i] = costs[1] * float(rng.choice([1.0, 1.0, 2.0, 1e3])) + 10.0 ** -float(
            rng.integers(6, 14)
        ) * rng.random((S, A))
    return later(P, costs, initial=start_of(rng, S))


def nasty(rng):
    """The models of ``adversarial``, whatever their structure."""
    return adversarial(str(rng.choice(KINDS)), int(rng.integers(2**31)))


def larger(rng):
    """Queues with too many policies to try all: the certificate itself is recomputed."""
    if rng.random() < 0.5:
        model = tandem(rng, int(rng.integers(2, 4)), int(rng.integers(2, 4)))
    else:
        S = int(rng.integers(9, 13))
        model = later(some_rows(rng, S, 3, rng.integers(2)), some_costs(rng, int(rng.integers(1, 4)), S, 3))
    uniform = np.full((model.n_states, model.n_actions), 1.0 / model.n_actions)
    free = model.with_thresholds(np.full(model.n_constraints, 1e30))
    averages = evaluate(free, uniform).costs[1:]
    return free.with_thresholds(averages * rng.uniform(0.3, 1.2, size=averages.size))


FAMILIES = {
    one.__name__: one
    for one in (
        ties, masked, magnitudes, leaks, islands, traps, edge, one_state, constant, birth_death, tandem, polling,
        two_queues, resets, restarts, posterior, coincident, nasty, larger, *HOSTILE,
    )
}  # fmt: skip
