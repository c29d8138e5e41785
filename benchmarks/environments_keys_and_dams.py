"""Held-out environments, second set: written once the first had been examined, before any run on these.

Small (11 to 50 states), communicating, every action available everywhere, binding constraints. ``NEARLY_DETERMINISTIC``
lists those that are. ``python benchmarks/environments_keys_and_dams.py`` lists their optima.
"""

from collections.abc import Callable, Iterable

import numpy as np

import psconrl
from environments_mazes_and_wards import show

Moves = Iterable[tuple[float, int]]


def key_room(width: int = 5, height: int = 4) -> psconrl.CMDP:
    """Fetch the key, then open the chest; the short way to it is risky. Deterministic.

    State: a cell, and whether the key is held. Actions: left, right, up, down.
    """
    key, chest, start, risky = (2, 0), (2, height - 1), (0, 0), {(x, 1) for x in range(width - 1)}
    cells = [(x, y) for y in range(height) for x in range(width)]
    number = {(cell, held): i for i, (cell, held) in enumerate((cell, held) for held in (0, 1) for cell in cells)}
    moves = ((-1, 0), (1, 0), (0, -1), (0, 1))
    P, gain, risk = empty(len(number), 4)
    for ((x, y), held), s in number.items():
        for a, (dx, dy) in enumerate(moves):
            cell = (min(max(x + dx, 0), width - 1), min(max(y + dy, 0), height - 1))
            opened = bool(held) and cell == chest
            P[s, a, number[(start, 0) if opened else (cell, int(held or cell == key))]] = 1.0
            gain[s, a], risk[s, a] = float(opened), float(cell in risky)
    return psconrl.CMDP.from_rewards(P, gain, [risk], [0.06], cost_names=("opened", "risk"))


def battery(places: int = 6, levels: int = 5) -> psconrl.CMDP:
    """A cart on a ring with a battery: go, haul (earns, takes twice as much), or stand still (charges at place 0).

    An empty cart is towed to place 0, and tows are limited. Deterministic, but for a battery that sometimes holds.
    """
    P, gain, tow = empty(places * levels, 3)
    for s in range(places * levels):
        place, level = divmod(s, levels)
        for a, used in enumerate((1, 2, 0)):
            to = place if a == 2 else (place + 1) % places
            charged = min(level + 2, levels - 1) if a == 2 and place == 0 else level - used
            for probability, left in ((0.97, charged), (0.03, min(charged + 1, levels - 1))):
                P[s, a, to * levels + left if left >= 0 else levels - 1] += probability
                tow[s, a] += probability * (left < 0)
            gain[s, a] = float(a == 1)
    return psconrl.CMDP.from_rewards(P, gain, [tow], [0.03], cost_names=("hauled", "tows"))


def ring_road(states: int = 20) -> psconrl.CMDP:
    """Round and round: one step, a shortcut of five that is risky at some places, or one step back. Deterministic."""
    P, gain, risk = empty(states, 3)
    for s in range(states):
        for a, step in enumerate((1, 5, -1)):
            P[s, a, (s + step) % states] = 1.0
        gain[s, 0] = gain[s, 1] = float(s >= states - 5)
        risk[s, 1] = (0.2, 0.9, 0.5)[s % 3]
    return psconrl.CMDP.from_rewards(P, gain, [risk], [0.1], cost_names=("rounds", "risk"))


def noisy_automaton(seed: int, states: int = 25, actions: int = 3, slip: float = 0.03) -> psconrl.CMDP:
    """Every action leads to one state, or rarely to any; redrawn for every run."""
    rng = np.random.default_rng([11, seed])
    while True:
        P = (1 - slip) * np.eye(states)[rng.integers(0, states, size=(states, actions))] + slip / states
        costs = rng.random((2, states, actions))
        limit = between(P, costs, 1)
        if limit is not None:
            return psconrl.CMDP(P, costs, [limit])


def neighbours(seed: int, states: int = 30, actions: int = 3) -> psconrl.CMDP:
    """Random steps of at most four to either side on a ring, and two constraints; redrawn for every run."""
    rng = np.random.default_rng([12, seed])
    while True:
        P, _, _ = empty(states, actions)
        for s in range(states):
            for a in range(actions):
                P[s, a, (s + np.arange(-4, 5)) % states] = rng.dirichlet(np.full(9, 0.5))
        costs = rng.random((3, states, actions))
        limits = [between(P, costs, 1), between(P, costs, 2)]
        if None not in limits and psconrl.plan(psconrl.CMDP(P, costs, limits)).status.value == "optimal":
            return psconrl.CMDP(P, costs, limits)


def forest(ages: int = 11, fire: float = 0.06) -> psconrl.CMDP:
    """A wood grows older or burns: wait, thin (some timber, three years back), or fell. Old wood is wanted."""
    P, timber, young = empty(ages, 3)
    for s in range(ages):
        for a, to in enumerate((min(s + 1, ages - 1), max(s - 3, 0), 0)):
            P[s, a, to] += 1 - fire
            P[s, a, 0] += fire
        timber[s] = [0.0, 0.4 * s / ages, (s / ages) ** 2]
        young[s] = float(s < 5)
    return psconrl.CMDP.from_rewards(P, timber, [young], [0.3], cost_names=("timber", "young"))


def fishery(levels: int = 13) -> psconrl.CMDP:
    """Catch 0 to 3 of a stock that grows at random, most when half full; a low stock is limited, and so is closing."""
    P, catch, low = empty(levels, 4)
    closed = np.zeros_like(low)
    for s in range(levels):
        for a in range(4):
            caught = min(a, s)
            left = s - caught
            rate = 0.1 + 0.8 * 4 * left * (levels - 1 - left) / (levels - 1) ** 2
            for more, probability in ((0, 1 - rate), (1, 0.6 * rate), (2, 0.4 * rate)):
                P[s, a, min(left + more, levels - 1)] += probability
            catch[s, a], low[s, a], closed[s, a] = caught, float(left < 4), float(a == 0)
    names = ("catch", "low", "closed")
    return psconrl.CMDP.from_rewards(P, catch, [low, closed], [0.02, 0.04], cost_names=names)


def dam(levels: int = 11) -> psconrl.CMDP:
    """Release 0 to 3 units of a lake; power grows with the level. Floods and dry days are limited."""
    inflow = (0.35, 0.3, 0.2, 0.1, 0.05)
    P, power, flood = empty(levels, 4)
    dry = np.zeros_like(flood)
    for s in range(levels):
        for a in range(4):
            released = min(a, s)
            for units, probability in enumerate(inflow):
                level = s - released + units
                P[s, a, min(level, levels - 1)] += probability
                flood[s, a] += probability * max(level - levels + 1, 0)
            power[s, a] = released * (0.3 + 0.7 * s / levels)
            dry[s, a] = float(released < 1)
    names = ("power", "flood", "dry")
    return psconrl.CMDP.from_rewards(P, power, [flood, dry], [0.02, 0.22], cost_names=names)


def polling(places: int = 4) -> psconrl.CMDP:
    """One server, two queues: serve here, or go to the other one, which takes a while. The second must not wait long.

    State: both queues, and where the server is. The objective is the first queue and what going over costs.
    """
    number = {
        state: i
        for i, state in enumerate((m, n, at) for m in range(places + 1) for n in range(places + 1) for at in (0, 1))
    }
    P, price, waiting = empty(len(number), 2)
    for (m, n, at), s in number.items():
        for a in range(2):
            price[s, a], waiting[s, a] = m + 0.5 * a, n
            served = 0.7 if a == 0 else 0.0
            for first, p in ((1, 0.25), (0, 0.75)):
                for second, q in ((1, 0.2), (0, 0.8)):
                    for done, r in ((1, served), (0, 1 - served)):
                        one = min(max(m - done * (at == 0), 0) + first, places)
                        two = min(max(n - done * (at == 1), 0) + second, places)
                        for over, probability in ((1, 0.8), (0, 0.2)) if a == 1 else ((0, 1.0),):
                            P[s, a, number[one, two, (at + over) % 2]] += p * q * r * probability
    return psconrl.CMDP(P, [price, waiting], [1.0], cost_names=("price", "second waits"))


def empty(states: int, actions: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros((states, actions, states)), np.zeros((states, actions)), np.zeros((states, actions))


def between(P: np.ndarray, costs: np.ndarray, i: int) -> float | None:
    """Return the midpoint of the least average cost i and its unconstrained value; None if they are close."""
    free = psconrl.plan(psconrl.CMDP(P, costs[[0, i]], [1.0])).costs[1]
    least = psconrl.plan(psconrl.CMDP(P, costs[[i]])).costs[0]
    return 0.5 * (free + least) if free - least > 0.05 else None


KEYS_AND_DAMS: dict[str, Callable[..., psconrl.CMDP]] = {
    build.__name__: build
    for build in (key_room, battery, ring_road, noisy_automaton, neighbours, forest, fishery, dam, polling)
}
NEARLY_DETERMINISTIC = ("key_room", "battery", "ring_road", "noisy_automaton")
DRAWN = ("noisy_automaton", "neighbours")


if __name__ == "__main__":
    show({name: (lambda build=build: build(0)) if name in DRAWN else build for name, build in KEYS_AND_DAMS.items()})
