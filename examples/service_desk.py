"""Your queue: write the model, compute what its limits cost, then let an agent learn it without the model.

    python examples/service_desk.py --horizon 50000 --plot tradeoff.png

A counter with room for ten. In every minute a customer arrives with probability 0.5; one in service leaves with
probability 0.4 (slow) or 0.8 (fast). Fast service costs energy. Waiting customers are the delay.
"""

import argparse

import numpy as np

import psconrl
from psconrl.report.figure_files import write_figure
from psconrl.report.trade_off_figures import pareto_figure

ROOM, ARRIVAL = 10, 0.5
SERVICE = {"slow": 0.4, "fast": 0.8}


def model(delay_limit: float) -> psconrl.CMDP:
    """Return the model: minimise energy, with a limit on the average number of customers; states are customers."""
    P = np.zeros((ROOM + 1, len(SERVICE), ROOM + 1))
    for n in range(ROOM + 1):
        for a, leaves in enumerate(SERVICE.values()):
            leaves *= n > 0
            arrives = ARRIVAL * (n < ROOM)
            P[n, a, min(n + 1, ROOM)] += arrives * (1 - leaves)
            P[n, a, max(n - 1, 0)] += (1 - arrives) * leaves
            P[n, a, n] += arrives * leaves + (1 - arrives) * (1 - leaves)
    energy = np.tile([1.0, 3.0], (ROOM + 1, 1))
    delay = np.tile(np.arange(ROOM + 1.0)[:, None], (1, 2))
    return psconrl.CMDP(
        P, [energy, delay], {"delay": delay_limit}, cost_names=["energy", "delay"], action_names=list(SERVICE)
    )


def main() -> None:
    """Run the example, from an impossible limit to a learned policy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--horizon", type=int, default=50_000, help="rounds to learn for")
    parser.add_argument("--plot", help="draw the trade-off curve to this file")
    options = parser.parse_args()

    impossible = psconrl.plan(model(delay_limit=0.5))
    print(impossible.infeasibility)

    queue = model(delay_limit=2.0)
    best = psconrl.plan(queue)
    print(f"with a limit of 2 customers: energy {best.value:.4f} a minute, certificate holds: {best.certificate.holds}")
    print(f"one customer less in the queue would cost {best.multipliers[0]:.4f} energy a minute")
    for n in best.randomised_states:
        print(f"randomises with {n} customers: fast with probability {best.policy[n, 1]:.3f}")
    if options.plot:
        write_figure(pareto_figure(psconrl.pareto(queue, "delay")), options.plot)

    agent = psconrl.PSConRL(queue.n_states, queue.n_actions, queue.thresholds, queue.costs, seed=0)
    trace = psconrl.simulate(queue, agent, options.horizon, seed=0)
    energy, delay = trace.averages[-1]
    print(f"learned without the model in {options.horizon} minutes: energy {energy:.3f}, delay {delay:.3f}")


if __name__ == "__main__":
    main()
