"""The agents of the authors' code in the paper's metric.

    python benchmarks/published_agents.py [--runs 30] [--box 5]

The metric is that of the authors' ``plot_performance.py``: the moving average of each run, over full windows only,
minus the target; its positive part, summed over time; then mean and standard deviation over runs. Values, windows and
rates are those of their scripts. ``linear program`` plans the samples of ``psconrl-published-2023`` with HiGHS, whose
tolerance of 1e-7 is that of the solver in the authors' code; the library plans them exactly.

Then Example 1 (Figure 1): the loop of their ``run_toy_example.py`` with their random numbers, for CMDP-PSRL.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import time

import numpy as np
from scipy.optimize import linprog

import psconrl
from psconrl.agents import PSConRL2023
from psconrl.learning.runtime.contract import Episode
from psconrl.report.metrics import WINDOWS
from psconrl.report.paper_claims import AUTHORS_OPTIMUM, ENDS
from psconrl.simulation.regret import paper_curve

# The rates of the authors' Lagrangian agent, and options of the environments.
RATES = {"marsrover-4x4": 2.9, "marsrover-8x8": 0.0035, "box": 0.000165}
OPTIONS: dict[str, dict[str, bool]] = {"box": {"unreachable": True}}
AGENTS = ("psconrl-published", "psconrl-published-2023", "lagrangian-published")
PROGRAM = "psconrl-published-2023, linear program"
LEAST = 1e-12  # transitions of less probability are left out of the program
ABSENT = 1e-7  # a frequency up to this counts as 0

# Example 1
THETA, BUDGET, ROUNDS, FIGURE_RUNS, ALL_RUNS, DRAWN = 0.9, 0.5275, 1_500, 5, 400, 100_000


class ProgramAgent(PSConRL2023):
    """The agent of 2023 with the linear program of the authors' code in place of the library's planner."""

    def begin(self, state: int) -> Episode:
        """Draw a model, and return the policy of the program, uniform where it has no frequency."""
        P, costs = self._draw().toarray(), self._episode_costs()
        S, A = self.n_states, self.n_actions
        max_steps, caps = self.schedule.caps(self.counts)
        balance = np.repeat(np.eye(S), A, axis=0) - np.where(P < LEAST, 0.0, P)
        found = linprog(
            costs[0].ravel(),
            A_ub=costs[1:].reshape(-1, S * A),
            b_ub=self.thresholds,
            A_eq=np.vstack([balance.T, np.ones(S * A)]),
            b_eq=np.append(np.zeros(S), 1.0),
            method="highs-ds",
        )
        if found.status != 0:
            return Episode.uniform(S, A, max_steps, caps)
        pairs = np.maximum(found.x.reshape(S, A), 0.0)
        states = pairs.sum(axis=1, keepdims=True)
        present = states > ABSENT
        return Episode(np.where(present, pairs / np.where(present, states, 1.0), 1.0 / A), max_steps, caps)


def scores(name: str, env: str, seed: int) -> tuple[float, float, float]:
    """Return regret and violation of a run in the paper's metric, and the share of its episodes that were uniform."""
    model = psconrl.load(env, **OPTIONS.get(env, {}))
    sizes = model.n_states, model.n_actions, model.thresholds
    options = {"rate": RATES[env]} if name == "lagrangian-published" else {}
    agent = (
        ProgramAgent(*sizes, seed=seed) if name == PROGRAM else psconrl.agents.make(name, *sizes, seed=seed, **options)
    )
    trace = psconrl.simulate(model, agent, ENDS[env], seed=seed, checkpoints=ENDS[env])
    aims = AUTHORS_OPTIMUM[env], model.thresholds[0]
    regret, violation = paper_curve(trace.cumulative.T, trace.rounds, WINDOWS[env], aims)[:, -1]
    return regret, violation, trace.episodes.kind.count("uniform") / len(trace.episodes.kind)


def example_run(seed: int) -> float:
    """Return the average cost of CMDP-PSRL in Example 1, with the random numbers of the authors' script.

    Of a choice between two it takes one number from [0, 1), as ``numpy.random.choice`` does. The cost is that of being
    in state 0. Action 1 leads from there to state 1 with probability theta, which always leads back.
    """
    rng = np.random.RandomState(seed)
    state, spent, left, stayed = 0, 0, 1, 1
    for _ in range(ROUNDS):
        theta = rng.beta(left, stayed)
        feasible = 1.0 / (1.0 + theta) <= BUDGET
        leaves = (1.0 - BUDGET) / (BUDGET * theta) if feasible else 0.0  # probability of action 1 in state 0
        action = int(rng.random_sample() >= 1.0 - leaves)
        number = rng.random_sample()
        spent += state == 0
        if state == 1:
            state = 0
        elif action == 1:
            state = int(number >= 1.0 - THETA)
            left, stayed = left + state, stayed + 1 - state
    return spent / ROUNDS


def example() -> None:
    """Print the average cost of the seeds of the paper's Figure 1, and how likely five runs are to have as much."""
    runs = np.array([example_run(seed) for seed in range(1, ALL_RUNS + 1)])
    drawn = np.random.default_rng(0).choice(runs, (DRAWN, FIGURE_RUNS)).mean(axis=1)
    figure = runs[:FIGURE_RUNS].mean()
    print(f"Example 1, CMDP-PSRL, seeds 1 to {FIGURE_RUNS}: {runs[:FIGURE_RUNS].round(3).tolist()}, mean {figure:.3f}")
    print(f"{ALL_RUNS} runs: mean {runs.mean():.3f} (standard error {runs.std(ddof=1) / ALL_RUNS**0.5:.3f})")
    for level in (0.85, figure):
        print(f"mean of {FIGURE_RUNS} of these runs at least {level:.3f}: {(drawn >= level).mean():.3f}")


def main() -> None:
    """Print a table for every environment, and Example 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=30, help="on the grids")
    parser.add_argument("--box", type=int, default=5, help="runs on Box")
    given = parser.parse_args()
    for env in RATES:
        runs = given.box if env == "box" else given.runs
        print(f"\n{env}, {ENDS[env]:,} rounds, {runs} runs\n\n| | regret | violation | uniform episodes | s/run |")
        for name in (*AGENTS, PROGRAM) if env == "marsrover-8x8" else AGENTS:
            began = time.process_time()
            found = np.array([scores(name, env, seed) for seed in range(runs)]).reshape(-1, 3)
            seconds = (time.process_time() - began) / max(1, runs)
            (regret, violation, uniform), (of_regret, of_violation, _) = found.mean(axis=0), found.std(axis=0)
            print(
                f"| {name} | {regret:,.0f} ± {of_regret:,.0f} | {violation:,.0f} ± {of_violation:,.0f} "
                f"| {uniform:.1%} | {seconds:.2f} |",
                flush=True,
            )
    print()
    example()


if __name__ == "__main__":
    main()
