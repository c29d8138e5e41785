"""How often the advice on what to measure changes the verdict "not enough data".

    python benchmarks/log_experiments.py --runs 50

A log that is too short is continued by the experiment that was advised, for as many rounds as were advised (at most
``--most``), and judged again.
"""

import argparse
from dataclasses import fields

import numpy as np

from log_systems import SYSTEMS, behaviours, limits, written_log
from psconrl.data.advice.improvement import Verdict, improve
from psconrl.data.log import Log


def joined(first: Log, second: Log) -> Log:
    """Return the rounds of two logs, one after the other."""
    own = {field.name: getattr(first, field.name) for field in fields(first)}
    arrays = ("states", "actions", "next_states", "costs", "run", "lines")
    own |= {name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in arrays}
    own["follows"] = np.concatenate([first.follows, second.follows])
    return Log.of_arrays(**own)


def main() -> None:
    """Print a table with one line for each system and behaviour."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--rounds", type=int, nargs="+", default=[300, 1000])
    parser.add_argument("--most", type=int, default=300_000)
    parser.add_argument("--systems", nargs="+", default=["queue", "machine", "rover", "garnet"])
    options = parser.parse_args()
    print(f"{'system':10} {'behaviour':9} {'rounds':>6} {'too few':>7} {'changed':>7} {'median rounds':>13} verdicts")
    for name in options.systems:
        model = SYSTEMS[name]()
        for kind, policy in behaviours(model).items():
            for rounds in options.rounds:
                few, changed, advised, after = 0, 0, [], {}
                for run in range(options.runs):
                    log = written_log(model, policy, rounds, run)
                    found = improve(log, limits=limits(model), draws=1000, seed=run)
                    if found.verdict is not Verdict.NOT_ENOUGH or found.needed is None:
                        continue
                    few += 1
                    advised.append(found.needed.rounds)
                    more = int(min(np.ceil(found.needed.rounds), options.most)) + 1
                    longer = joined(log, written_log(model, found.needed.policy, more, 10_000 + run))
                    verdict = improve(longer, limits=limits(model), today=log, draws=1000, seed=run).verdict
                    changed += verdict is not Verdict.NOT_ENOUGH
                    after[verdict.value] = after.get(verdict.value, 0) + 1
                median = np.median(advised) if advised else np.nan
                print(f"{name:10} {kind:9} {rounds:6} {few:7} {changed:7} {median:13.0f} {after}", flush=True)


if __name__ == "__main__":
    main()
