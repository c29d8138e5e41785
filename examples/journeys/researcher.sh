# From an idea to the figure and the table of a paper: your own agent against those of the library.
# Run it in an empty folder: bash researcher.sh
set -eu

cat > margin.py <<'PYTHON'
"""Certainty equivalence with a margin on the thresholds that decreases with time."""
import numpy as np
from psconrl import CMDP, Episode, plan
from psconrl.agents import Agent

class Margin(Agent):
    """Plans on observed frequencies, with thresholds that are lower at first."""

    def __init__(
        self, n_states, n_actions, thresholds, costs=None, *, margin=0.5, explore=0.05, optimistic_cost=None, seed=None
    ):
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.margin, self.explore, self.optimistic_cost = margin, explore, optimistic_cost

    def begin(self, state):
        S, A = self.n_states, self.n_actions
        costs = self.counts.hopeful_costs(self.optimistic_cost) if self.costs is None else self.costs
        lowered = self.thresholds - self.margin / np.sqrt(self.rounds + 1)
        seen = self.counts.transitions.reshape(S, A, S)
        best = plan(CMDP.from_counts(seen, costs, lowered, prior=0.1 / S, initial=state))
        policy = (1 - self.explore) * best.policy + self.explore / A
        return Episode(policy, visit_caps=self.counts.pairs.clip(min=1), kind="optimal")
PYTHON

cat > study.toml <<'TOML'
name = "Does a margin help?"
replicates = 5

[agents.margin]
agent = "margin.py:Margin"

[experiments.marsrover-4x4]
agents = ["margin", "psconrl", "c-ucrl"]
horizon = 2_000

[experiments.queue]
agents = ["margin", "psconrl"]
horizon = 2_000
TOML

psconrl sweep study.toml --out study.db
psconrl figure study.db --metric regret,violation --rename margin="Margin (ours)" --width 3.25in --out figure.pdf
psconrl table study.db --rename margin="Margin (ours)" --format latex --out table.tex
psconrl report study.db -o study.html  # one page with everything, to share
