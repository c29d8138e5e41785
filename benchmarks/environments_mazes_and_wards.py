"""Held-out environments: written before any variant of the learned prior was played on them.

Small (9 to 36 states), communicating, every action available everywhere, at least one binding constraint. Some are
nearly deterministic (maze, door, automaton), some are not. Run this file to list their optima.
"""

from collections.abc import Callable

import numpy as np

import psconrl

MAZE = """
S . . # . . .
# # . # . R .
. . . R . # .
. # # # . # .
. . R . . # G
"""


def maze() -> psconrl.CMDP:
    """A maze with a short risky path and a detour; deterministic."""
    return psconrl.gridworld(MAZE, threshold=0.05)


def slippery_maze() -> psconrl.CMDP:
    """The maze where one step in twenty slips."""
    return psconrl.gridworld(MAZE, slip=0.05, threshold=0.06)


def rare_door(length: int = 8, probability: float = 0.02) -> psconrl.CMDP:
    """Two corridors; the door between them opens once in fifty tries, and the reward lies behind it, at a risk.

    Action 0 goes left, action 1 right. Going back from the far end leads to the near one.
    """
    S = 2 * length
    P, gain, risk = np.zeros((S, 2, S)), np.zeros((S, 2)), np.zeros((S, 2))
    for s in range(S):
        P[s, 0, max(s - 1, 0)] = 1.0
        right = min(s + 1, S - 1)
        P[s, 1, right] = probability if s == length - 1 else 1.0
        P[s, 1, s] += 1.0 - P[s, 1, right] if right != s else 0.0
    P[S - 1, 1] = np.eye(S)[length]  # in circles behind the door
    gain[S - 1, 1] = 1.0
    risk[S - 1, 1] = 1.0
    return psconrl.CMDP.from_rewards(P, gain, [risk], [0.08], cost_names=("gain", "risk"))


def automaton(states: int = 30, actions: int = 3, seed: int = 7) -> psconrl.CMDP:
    """Every action leads to one state, drawn once; the optimum mixes cycles that need not meet."""
    rng = np.random.default_rng(seed)
    while True:
        follows = rng.integers(0, states, size=(states, actions))
        follows[:, 0] = (np.arange(states) + 1) % states  # so that all communicate
        P = np.eye(states)[follows]
        costs = rng.random((2, states, actions))
        free = psconrl.plan(psconrl.CMDP(P, costs, [1.0])).costs
        least = psconrl.plan(psconrl.CMDP(P, costs[1:])).costs[0]
        if free[1] - least > 0.05:
            return psconrl.CMDP(P, costs, [0.5 * (free[1] + least)])


def maintenance(levels: int = 12) -> psconrl.CMDP:
    """A machine that wears: produce, overhaul (two levels back), or replace; downtime is constrained.

    A worn machine makes less and jumps further towards a breakdown, from which only a replacement leads.
    """
    S = levels
    P, output, off = np.zeros((S, 3, S)), np.zeros((S, 3)), np.zeros((S, 3))
    for s in range(S):
        broken = s == S - 1
        wear = 0.15 + 0.5 * s / S
        P[s, 0, min(s + 1, S - 1)] += wear * 0.8
        P[s, 0, min(s + 3, S - 1)] += wear * 0.2
        P[s, 0, s] += 1 - wear
        P[s, 1, s if broken else max(s - 2, 0)] = 1.0
        P[s, 2, 0], P[s, 2, s] = 0.7, 0.3
        P[s, 2] /= P[s, 2].sum()
        output[s, 0] = 0.0 if broken else 1.0 - 0.6 * s / S
        off[s] = [1.0 if broken else 0.0, 1.0, 1.0]
    return psconrl.CMDP.from_rewards(P, output, [off], [0.08], cost_names=("output", "time off"))


def admission(places: int = 6) -> psconrl.CMDP:
    """Two classes of customers in one room of few places; constraints on the share of each that is rejected.

    State: how many of each. Actions: whom to admit (none, the first, the second, both). The second pays more and
    stays longer.
    """
    states = [(i, j) for i in range(places + 1) for j in range(places + 1 - i)]
    index = {state: s for s, state in enumerate(states)}
    S = len(states)
    come, leave = (0.25, 0.2), (0.08, 0.05)
    P, gain, refused = np.zeros((S, 4, S)), np.zeros((S, 4)), np.zeros((2, S, 4))
    for s, (i, j) in enumerate(states):
        for a in range(4):
            room = i + j < places
            left = 1.0
            for k, (rate, bit) in enumerate(zip(come, (1, 2), strict=True)):
                lets = room and bool(a & bit)
                if lets:
                    P[s, a, index[(i + 1, j) if k == 0 else (i, j + 1)]] += rate
                    left -= rate
                    gain[s, a] += rate * (1.0, 2.5)[k]
                else:
                    refused[k, s, a] = rate
            for n, rate, to in ((i, leave[0], (i - 1, j)), (j, leave[1], (i, j - 1))):
                if n:
                    P[s, a, index[to]] += n * rate
                    left -= n * rate
            P[s, a, s] += left
    names = ("gain", "first refused", "second refused")
    return psconrl.CMDP.from_rewards(P, gain, refused, [0.08, 0.09], cost_names=names)


def network(places: int = 5) -> psconrl.CMDP:
    """Route jobs to a fast, expensive server, to a slow, cheap one, or away; constraints on waiting and on refusals."""
    states = [(i, j) for i in range(places + 1) for j in range(places + 1)]
    index = {state: s for s, state in enumerate(states)}
    S = len(states)
    arrive, fast, slow = 0.35, 0.4, 0.2
    P, price, waiting, refused = np.zeros((S, 3, S)), np.zeros((S, 3)), np.zeros((S, 3)), np.zeros((S, 3))
    for s, (i, j) in enumerate(states):
        waiting[s] = i + j
        for a in range(3):
            left = 1.0
            to = {0: (i + 1, j), 1: (i, j + 1), 2: (i, j)}[a]
            accepted = a < 2 and max(to) <= places
            refused[s, a] = 0.0 if accepted else arrive
            price[s, a] = arrive * (1.0, 0.3, 0.0)[a] if accepted else 0.0
            if accepted:
                P[s, a, index[to]] += arrive
                left -= arrive
            for n, rate, back in ((i, fast, (i - 1, j)), (j, slow, (i, j - 1))):
                if n:
                    P[s, a, index[back]] += rate
                    left -= rate
            P[s, a, s] += left
    return psconrl.CMDP(P, [price, waiting, refused], [2.0, 0.05], cost_names=("price", "waiting", "refused"))


def long_river() -> psconrl.CMDP:
    """RiverSwim, twice as long as usual."""
    return psconrl.load("riverswim", length=12)


def ward(beds: int = 8) -> psconrl.CMDP:
    """Beds for urgent and planned patients; plan admissions so that urgent ones are rarely rejected.

    State: beds taken. Actions: admit none, one or two of the planned a day. Urgent ones come at random.
    """
    S = beds + 1
    P, gain, sent_on, crowded = np.zeros((S, 3, S)), np.zeros((S, 3)), np.zeros((S, 3)), np.zeros((S, 3))
    urgent = {0: 0.55, 1: 0.35, 2: 0.10}
    for s in range(S):
        crowded[s] = float(s > beds - 2)
        for a in range(3):
            planned = min(a, beds - s)
            gain[s, a] = planned
            for n, p in urgent.items():
                inside = min(s + planned + n, beds)
                sent_on[s, a] += p * max(s + planned + n - beds, 0)
                for home in range(inside + 1):  # each goes home with .2
                    ways = _binomial(inside, home, 0.2)
                    P[s, a, inside - home] += p * ways
    return psconrl.CMDP.from_rewards(
        P, gain, [sent_on, crowded], [0.01, 0.12], cost_names=("planned", "sent on", "crowded")
    )


def _binomial(n: int, k: int, p: float) -> float:
    ways = 1.0
    for i in range(k):
        ways *= (n - i) / (i + 1)
    return float(ways * p**k * (1 - p) ** (n - k))


MAZES_AND_WARDS: dict[str, Callable[[], psconrl.CMDP]] = {
    build.__name__: build
    for build in (
        maze,
        slippery_maze,
        rare_door,
        automaton,
        maintenance,
        admission,
        network,
        long_river,
        ward,
    )
}
NEARLY_DETERMINISTIC = ("maze", "rare_door", "automaton")


def show(environments: dict[str, Callable[[], psconrl.CMDP]]) -> None:
    """List the environments with their optima."""
    for name, build in environments.items():
        cmdp = build()
        best = psconrl.plan(cmdp)
        print(f"{name}: {cmdp}, {best.status.value}, value {best.value:.5g}, prices {best.multipliers.round(3)}")


if __name__ == "__main__":
    show(MAZES_AND_WARDS)
