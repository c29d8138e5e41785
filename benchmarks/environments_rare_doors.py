"""Development environments for beliefs that must not become certain too soon, and for infeasible samples.

Doors that open rarely among walls, rows whose randomness differs from that of all others, one state, thresholds near
the least reachable value, rare repairs. ``python benchmarks/environments_rare_doors.py`` lists their optima.
"""

from collections.abc import Callable

import numpy as np

import psconrl
from environments_keys_and_dams import between, empty
from environments_mazes_and_wards import show
from models import two_queues


def door(probability: float, length: int = 12) -> psconrl.CMDP:
    """A corridor with a door in the middle; the far end pays, may be used for some of the time, and leads to the start.

    Action 0 goes left, action 1 right. Nothing else is random. The near end pays a tenth.
    """
    P, gain, use = empty(length, 2)
    for s in range(length):
        P[s, 0, max(s - 1, 0)] = 1.0
        P[s, 1, (s + 1) % length] = 1.0
    half = length // 2
    P[half, 1] = 0.0
    P[half, 1, half + 1], P[half, 1, half] = probability, 1.0 - probability
    gain[length - 1, 1], gain[0, 0] = 1.0, 0.1 / length
    use[length - 1, 1] = 1.0
    return psconrl.CMDP.from_rewards(P, gain, [use], [0.6 / (length - 1 + 1 / probability)], initial=0)


def slow_step(probability: float = 0.15, length: int = 8) -> psconrl.CMDP:
    """The corridor of eight states with one step that succeeds rarely."""
    model = psconrl.load("corridor")
    P = model.transition.toarray().reshape(length, 2, length).copy()
    middle = length // 2
    onward = int(P[middle, 1].argmax())
    P[middle, 1] = 0.0
    P[middle, 1, onward], P[middle, 1, middle] = probability, 1.0 - probability
    return psconrl.CMDP(P, model.costs, model.thresholds, initial=0)


def shortcut(probability: float = 0.2, side: int = 5) -> psconrl.CMDP:
    """Two rooms, and a long way around the wall between them; one place of the wall gives way at some of the tries.

    A grid of two rows: the upper one from the start to the middle, the lower one back. Actions: up, down, left, right.
    """
    S = 2 * side * 2
    P, gain, risk = empty(S, 4)
    width = 2 * side
    for s in range(S):
        x, y = s % width, s // width
        for a, (dx, dy) in enumerate(((0, -1), (0, 1), (-1, 0), (1, 0))):
            to_x, to_y = x + dx, y + dy
            free = 0 <= to_x < width and 0 <= to_y < 2 and not (dy != 0 and x not in (0, width - 1))
            P[s, a, to_x + width * to_y if free else s] = 1.0
    middle = side
    P[middle, 1, middle], P[middle, 1, middle + width] = 1.0 - probability, probability  # through the wall
    goal = middle + width + 1
    P[goal] = 0.0
    P[goal, :, middle - 1] = 1.0
    gain[goal] = 1.0
    risk[goal, 0] = 1.0
    gain[goal, 1:] = 0.5
    return psconrl.CMDP.from_rewards(P, gain, [risk], [0.04], initial=0)


def mixed_rows(seed: int, states: int = 12, actions: int = 3) -> psconrl.CMDP:
    """Every other row is deterministic, the others are uniform over five states; all share their actions."""
    rng = np.random.default_rng([4, seed])
    while True:
        P, _, _ = empty(states, actions)
        for s in range(states):
            for a in range(actions):
                follows = rng.choice(states, size=5 if rng.random() < 0.5 else 1, replace=False)
                P[s, a, follows] = 1.0 / follows.size
            P[s, 0] = np.eye(states)[(s + 1) % states]
        costs = rng.random((2, states, actions))
        limit = between(P, costs, 1)
        if limit is not None:
            return psconrl.CMDP(P, costs, [limit], initial=0)


def arms(costs: list[tuple[float, float]], limit: float) -> psconrl.CMDP:
    """One state; every action has an objective and a limited cost."""
    table = np.array(costs).T[:, None, :]
    return psconrl.CMDP(np.ones((1, len(costs), 1)), table, [limit])


def tight(seed: int, states: int = 12, actions: int = 3) -> psconrl.CMDP:
    """A random model with a threshold that is hardly above the least reachable value."""
    rng = np.random.default_rng([5, seed])
    P = rng.dirichlet(np.full(states, 0.3), size=(states, actions))
    costs = rng.random((2, states, actions))
    least = float(psconrl.plan(psconrl.CMDP(P, costs[1:])).value)
    free = float(psconrl.plan(psconrl.CMDP(P, costs, [1.0])).costs[1])
    return psconrl.CMDP(P, costs, [least + 0.02 * (free - least)], initial=0)


def rare_repair(probability: float = 0.01, levels: int = 8) -> psconrl.CMDP:
    """A machine that wears with use, and is repaired with a small probability per round; downtime is limited."""
    P, output, off = empty(levels, 2)
    for s in range(levels):
        worn = min(s + 1, levels - 1)
        P[s, 0, worn] += 0.05
        P[s, 0, s] += 0.95
        P[s, 1, 0] += probability
        P[s, 1, s] += 1.0 - probability
        output[s, 0] = 1.0 - s / (levels - 1)
        off[s, 1] = 1.0
    return psconrl.CMDP.from_rewards(P, output, [off], [0.3], initial=0)


def random_line(states: int = 30) -> psconrl.CMDP:
    """A line on which a move succeeds with probability .6, stays with .3 and fails backwards with .1; both ends pay."""
    P, gain, use = empty(states, 2)
    for s in range(states):
        for a, step in enumerate((-1, 1)):
            P[s, a, min(max(s + step, 0), states - 1)] += 0.6
            P[s, a, s] += 0.3
            P[s, a, min(max(s - step, 0), states - 1)] += 0.1
    gain[0, 0], gain[states - 1, 1] = 0.05, 1.0
    use[states - 1, 1] = 1.0
    return psconrl.CMDP.from_rewards(P, gain, [use], [0.4], initial=0)


DOUBT: dict[str, Callable[..., psconrl.CMDP]] = {
    "door .5": lambda: door(0.5),
    "door .15": lambda: door(0.15),
    "door .05": lambda: door(0.05),
    "door .02": lambda: door(0.02),
    "slow step": slow_step,
    "shortcut": shortcut,
    "mixed rows": mixed_rows,
    "two arms": lambda: arms([(0.2, 0.8), (0.8, 0.1)], 0.3),
    "eight arms": lambda: arms([(0.1 * k, 0.9 - 0.1 * k) for k in range(8)], 0.3),
    "ten arms": lambda: arms([(0.05 + 0.1 * k, (0.95 - 0.1 * k) ** 2) for k in range(10)], 0.2),
    "tight": tight,
    "tight, 25 states": lambda seed: tight(seed, 25),
    "rare repair": rare_repair,
    "two queues": lambda: two_queues(6).with_thresholds([3.0]),
    "random line": random_line,
}
DRAWN = ("mixed rows", "tight", "tight, 25 states")
LEARNED = ("two arms", "eight arms")  # costs are learned
NOISY = ("ten arms",)  # learned from Bernoulli variates


if __name__ == "__main__":
    show({name: (lambda make=make: make(0)) if name in DRAWN else make for name, make in DOUBT.items()})
