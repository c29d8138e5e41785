"""What a log saves an agent: regret at shadow prices of PSConRL that begins where a log ends, and of one without.

Logs are written by uniform play. "System" is the agent that knows the structure, ``PSConRL.of``, and learns the noise
from transitions, in which the demand of the inventory is censored by the stock.

python benchmarks/log_learning.py --runs 20
"""

import argparse

import numpy as np

import psconrl
from log_systems import SYSTEMS, behaviours, written_log

STRUCTURED = {"queue, System": "queue", "inventory, System": "inventory"}


def main() -> None:
    """Print a table with one line for each system and length of the log."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--rounds", type=int, nargs="+", default=[0, 500, 5000], help="of the log")
    parser.add_argument("--horizon", type=int, default=5000, help="rounds of the agent")
    parser.add_argument("--systems", nargs="+", default=["queue", "inventory", "garnet", *STRUCTURED])
    options = parser.parse_args()
    print(f"{'system':17} {'log':>6} {'regret at shadow prices':>24} {'sd':>8}   overspent")
    for name in options.systems:
        system = psconrl.load_system(STRUCTURED[name]) if name in STRUCTURED else None
        model = SYSTEMS[STRUCTURED.get(name, name)]()
        best = psconrl.plan(model)
        weights = np.append(1.0, best.multipliers)
        goal = np.append(best.costs[0], model.thresholds)
        for rounds in options.rounds:
            scores, over = [], []
            for run in range(options.runs):
                if system is None:
                    agent = psconrl.PSConRL(model.n_states, model.n_actions, model.thresholds, seed=[run, 2])
                else:
                    agent = psconrl.PSConRL.of(system, seed=[run, 2])
                if rounds:
                    agent.learn_from(written_log(model, behaviours(model)["uniform"], rounds, run))
                trace = psconrl.simulate(model, agent, options.horizon, seed=[run, 3], trajectory=True)
                assert trace.trajectory is not None
                spent = trace.trajectory.costs.sum(axis=0) - options.horizon * goal
                scores.append(float(spent @ weights))
                over.append(float(np.maximum(spent[1:], 0.0).max()))
            mean, sd = np.mean(scores), np.std(scores)
            print(f"{name:17} {rounds:6} {mean:24.1f} {sd:8.1f} {np.mean(over):11.1f}", flush=True)


if __name__ == "__main__":
    main()
