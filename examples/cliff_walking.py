"""A Gymnasium environment with a limit of your own: walk along the cliff, but not too often at its very edge.

    python examples/cliff_walking.py --horizon 60000

The table inside CliffWalking gives the exact optimum, as a reference for learning. The agent knows only the numbers of
states and actions, and the limit.
"""

import argparse

import gymnasium

import psconrl

LIMIT = 0.4


def at_the_edge(state: int, action: int, next_state: int) -> float:
    """Return a cost of 1 for every step into the row above the cliff."""
    return float(24 <= next_state < 36)


def main() -> None:
    """Compute the exact optimum, then learn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--horizon", type=int, default=60_000, help="rounds to learn for")
    horizon = parser.parse_args().horizon

    cliff = gymnasium.make("CliffWalking-v1")
    best = psconrl.plan(psconrl.CMDP.from_gymnasium(cliff, cost=at_the_edge, thresholds=[LIMIT]))
    print(f"exact: reward {best.value:.4f} a step, at the edge {best.costs[1]:.4f} (limit {LIMIT})")

    agent = psconrl.PSConRL(n_states=48, n_actions=4, thresholds=[LIMIT], optimistic_cost=1.0, seed=0)
    trace = psconrl.simulate(psconrl.continuing(cliff, cost=at_the_edge), agent, horizon, seed=0)
    late = trace.window_averages()[-len(trace.rounds) // 5 :].mean(axis=0)
    print(f"learned, last fifth of {horizon} steps: reward {-late[0]:.4f}, at the edge {late[1]:.4f}")


if __name__ == "__main__":
    main()
