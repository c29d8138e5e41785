"""Gymnasium's taxi in the rain, in a town with a toll on its centre: what does a limit on tolls cost?

    python examples/taxi.py

In the rain a move goes astray one time in five. The taxi earns 20 for every passenger delivered and pays 1 for every
other step; the next passenger waits at a random place. The town allows one step in five to be a move onto one of the
three middle squares, which are on most short routes. Nothing is learned here: the table inside the environment is a
model of 500 states, whose optimum is computed and proven.
"""

from collections.abc import Iterator

from gymnasium.envs.toy_text import TaxiEnv

import psconrl

LIMIT = 0.2
CENTRE = {(2, 1), (2, 2), (2, 3)}
PLACES = ("red", "green", "yellow", "blue", "the taxi")


def square(state: int) -> tuple[int, int]:
    """Return the row and column of the taxi."""
    return divmod(int(state) // 20, 5)


def toll(state: int, action: int, next_state: int) -> float:
    """Return 1 for every move that ends in the centre, else 0."""
    return float(square(state) != square(next_state) and square(next_state) in CENTRE)


def town(rain: bool, limit: float) -> psconrl.CMDP:
    """Return the model: maximise the earnings per step, within a limit on tolls."""
    return psconrl.CMDP.from_gymnasium(TaxiEnv(is_rainy=rain), cost=toll, thresholds={"toll": limit})


def randomised(best: psconrl.Plan) -> Iterator[str]:
    """Describe the states in which the plan randomises."""
    moves = ("south", "north", "east", "west", "pick up", "drop off")
    for s in best.randomised_states:
        probabilities = ", ".join(f"{move} {p:.3f}" for move, p in zip(moves, best.policy[s], strict=True) if p > 0)
        yield f"taxi at {square(s)}, passenger at {PLACES[s // 4 % 5]}, to {PLACES[s % 4]}: {probabilities}"


def main() -> None:
    """Plan without rain, with rain, and with rain within the limit."""
    for name, rain in (("dry", False), ("rain", True)):
        free = psconrl.plan(town(rain, limit=1.0))
        print(f"{name}, no limit: earns {free.value:.4f} a step, {free.costs[1]:.4f} tolls")
    model = town(rain=True, limit=LIMIT)
    best = psconrl.plan(model)
    print(f"rain, limit {LIMIT}: earns {best.value:.4f} a step, {best.costs[1]:.4f} tolls")
    print(f"certificate holds: {psconrl.certify(model, best).holds}; one toll less costs {best.multipliers[0]:.4f}")
    for line in randomised(best):
        print(f"randomises: {line}")
    for limit in (0.15, 0.1, 0.0):  # at 0 even an accidental toll is forbidden: the taxi stands still
        tighter = psconrl.plan(model.with_thresholds({"toll": limit}), start=best)
        print(f"rain, limit {limit}: earns {tighter.value:.4f} a step")


if __name__ == "__main__":
    main()
