"""Learning on your own system, with names instead of numbers, safe against crashes and power cuts.

    python examples/own_system.py learned.npz 5000     # kill it at any time; the same command continues

The loop in ``learn`` is all you need: ask for an action, take it, report the outcome, and save now and then. The file
is written atomically, and holds the agent with its generators. If your system can be restored to an earlier state, as
this one can, an interrupted run ends with the same bits as an uninterrupted one. If it cannot, the agent forgets only
the rounds since the last save: it continues from the state that it is asked about next.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

import psconrl

WEAR = {"fast": 0.3, "slow": 0.05}
PROFIT = {"fine": {"fast": 10, "slow": 6, "repair": -2}, "worn": {"fast": 4, "slow": 3, "repair": -2}}
NOISE = {"fine": {"fast": 8, "slow": 3, "repair": 1}, "worn": {"fast": 9, "slow": 5, "repair": 1}}


class Machine:
    """A machine that is fine or worn: run it fast or slowly, or repair it. Replace it by your own system."""

    def __init__(self) -> None:
        self.state = "fine"
        self.rng = np.random.default_rng(1)

    def take(self, action: str) -> list[float]:
        """Take an action; return the costs, the objective (here minus the profit) first, then the constrained ones."""
        costs = [-float(PROFIT[self.state][action]), float(NOISE[self.state][action])]
        if action == "repair":
            self.state = "fine" if self.state == "fine" or self.rng.random() < 0.9 else "worn"
        elif self.state == "fine" and self.rng.random() < WEAR[action]:
            self.state = "worn"
        return costs

    def saved(self) -> dict[str, Any]:
        """Return the state of the machine and its generator, for saving."""
        return {"state": self.state, "rng": self.rng.bit_generator.state}

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what ``saved`` returned."""
        self.state, self.rng.bit_generator.state = saved["state"], saved["rng"]


def new_agent() -> psconrl.LabelledAgent:
    """Return an agent that knows the names, the limit on noise, and that no step can earn more than 10."""
    agent = psconrl.PSConRL(n_states=2, n_actions=3, thresholds=[4.0], optimistic_cost=-10.0, seed=0)
    return psconrl.LabelledAgent(agent, states=["fine", "worn"], actions=["fast", "slow", "repair"])


def learn(path: Path, rounds: int, save_every: int = 100) -> psconrl.LabelledAgent:
    """Learn for a number of rounds in all, continuing from the file if it exists."""
    machine, agent, done = Machine(), new_agent(), 0
    if path.exists():
        agent = psconrl.LabelledAgent.load(path)
        machine.restore(agent.extra["machine"])
        done = agent.extra["rounds"]
    log = psconrl.CSVLog(path.with_suffix(".csv"), ["loss", "noise"], states=agent.states, actions=agent.actions)
    agent.watch(log)  # `psconrl monitor learned.csv` shows it as it grows
    for t in range(done + 1, rounds + 1):
        action = agent.act(machine.state)
        costs = machine.take(action)
        agent.observe(action, machine.state, costs)
        if t % save_every == 0 or t == rounds:
            agent.save(path, extra={"rounds": t, "machine": machine.saved()})
            print(t, flush=True)
    return agent


if __name__ == "__main__":
    learned = learn(Path(sys.argv[1]), int(sys.argv[2])).agent
    loss, noise = learned.counts.cost_sums.sum(axis=1) / learned.counts.visits.sum()
    print(f"average profit {-loss:.2f} (6.05 is possible), noise {noise:.2f} (limit 4)")
