"""Families of small environments on which agents may be developed; written from a list of families alone.

Every family draws a random member, see ``zoo``. Run this file to list members and their optima.
"""

import numpy as np

from zoo import Draft, Family, family, log_uniform


@family()
def corridor(rng: np.random.Generator) -> Draft:
    """A corridor with a door that opens at a share of the tries, and a reset at the end, where it pays to stay."""
    S, A = int(rng.integers(3, 13)), int(rng.integers(2, 4))
    door, opens, reset = int(rng.integers(0, S - 1)), log_uniform(rng, 0.02, 0.5), log_uniform(rng, 0.01, 1.0)
    P, value, risk = np.zeros((S, A, S)), np.ones((S, A)), 0.2 * rng.random((S, A))
    for s in range(S):
        P[s, 0, max(s - 1, 0)] = 1.0
        P[s, 2:, s] = 1.0
        if s < S - 1:
            p = opens if s == door else 1.0
            P[s, 1, s + 1], P[s, 1, s] = p, 1.0 - p
    P[S - 1] = 0.0
    P[S - 1, 0, 0] = 1.0
    P[S - 1, 1:, S - 1], P[S - 1, 1:, 0] = 1.0 - reset, reset
    value[S - 1, 1], risk[S - 1, 1] = 0.0, 1.0
    value[0, 0] = rng.uniform(0.6, 1.0)
    return P, [value, risk]


@family()
def walls(rng: np.random.Generator) -> Draft:
    """Cells with walls between some of them; a few of the walls let one pass once in ten to fifty tries."""
    height, width = int(rng.integers(2, 4)), int(rng.integers(2, 5))
    S, share = height * width, rng.uniform(0.2, 0.8)
    passes = rng.choice([0.0, 1.0], size=(S, S), p=[share, 1.0 - share])
    passes = np.where((passes == 0.0) & (rng.random((S, S)) < 0.5), log_uniform(rng, 0.02, 0.1), passes)
    P = np.zeros((S, 4, S))
    for s in range(S):
        y, x = divmod(s, width)
        for a, (dy, dx) in enumerate(((0, 1), (1, 0), (0, -1), (-1, 0))):
            inside = 0 <= y + dy < height and 0 <= x + dx < width
            to = (y + dy) * width + x + dx if inside else s
            p = passes[s, to] if inside else 0.0
            P[s, a, to] += p
            P[s, a, s] += 1.0 - p
    value, risk = np.repeat(rng.uniform(0.5, 1.0, (S, 1)), 4, axis=1), 0.3 * rng.random((S, 4))
    goal = int(rng.integers(S))
    value[goal], risk[goal] = 0.0, rng.uniform(0.5, 1.0)
    return P, [value, risk, (np.arange(S)[:, None] == rng.integers(S)) * np.ones((S, 4))]


@family()
def bandit(rng: np.random.Generator) -> Draft:
    """One state and two to ten arms."""
    A, extreme = int(rng.integers(2, 11)), rng.choice([0.3, 1.0])
    return np.ones((1, A, 1)), [rng.beta(extreme, extreme, (1, A)) for _ in range(3)]


@family(tight=1.0)
def tight_garnet(rng: np.random.Generator) -> Draft:
    """Random sparse models with thresholds close to the least reachable average."""
    S, A = int(rng.integers(3, 13)), int(rng.integers(2, 5))
    B = int(rng.integers(1, min(S, 4) + 1))
    P = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            P[s, a, rng.choice(S, B, replace=False)] = rng.dirichlet(np.ones(B))
    extreme = rng.choice([0.3, 1.0])
    return P, [rng.beta(extreme, extreme, (S, A)) for _ in range(3)]


@family()
def machine(rng: np.random.Generator) -> Draft:
    """A machine that wears while it works, fast or slowly; from a breakdown only a repair leads, and it is rare."""
    S = int(rng.integers(3, 10))
    wear, repair, shock = log_uniform(rng, 0.02, 0.4), log_uniform(rng, 0.02, 0.5), rng.uniform(0.0, 0.2)
    P, output, upkeep, noise = np.zeros((S, 3, S)), np.zeros((S, 3)), np.zeros((S, 3)), np.zeros((S, 3))
    for s in range(S - 1):
        for a, rate in ((0, wear), (1, wear * rng.uniform(0.2, 0.6))):
            P[s, a, s + 1] += rate * (1.0 - shock)
            P[s, a, S - 1] += rate * shock
            P[s, a, s] += 1.0 - rate
        P[s, 2, max(s - 1, 0)] = 1.0
        output[s] = [1.0, rng.uniform(0.3, 0.8), 0.0]
        output[s] *= 1.0 - 0.5 * s / S
    P[S - 1, :2, S - 1] = 1.0
    P[S - 1, 2, 0], P[S - 1, 2, S - 1] = repair, 1.0 - repair
    upkeep[:, 2] = 1.0
    noise[:, 0] = 1.0
    costs = [noise, upkeep] if rng.random() < 0.5 else [upkeep, noise]
    return P, [-output, *costs]


@family()
def islands(rng: np.random.Generator) -> Draft:
    """Places on a ring, one-way or not, with a few that are worth staying at; a step may fail."""
    S, A = int(rng.integers(3, 13)), int(rng.integers(2, 4))
    fails = 0.0 if rng.random() < 0.5 else rng.uniform(0.02, 0.5)
    P, value, use = np.zeros((S, A, S)), np.ones((S, A)), np.full((S, A), rng.uniform(0.0, 0.5))
    places = np.arange(S)
    P[places, 0, places] = 1.0
    for a, step in ((1, 1), (2, -1))[: A - 1]:
        P[places, a, (places + step) % S] = 1.0 - fails
        P[places, a, places] += fails
    good = rng.choice(S, int(rng.integers(2, min(S, 4) + 1)), replace=False)
    value[good, 0] = rng.uniform(0.0, 0.6, good.size)
    value[good[0], 0], use[good[0], 0], use[good[1], 0] = 0.0, 1.0, 0.0
    return P, [value, use]


@family()
def queue(rng: np.random.Generator) -> Draft:
    """A queue of few places: admit or refuse, serve fast or slowly."""
    S, arrival = int(rng.integers(4, 12)), rng.uniform(0.2, 0.7)
    slow = rng.uniform(0.1, 0.5)
    fast, price = rng.uniform(slow, 0.95), rng.uniform(0.3, 1.0)
    P, bill, length, refused = np.zeros((S, 4, S)), np.zeros((S, 4)), np.zeros((S, 4)), np.zeros((S, 4))
    for s in range(S):
        for a in range(4):
            comes = arrival if a & 1 and s < S - 1 else 0.0
            goes = (fast if a & 2 else slow) if s else 0.0
            P[s, a, min(s + 1, S - 1)] += comes * (1.0 - goes)
            P[s, a, max(s - 1, 0)] += goes * (1.0 - comes)
            P[s, a, s] += comes * goes + (1.0 - comes) * (1.0 - goes)
            refused[s, a] = arrival - comes
            bill[s, a] = price * bool(a & 2)
            length[s, a] = s
    if rng.random() < 0.5:
        return P, [bill + refused, length, refused]
    return P, [bill + 0.1 * length, refused, length]


@family()
def grid(rng: np.random.Generator) -> Draft:
    """A grid with risky cells where steps slip; the goal sends back to the start, at once or after a while."""
    height, width = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    S, slip = height * width, 0.0 if rng.random() < 0.3 else rng.uniform(0.02, 0.2)
    stays = rng.choice([0.0, rng.uniform(0.5, 0.95)])
    moves = np.zeros((S, 4, S))
    for s in range(S):
        y, x = divmod(s, width)
        for a, (dy, dx) in enumerate(((0, 1), (1, 0), (0, -1), (-1, 0))):
            to = min(max(y + dy, 0), height - 1) * width + min(max(x + dx, 0), width - 1)
            moves[s, a, to] = 1.0
    P = (1.0 - slip) * moves + slip * moves.mean(axis=1, keepdims=True)
    P[S - 1] = 0.0
    P[S - 1, :, S - 1], P[S - 1, :, 0] = stays, 1.0 - stays
    steps, risk = np.ones((S, 4)), np.zeros((S, 4))
    steps[S - 1] = 0.0
    risk[1 : S - 1] = rng.random((S - 2, 1)) < rng.uniform(0.2, 0.6)
    return P, [steps, risk, np.eye(4)[rng.integers(4)] * np.ones((S, 1))]


@family()
def automaton(rng: np.random.Generator) -> Draft:
    """Every pair leads to one state, except one pair, which leads anywhere."""
    S, A = int(rng.integers(4, 13)), int(rng.integers(2, 5))
    follows = rng.integers(0, S, size=(S, A))
    follows[:, 0] = (np.arange(S) + 1) % S
    P = np.eye(S)[follows]
    P[rng.integers(S), rng.integers(A)] = rng.dirichlet(np.ones(S))
    extreme = rng.choice([0.3, 1.0])
    return P, [rng.beta(extreme, extreme, (S, A)) for _ in range(3)]


DEVELOPMENT: dict[str, Family] = {
    draw.__name__: draw for draw in (corridor, walls, bandit, tight_garnet, machine, islands, queue, grid, automaton)
}
FIRST_INDEX = 0  # of the families in the seeds

if __name__ == "__main__":
    from zoo import show

    show(DEVELOPMENT, FIRST_INDEX)
