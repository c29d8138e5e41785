"""A model in a file of Storm and PRISM, read with a goal, and its plan written for Storm to check.

    python examples/philosophers.py --at-the-table 3

The dining philosophers of Lehmann and Rabin (1981), in the form that needs no fairness: a hungry philosopher chooses at
random which fork to take first, and puts it down again if the other is taken. A scheduler decides who moves. What is
the least share of time in which a philosopher is hungry, if one must eat half of the time?
"""

import argparse

import numpy as np
from scipy.sparse import csr_array

import psconrl

IDLE, DRAWS, WANTS_LEFT, WANTS_RIGHT, HAS_LEFT, HAS_RIGHT, DROPS_LEFT, DROPS_RIGHT = range(8)
SITS, EATS, LEFT_DOWN, RIGHT_DOWN = range(8, 12)
HUNGRY, EATING = range(DRAWS, DROPS_RIGHT + 1), (SITS, EATS)
# States of the neighbour on either side in which the fork between the two is free.
LEFT_FREE = {IDLE, DRAWS, WANTS_LEFT, WANTS_RIGHT, HAS_LEFT, DROPS_LEFT, LEFT_DOWN}
RIGHT_FREE = {IDLE, DRAWS, WANTS_LEFT, WANTS_RIGHT, HAS_RIGHT, DROPS_RIGHT, RIGHT_DOWN}


def moves(me, left_free, right_free):
    """Return the moves of a philosopher, each a list of equally likely outcomes."""
    return {
        IDLE: [[DRAWS]],
        DRAWS: [[WANTS_LEFT, WANTS_RIGHT]],
        WANTS_LEFT: [[HAS_LEFT]] if left_free else [],
        WANTS_RIGHT: [[HAS_RIGHT]] if right_free else [],
        HAS_LEFT: [[SITS if right_free else DROPS_LEFT]],
        HAS_RIGHT: [[SITS if left_free else DROPS_RIGHT]],
        DROPS_LEFT: [[DRAWS]],
        DROPS_RIGHT: [[DRAWS]],
        SITS: [[EATS]],
        EATS: [[LEFT_DOWN], [RIGHT_DOWN]],
        LEFT_DOWN: [[IDLE]],
        RIGHT_DOWN: [[IDLE]],
    }[me]


def philosophers(n: int) -> psconrl.CMDP:
    """Return the model of all states that n philosophers can reach; an action is who moves, and how."""
    states, numbers, choices = [(IDLE,) * n], {(IDLE,) * n: 0}, []
    for table in states:  # the list grows during the loop
        found = []
        for i, me in enumerate(table):
            left, right = table[(i + 1) % n] in LEFT_FREE, table[(i - 1) % n] in RIGHT_FREE
            for outcomes in moves(me, left, right):
                targets = [(*table[:i], new, *table[i + 1 :]) for new in outcomes]
                for target in targets:
                    if target not in numbers:
                        numbers[target] = len(states)
                        states.append(target)
                found.append([numbers[target] for target in targets])
        choices.append(found or [[numbers[table]]])
    most = max(map(len, choices))
    rows, columns, probabilities = [], [], []
    for s, found in enumerate(choices):
        for a, targets in enumerate(found):
            rows += [s * most + a] * len(targets)
            columns += targets
            probabilities += [1 / len(targets)] * len(targets)
    costs = [[[float(any(x in what for x in table))] * most for table in states] for what in (HUNGRY, EATING)]
    return psconrl.CMDP(
        csr_array((probabilities, (rows, columns)), shape=(len(states) * most, len(states))),
        costs,
        thresholds=[1.0],
        available=np.arange(most) < np.array([[len(found)] for found in choices]),
        cost_names=["hungry", "eat"],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at-the-table", type=int, default=3)
    n = parser.parse_args().at_the_table
    psconrl.save(philosophers(n), "philosophers.umb")

    most = psconrl.plan(psconrl.load("philosophers.umb", maximise="eat"))
    print(f"{n} philosophers: at least one eats for at most {most.value:.6f} of the time")

    model = psconrl.load("philosophers.umb", minimise="hungry", limits="eat >= 0.5")
    plan = psconrl.plan(model).required()
    print(f"with at least half of it, at least one is hungry for {plan.value:.6f} of the time ({plan.status.value})")

    psconrl.save(model, "scheduler.drn", plan.policy)
    print("scheduler.drn: the chain of this plan, for Storm to check")
