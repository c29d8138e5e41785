"""Held-out environments, third set: written when the default had been chosen, before any run on these.

Small (12 to 36 states), communicating, every action available everywhere, binding constraints. ``NEARLY_DETERMINISTIC``
lists those that are. ``python benchmarks/environments_warehouses_and_tides.py`` lists their optima.
"""

from collections.abc import Callable

import numpy as np

import psconrl
from environments_keys_and_dams import between, empty
from environments_mazes_and_wards import show


def warehouse() -> psconrl.CMDP:
    """Fetch goods at place 0, bring them to place 4; places 2 and 3 between are watched, the longer way round is not.

    State: a place on a ring of ten, and whether goods are carried. Actions: clockwise, the other way, load or unload.
    Deterministic.
    """
    P, gain, watched = empty(20, 3)
    for place in range(10):
        for load in (0, 1):
            s = 2 * place + load
            for a, step in enumerate((1, -1)):
                P[s, a, 2 * ((place + step) % 10) + load] = 1.0
            P[s, 2, 2 * place + (1 if place == 0 else 0 if place == 4 else load)] = 1.0
            gain[s, 2] = float(place == 4 and load)
            watched[s] = float(place in (2, 3))
    return psconrl.CMDP.from_rewards(P, gain, [watched], [0.3], cost_names=("brought", "watched"))


def clockwork(first: int = 5, second: int = 7) -> psconrl.CMDP:
    """Two hands; each action moves one, or both. It pays to bring both up at once; moving both is limited."""
    P, gain, both = empty(first * second, 3)
    for i in range(first):
        for j in range(second):
            for a, (di, dj) in enumerate(((1, 0), (0, 1), (1, 1))):
                to = (i + di) % first * second + (j + dj) % second
                P[i * second + j, a, to] = 1.0
                gain[i * second + j, a] = float(to == 0 and a == 2)
                both[i * second + j, a] = float(a == 2)
    return psconrl.CMDP.from_rewards(P, gain, [both], [0.25], cost_names=("both up", "moved both"))


def icy_grid(side: int = 5, slip: float = 0.02) -> psconrl.CMDP:
    """From corner to corner and round again; thin ice on one way, a toll on the other, both limited. Rare slips."""
    S = side * side
    P, gain, ice = empty(S, 4)
    toll = np.zeros_like(ice)
    moves = ((-1, 0), (1, 0), (0, -1), (0, 1))
    for s in range(S):
        x, y = s % side, s // side
        for a in range(4):
            for b, (dx, dy) in enumerate(moves):
                probability = (1 - slip) * (a == b) + slip / 4
                to = min(max(x + dx, 0), side - 1) + side * min(max(y + dy, 0), side - 1)
                P[s, a, 0 if s == S - 1 else to] += probability
            gain[s, a] = float(s == S - 1)
            ice[s, a], toll[s, a] = float(x > y), float(x < y)
    return psconrl.CMDP.from_rewards(P, gain, [ice, toll], [0.35, 0.1], cost_names=("rounds", "ice", "toll"))


def lift(floors: int = 9) -> psconrl.CMDP:
    """Up, down, or load at the bottom and sell above: more at the top, but being there is limited. Deterministic."""
    P, gain, high = empty(2 * floors, 3)
    for floor in range(floors):
        for load in (0, 1):
            s = 2 * floor + load
            P[s, 0, 2 * min(floor + 1, floors - 1) + load] = 1.0
            P[s, 1, 2 * max(floor - 1, 0) + load] = 1.0
            P[s, 2, 2 * floor + int(floor == 0)] = 1.0
            gain[s, 2] = floor**1.5 if load and floor else 0.0
            high[s] = float(floor > floors // 2)
    return psconrl.CMDP.from_rewards(P, gain, [high], [0.25], cost_names=("sold", "high"))


def call_centre(places: int = 11) -> psconrl.CMDP:
    """Callers wait and give up; one, two or three at the desks. Giving up and overtime are limited."""
    P, wages, gave_up = empty(places + 1, 3)
    overtime = np.zeros_like(gave_up)
    for n in range(places + 1):
        for a in range(3):
            come, served, leave = 0.3, 0.15 * min(n, a + 1), 0.02 * max(n - a - 1, 0)
            P[n, a, min(n + 1, places)] += come
            P[n, a, max(n - 1, 0)] += served + leave if n else 0.0
            P[n, a, n] += 1.0 - P[n, a].sum()
            wages[n, a], gave_up[n, a], overtime[n, a] = a, leave + come * (n == places), float(a == 2)
    names = ("wages", "gave up", "overtime")
    return psconrl.CMDP(P, [wages, gave_up, overtime], [0.03, 0.3], cost_names=names)


def epidemic(levels: int = 14) -> psconrl.CMDP:
    """Cases rise and fall at random; do nothing, advise, or close. A full hospital is constrained."""
    P, price, full = empty(levels, 3)
    for n in range(levels):
        for a, contact in enumerate((0.5, 0.32, 0.12)):
            share = n / (levels - 1)
            up, down = contact * (0.15 + 3.2 * share * (1 - share)), 0.12 + 0.45 * share
            P[n, a, min(n + 1, levels - 1)] += up * 0.75
            P[n, a, min(n + 2, levels - 1)] += up * 0.25
            P[n, a, max(n - 1, 0)] += min(down, 1 - up)
            P[n, a, n] += 1.0 - P[n, a].sum()
            price[n, a], full[n, a] = (0.0, 0.4, 1.5)[a], float(n > 8)
    return psconrl.CMDP(P, [price, full], [0.05], cost_names=("price", "full"))


def spare_parts(most: int = 6) -> psconrl.CMDP:
    """Parts on the shelf and on order; order none, one or two. Lost sales are limited."""
    number = {(n, k): i for i, (n, k) in enumerate((n, k) for n in range(most + 1) for k in range(3))}
    P, price, lost = empty(len(number), 3)
    for (n, k), s in number.items():
        for a in range(3):
            price[s, a] = 0.3 * n + a + 0.8 * (a > 0)
            for arrives, p in ((k, 0.6), (0, 0.4)) if k else ((0, 1.0),):
                for wanted, q in ((0, 0.5), (1, 0.35), (2, 0.15)):
                    lost[s, a] += p * q * max(wanted - n - arrives, 0)
                    shelf = min(max(n + arrives - wanted, 0), most)
                    P[s, a, number[shelf, min(k - arrives + a, 2)]] += p * q
    return psconrl.CMDP(P, [price, lost], [0.08], cost_names=("price", "lost"))


def store_of_power(levels: int = 8) -> psconrl.CMDP:
    """Buy, wait or sell at prices that move; wear by turning round is limited."""
    market = np.array([[0.8, 0.18, 0.02], [0.15, 0.7, 0.15], [0.02, 0.18, 0.8]])
    P, gain, wear = empty(3 * levels, 3)
    for level in range(levels):
        for price in range(3):
            for a, step in enumerate((1, 0, -1)):
                to = min(max(level + step, 0), levels - 1)
                P[3 * level + price, a, 3 * to : 3 * to + 3] = market[price]
                gain[3 * level + price, a] = (level - to) * (1.0, 2.0, 3.5)[price]
                wear[3 * level + price, a] = abs(level - to)
    return psconrl.CMDP.from_rewards(P, gain, [wear], [0.3], cost_names=("gain", "wear"))


def tides(places: int = 6, turn: float = 0.01) -> psconrl.CMDP:
    """A boat in a stream that rarely turns: out, back, or at anchor. Being far out is limited. Mixes slowly."""
    P, catch, far = empty(2 * places, 3)
    for place in range(places):
        for tide, drift in enumerate((0.5, -0.5)):
            for a, way in enumerate((0.3, -0.3, 0.0)):
                push = 0.1 * drift if a == 2 else 0.5 * (drift + 2 * way)
                for to, p in ((place + 1, max(push, 0.0)), (place - 1, max(-push, 0.0)), (place, 1 - abs(push))):
                    for other, q in ((tide, 1 - turn), (1 - tide, turn)):
                        P[2 * place + tide, a, 2 * min(max(to, 0), places - 1) + other] += p * q
                catch[2 * place + tide, a] = 0.2 * place if a == 2 else 0.1 * place
                far[2 * place + tide, a] = float(place > 3)
    return psconrl.CMDP.from_rewards(P, catch, [far], [0.3], cost_names=("catch", "far out"))


def clusters(seed: int, states: int = 24, actions: int = 3) -> psconrl.CMDP:
    """Four groups of places; moves stay mostly inside a group, two successors each. Redrawn for every run."""
    rng = np.random.default_rng([13, seed])
    while True:
        P, _, _ = empty(states, actions)
        for s in range(states):
            for a in range(actions):
                group = s // 6 if rng.random() < 0.85 else int(rng.integers(4))
                P[s, a, 6 * group + rng.choice(6, 2, replace=False)] = rng.dirichlet([1.0, 1.0])
        P = 0.98 * P + 0.02 / states
        costs = rng.random((2, states, actions))
        limit = between(P, costs, 1)
        if limit is not None:
            return psconrl.CMDP(P, costs, [limit])


WAREHOUSES_AND_TIDES: dict[str, Callable[..., psconrl.CMDP]] = {
    build.__name__: build
    for build in (
        warehouse,
        clockwork,
        icy_grid,
        lift,
        call_centre,
        epidemic,
        spare_parts,
        store_of_power,
        tides,
        clusters,
    )
}
NEARLY_DETERMINISTIC = ("warehouse", "clockwork", "icy_grid", "lift")
DRAWN = ("clusters",)


if __name__ == "__main__":
    show(
        {
            name: (lambda build=build: build(0)) if name in DRAWN else build
            for name, build in WAREHOUSES_AND_TIDES.items()
        }
    )
