"""An experiment of your own from Python: run it in parallel, kill it, continue it, and make the page.

python examples/sweep.py mine.db --horizon 5000 --replicates 10
"""

import argparse
from pathlib import Path

from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec
from psconrl.experiment.store import Store
from psconrl.report import page, page_contents
from psconrl.report.curves import read_experiments
from psconrl.report.statistics import mean_interval

SPEC = """
seed = 1
replicates = {replicates}

[agents.sampling]
agent = "psconrl"
grid = {{ prior = [0.01, 0.1, 1.0] }}

[experiments.slippery]
env = "marsrover-4x4"
horizon = {horizon}
options = {{ slip = 0.1 }}
agents = ["sampling", "cmdp-psrl"]
"""


def main() -> None:
    """Run what is missing, print the regrets, write the page beside the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--horizon", type=int, default=5_000)
    parser.add_argument("--replicates", type=int, default=10)
    options = parser.parse_args()

    spec = parse_spec(SPEC.format(horizon=options.horizon, replicates=options.replicates), "my experiment")
    outcome = run_sweep(spec.jobs(), options.results, title=spec.name)
    print(f"{outcome.done} runs done, {outcome.known} were there")
    with Store(options.results) as store:
        for experiment in read_experiments(store):
            for label, curves in experiment.curves.items():
                print(f"{experiment.name}, {label}: regret {mean_interval(curves.regret[:, -1])}")
        page.write_report(page_contents.build(store), options.results.with_suffix(".html"))


if __name__ == "__main__":  # worker processes import this file
    main()
