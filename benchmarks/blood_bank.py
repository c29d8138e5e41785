"""Learned, noisy costs: a blood bank of two groups and two ages, 81 or 625 states and 25 actions.

    python benchmarks/blood_bank.py [--room 2] [--rounds 4000] [--runs 6] [--emission happened]

The agent knows which transitions are possible. Scores are regret plus overspending at twice its price, in percent of
those of uniform play: the mean, its standard error, and the worst run. With ``--emission happened`` requests are drawn,
and each round incurs its realised costs: the units ordered and outdated, the requests that failed. The other emissions
draw noise around the mean costs of a pair.
"""

import argparse
import itertools
import os
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import psconrl
from psconrl.agents import LearnedMass
from psconrl.base.arrays import Floats
from psconrl.learning.runtime.player import Player

MOST = 4  # units of a group in one order
DEMAND = {"O": (0.35, 0.40, 0.20, 0.05), "A": (0.30, 0.40, 0.20, 0.10)}  # probabilities of 0, 1, 2, 3 units a round


def blood_bank(room: int = 2) -> psconrl.CMDP:
    """Order blood of two groups, so that few units outdate and few requests fail.

    State: units of group O of one and of two days, then of group A, 0 to ``room`` each. Requests are met oldest first;
    group A takes what is left of O. Units two days old outdate, units one day old age, orders arrive fresh.
    """
    levels = range(room + 1)
    states = list(itertools.product(levels, repeat=4))
    number = {state: k for k, state in enumerate(states)}
    orders = list(itertools.product(range(MOST + 1), repeat=2))
    S, A = len(states), len(orders)
    P, costs = np.zeros((S, A, S)), np.zeros((3, S, A))
    for (s, state), (k, order) in itertools.product(enumerate(states), enumerate(orders)):
        for (d, u), (e, v) in itertools.product(enumerate(DEMAND["O"]), enumerate(DEMAND["A"])):
            following, paid = _round(state, order, d, e, room)
            P[s, k, number[following]] += u * v
            costs[:, s, k] += u * v * paid
    names = ["units", "shortage O", "shortage A"]
    return psconrl.CMDP(P, costs, [0.15, 0.15], initial=0, cost_names=names)


def _round(
    state: tuple[int, ...], order: tuple[int, ...], asked_o: int, asked_a: int, room: int
) -> tuple[tuple[int, ...], Floats]:
    """Return the next state, and the costs of a round: units ordered and outdated, shortage of O and of A."""
    o1, o2, a1, a2 = state
    old_o, young_o, short_o = _issued(o2, o1, asked_o)
    old_a, young_a, short_a = _issued(a2, a1, asked_a)
    old_o, young_o, short_a = _issued(old_o, young_o, short_a)
    following = min(order[0], room), young_o, min(order[1], room), young_a
    return following, np.array([sum(order) + 0.5 * (old_o + old_a), short_o, short_a])


def _issued(old: int, young: int, asked: int) -> tuple[int, int, int]:
    """Return the remaining units of both groups, and the shortage."""
    from_old = min(old, asked)
    from_young = min(young, asked - from_old)
    return old - from_old, young - from_young, asked - from_old - from_young


def play(room: int, agent: Player, rounds: int, seed: int) -> Floats:
    """Run an agent where every round incurs its realised costs; return the sums (3,) of the costs."""
    states = list(itertools.product(range(room + 1), repeat=4))
    number = {state: k for k, state in enumerate(states)}
    orders = list(itertools.product(range(MOST + 1), repeat=2))
    rng = np.random.default_rng(seed)
    requests = [rng.choice(len(shares), p=shares, size=rounds).tolist() for shares in DEMAND.values()]
    total, state = np.zeros(3), 0
    for asked_o, asked_a in zip(*requests, strict=True):
        action = agent.act(state)
        following, costs = _round(states[state], orders[action], asked_o, asked_a, room)
        state = number[following]
        agent.observe(action, state, costs)
        total += costs
    return total


def score(agent: str, room: int, rounds: int, run: int, emission: str) -> float:
    """Return the score of a run; ``agent``: uniform, known or learned."""
    model = blood_bank(room)
    best = psconrl.plan(model)
    if agent == "uniform":
        made = psconrl.agents.make("uniform", model.n_states, model.n_actions, model.thresholds, seed=run)
    else:
        belief = LearnedMass(support=(model.transition.toarray() > 0).reshape(model.n_states, model.n_actions, -1))
        costs = model.costs if agent == "known" else None
        sizes = (model.n_states, model.n_actions, model.thresholds)
        made = psconrl.PSConRL(*sizes, costs, belief=belief, optimistic_cost=None, seed=run)
    if emission == "happened":
        total = play(room, made, rounds, 10_000 + run)
    else:
        total = psconrl.simulate(model, made, rounds, seed=10_000 + run, emission=emission).cumulative[-1]
    lost = total[0] - rounds * best.certificate.lower
    over = np.maximum(total[1:] - rounds * model.thresholds, 0.0)
    return float(lost + 2.0 * over @ best.multipliers)


def main() -> None:
    """Print a line for each agent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--room", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=4000)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--emission", default="happened")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    model = blood_bank(options.room)
    print(model, psconrl.plan(model))
    unit = 1.0
    with ProcessPoolExecutor(options.workers) as pool:
        for agent in ("uniform", "known", "learned"):
            runs = [(agent, options.room, options.rounds, run, options.emission) for run in range(options.runs)]
            found = np.array(list(pool.map(score, *zip(*runs, strict=True))))
            unit = found.mean() / 100.0 if agent == "uniform" else unit
            error = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.nan
            print(
                f"{agent:8} {found.mean():9.0f} = {found.mean() / unit:5.1f}% ± {error / unit:.1f}, "
                f"worst {found.max() / unit:.1f}%",
                flush=True,
            )


if __name__ == "__main__":
    main()
