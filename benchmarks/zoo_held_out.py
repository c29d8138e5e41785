"""Families of small environments that are kept apart: no agent and no default was tuned on them.

Written from a list of families alone, before any agent was played on them. Every family draws a random member, see
``zoo``. Run this file to list members and their optima.
"""

from math import comb

import numpy as np

from zoo import Draft, Family, family, log_uniform


@family()
def inventory(rng: np.random.Generator) -> Draft:
    """A shelf of few places: order, hold, and lose sales when it is empty."""
    capacity, A = int(rng.integers(3, 10)), int(rng.integers(2, 5))
    most, p = int(rng.integers(1, 4)), rng.uniform(0.2, 0.8)
    S, holding, purchase = capacity + 1, rng.uniform(0.1, 1.0), rng.uniform(0.0, 1.0)
    P, bill, lost, full = np.zeros((S, A, S)), np.zeros((S, A)), np.zeros((S, A)), np.zeros((S, A))
    for s in range(S):
        for a in range(A):
            stock = min(s + a, capacity)
            bill[s, a] = holding * stock / capacity + purchase * (stock - s)
            full[s, a] = s + a > capacity
            for demand in range(most + 1):
                weight = comb(most, demand) * p**demand * (1.0 - p) ** (most - demand)
                P[s, a, max(stock - demand, 0)] += weight
                lost[s, a] += weight * max(demand - stock, 0)
    return P, [bill, lost, full]


@family()
def polling(rng: np.random.Generator) -> Draft:
    """Two short queues and one server that serves either of them, or rests."""
    places, A = int(rng.integers(1, 4)), int(rng.integers(2, 4))
    arrivals, served = rng.uniform(0.1, 0.5, 2), rng.uniform(0.4, 0.95, 2)
    width = places + 1
    S = width**2
    P, bill, second, refused = np.zeros((S, A, S)), np.zeros((S, A)), np.zeros((S, A)), np.zeros((S, A))
    for s in range(S):
        i, j = divmod(s, width)
        bill[s], second[s] = i / places, j / places
        bill[s, :2] += rng.uniform(0.0, 0.5)
        for a in range(A):
            refused[s, a] = arrivals[0] * (i == places) + arrivals[1] * (j == places)
            done = served[a] if a < 2 and (i, j)[a] > 0 else 0.0
            for leaves, p in ((1, done), (0, 1.0 - done)):
                x, y = (i - leaves * (a == 0), j - leaves * (a == 1))
                for first, p_first in ((1, arrivals[0]), (0, 1.0 - arrivals[0])):
                    for other, p_other in ((1, arrivals[1]), (0, 1.0 - arrivals[1])):
                        to = min(x + first, places) * width + min(y + other, places)
                        P[s, a, to] += p * p_first * p_other
    return P, [bill, second, refused]


@family()
def river(rng: np.random.Generator) -> Draft:
    """A river with a current: a small reward downstream, a large one upstream, and effort to swim."""
    S, A = int(rng.integers(3, 11)), 2
    up, back = rng.uniform(0.3, 0.7), rng.uniform(0.02, 0.25)
    P, value, effort, far = np.zeros((S, A, S)), np.ones((S, A)), np.zeros((S, A)), np.zeros((S, A))
    for s in range(S):
        P[s, 0, max(s - 1, 0)] = 1.0
        P[s, 1, min(s + 1, S - 1)] += up
        P[s, 1, max(s - 1, 0)] += back
        P[s, 1, s] += 1.0 - up - back
    value[0, 0], value[S - 1, 1] = rng.uniform(0.7, 0.99), 0.0
    effort[:, 1] = 1.0
    far[S // 2 :] = 1.0
    return P, [value, effort, far] if rng.random() < 0.5 else [value, far, effort]


@family()
def line(rng: np.random.Generator) -> Draft:
    """A line on which every action in every place has its own probabilities of a step left, right, or none."""
    S, A = int(rng.integers(3, 13)), int(rng.integers(2, 5))
    P, spread = np.zeros((S, A, S)), log_uniform(rng, 0.1, 2.0)
    for s in range(S):
        for a in range(A):
            for to, p in zip((max(s - 1, 0), s, min(s + 1, S - 1)), rng.dirichlet(np.full(3, spread)), strict=True):
                P[s, a, to] += p
    place = np.linspace(0.0, 1.0, S)[:, None]
    value = 1.0 - place + rng.uniform(0.0, 0.3) * rng.random((S, A))
    return P, [value, place + 0.2 * rng.random((S, A)), rng.random((S, A))]


@family()
def battery(rng: np.random.Generator) -> Draft:
    """A battery under a tariff that follows a clock: charge, discharge or wait; the sun may charge it too."""
    hours, charges = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    S, tariff, sun = hours * charges, rng.random(hours), rng.uniform(0.0, 0.4)
    late = rng.choice([0.0, rng.uniform(0.05, 0.3)])
    P, bill, use, empty = np.zeros((S, 3, S)), np.zeros((S, 3)), np.zeros((S, 3)), np.zeros((S, 3))
    for hour in range(hours):
        for charge in range(charges):
            s = hour * charges + charge
            for a, change in enumerate((0, 1, -1)):
                new = min(max(charge + change, 0), charges - 1)
                bill[s, a] = tariff[hour] * (1 + new - charge)
                use[s, a] = abs(new - charge)
                empty[s, a] = new == 0
                for gain, p in ((1, sun), (0, 1.0 - sun)):
                    for after, q in (((hour + 1) % hours, 1.0 - late), (hour, late)):
                        P[s, a, after * charges + min(new + gain, charges - 1)] += p * q
    return P, [bill, use, empty] if rng.random() < 0.5 else [bill, empty, use]


@family()
def mixed_rows(rng: np.random.Generator) -> Draft:
    """In half of the states actions are deterministic, in the other half they lead anywhere."""
    S, A = int(rng.integers(2, 13)), int(rng.integers(2, 5))
    P = np.eye(S)[rng.integers(0, S, size=(S, A))]
    random = rng.choice(S, (S + 1) // 2, replace=False)
    P[random] = 1.0 / S
    extreme = rng.choice([0.3, 1.0])
    return P, [rng.beta(extreme, extreme, (S, A)) for _ in range(3)]


@family()
def dense(rng: np.random.Generator) -> Draft:
    """Every pair leads anywhere, with probabilities from a Dirichlet distribution."""
    S, A = int(rng.integers(2, 13)), int(rng.integers(2, 6))
    P = rng.dirichlet(np.full(S, log_uniform(rng, 0.1, 3.0)), size=(S, A))
    extreme = rng.choice([0.3, 1.0])
    return P, [rng.beta(extreme, extreme, (S, A)) for _ in range(3)]


@family()
def harbour(rng: np.random.Generator) -> Draft:
    """A quay with piers: the end of each is a regime of its own, with its own value and use."""
    piers, length = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    S, A, drift = 1 + piers * length, piers + 1, 0.0 if rng.random() < 0.5 else rng.uniform(0.01, 0.2)
    P, value, uses = np.zeros((S, A, S)), np.ones((S, A)), np.zeros((2, S, A))
    P[0, piers, 0] = 1.0
    for pier in range(piers):
        cells = 1 + pier * length + np.arange(length)
        P[0, pier, cells[0]] = 1.0
        for k, cell in enumerate(cells):
            back, onward = (cells[k - 1] if k else 0), cells[min(k + 1, length - 1)]
            P[cell, :piers, back] = 1.0
            P[cell, piers, onward], P[cell, piers, back] = 1.0 - drift, drift
        value[cells[-1], piers] = rng.uniform(0.0, 0.9)
        uses[pier % 2, cells[-1], piers] = rng.uniform(0.3, 1.0)
    return P, [value, uses[0], uses[1]]


@family()
def ageing(rng: np.random.Generator) -> Draft:
    """A plant that ages and fails rarely; a crew repairs it in steps, maintenance makes it younger."""
    ages, phases = int(rng.integers(2, 8)), int(rng.integers(1, 4))
    S, fails, mends = ages + phases, log_uniform(rng, 0.002, 0.1), log_uniform(rng, 0.05, 0.9)
    P, output, crew, failed = np.zeros((S, 3, S)), np.zeros((S, 3)), np.zeros((S, 3)), np.zeros((S, 3))
    for s in range(S):
        crew[s] = [0.0, 0.5, 1.0]
        if s < ages:
            rate = min(fails * 3.0**s, 0.6)
            P[s, 0, ages] += rate
            P[s, 0, min(s + 1, ages - 1)] += (1.0 - rate) * 0.5
            P[s, 0, s] += (1.0 - rate) * 0.5
            P[s, 1, ages], P[s, 1, s] = rate / 4.0, 1.0 - rate / 4.0
            P[s, 2, 0] = 1.0
            output[s] = [1.0, rng.uniform(0.3, 0.9), 0.0]
        else:
            onward = s + 1 if s + 1 < S else 0
            P[s, 0, s] = 1.0
            for a, p in ((1, mends / 2.0), (2, mends)):
                P[s, a, onward], P[s, a, s] = p, 1.0 - p
            failed[s] = 1.0
    return P, [-output, crew, failed] if rng.random() < 0.5 else [-output, failed, crew]


@family(tight=1.0, extras=("free",))
def tight_arms(rng: np.random.Generator) -> Draft:
    """One state, few arms, a threshold close to the least cost and one that is free."""
    A, extreme = int(rng.integers(2, 6)), rng.choice([0.3, 1.0])
    return np.ones((1, A, 1)), [rng.beta(extreme, extreme, (1, A)) for _ in range(3)]


HELD_OUT: dict[str, Family] = {
    draw.__name__: draw
    for draw in (inventory, polling, river, line, battery, mixed_rows, dense, harbour, ageing, tight_arms)
}
FIRST_INDEX = 100  # of the families in the seeds

if __name__ == "__main__":
    from zoo import show

    show(HELD_OUT, FIRST_INDEX)
