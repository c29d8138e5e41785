"""Storm as a reference: models through files in both directions, in a virtual environment with stormpy.

    python -m venv storm && storm/bin/pip install -e '.[storm]'
    storm/bin/python benchmarks/storm_models.py [--sources DIR] [--philosophers 4]

Checks: (1) Storm reads a model that we write, as ``.umb`` and as ``.drn``, with the same size, and finds the same best
averages; (2) the chain of a plan that we write has in Storm the averages that the plan claims, for every cost; (3)
with a folder of PRISM sources (``resources/examples/testfiles`` of Storm), those of Storm's tests are built by Storm,
read here, and give the values that are in these tests.
"""

import argparse
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

import psconrl
from psconrl.model.exchange.drn_writer import write_drn
from psconrl.model.exchange.files import read_explicit
from psconrl.model.exchange.umb import write_umb

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from known_models import client_server, philosophers, resource_gathering, simple_lra

SAME = 1e-5  # Storm iterates to 1e-6 by default
COUNTERS = "GOLD_TO_COLLECT=0,GEM_TO_COLLECT=0,B=0"
# source, constants, objective, limits, value: from Storm's tests
KNOWN = [
    ("mdp/multiobj_simple_lra.nm", "", "first", [], Fraction(5)),
    ("mdp/multiobj_simple_lra.nm", "", "second", ["first >= 5"], Fraction(80, 11)),
    ("mdp/multiobj_simple_lra.nm", "", "second", [], Fraction(16)),
    ("mdp/resource-gathering.nm", COUNTERS, "rew_gold", ["rew_gem >= 0"], Fraction(27, 241)),
    ("mdp/resource-gathering.nm", COUNTERS, "rew_gold", [f"rew_gem >= {27 / 349!r}"], Fraction(27, 349)),
    ("mdp/resource-gathering.nm", COUNTERS, "rew_gem", [], Fraction(1, 10)),
    ("mdp/resource-gathering.nm", COUNTERS, "rew_gold", [f"attacks <= {19 / 723!r}"], Fraction(27, 241)),
    ("mdp/resource-gathering.nm", COUNTERS, "rew_gold", [f"attacks <= {1 / 93!r}"], Fraction(3, 31)),
    ("mdp/resource-gathering.nm", COUNTERS, "rew_gold", ["attacks <= 0"], Fraction(1, 12)),
    ("mdp/cs_nfail3.nm", "", "grants", [], Fraction(333, 1000)),
]
failed = 0


def report(what: str, ours: float, theirs: float) -> None:
    global failed
    same = abs(ours - theirs) <= SAME * max(1.0, abs(theirs))
    failed += not same
    print(f"{'ok  ' if same else 'OFF '} {what:62} {ours:.9g} {theirs:.9g}", flush=True)


def storm():
    import stormpy

    return stormpy


def in_storm(path: Path):
    """Return a file as read by Storm."""
    stormpy = storm()
    if path.suffix == ".umb":
        return stormpy.build_model_from_umb(str(path))
    return stormpy.build_model_from_drn(str(path))


def averages(model, formula: str) -> float:
    """Return Storm's result from the initial state."""
    stormpy = storm()
    found = stormpy.model_checking(model, stormpy.parse_properties(formula)[0])
    return found.get_value(model.initial_states[0])


def states_and_choices(model) -> tuple[int, int, int]:
    return model.nr_states, model.nr_choices, model.nr_transitions


def check_both_ways(name: str, model, objective: str, limits: list[str], folder: Path) -> None:
    """Check that Storm reads our files, finds the same unconstrained optimum, and the averages of our plan's chain."""
    for ending, write in ((".umb", write_umb), (".drn", write_drn)):
        path = folder / f"model{ending}"
        path.write_bytes(write(model))
        theirs = in_storm(path)
        stuck = int((np.diff(model.first_choice) == 0).sum())
        report(f"{name}{ending} states", model.n_states, theirs.nr_states)
        report(f"{name}{ending} transitions", model.targets.size, theirs.nr_transitions)
        for sense in ("max", "min") if not stuck else ():
            goal = {"maximise" if sense == "max" else "minimise": objective}
            ours = psconrl.plan(psconrl.load(path, **goal)).value
            report(f"{name}{ending} {objective} {sense}", ours, averages(theirs, f'R{{"{objective}"}}{sense}=? [LRA]'))
        constrained = psconrl.load(path, maximise=objective, limits=limits)
        plan = psconrl.plan(constrained)
        chain = folder / f"chain{ending}"
        psconrl.save(constrained, chain, plan.policy)
        read = in_storm(chain)
        for cost, average in zip(constrained.cost_names, constrained.names.signs * plan.costs, strict=True):
            report(f"{name}{ending} chain: {cost}", float(average), averages(read, f'R{{"{cost}"}}=? [LRA]'))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=Path, help="Storm's resources/examples/testfiles")
    parser.add_argument("--philosophers", type=int, default=3)
    arguments = parser.parse_args()
    print("     what, ours, Storm's or known")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        check_both_ways("simple_lra", simple_lra(), "second", ["first >= 2.5"], folder)
        check_both_ways("resource_gathering", resource_gathering(), "gold", ["attacks <= 0.01", "gem >= 0.02"], folder)
        check_both_ways("client_server", client_server(), "grants", [], folder)
        for environment in ("queue", "box", "ward", "inventory"):
            cmdp = psconrl.load(environment)
            for ending in (".umb", ".drn"):
                psconrl.save(cmdp, folder / f"model{ending}")
                report(f"{environment}{ending} states", cmdp.n_states, in_storm(folder / f"model{ending}").nr_states)
                plan = psconrl.plan(cmdp)
                psconrl.save(cmdp, folder / f"chain{ending}", plan.policy)
                read = in_storm(folder / f"chain{ending}")
                for cost, average in zip(cmdp.cost_names, cmdp.names.signs * plan.costs, strict=True):
                    word = cost if ending == ".umb" else "_".join(cost.split())
                    report(
                        f"{environment}{ending} chain: {cost}", float(average), averages(read, f'R{{"{word}"}}=? [LRA]')
                    )
        for n in range(3, arguments.philosophers + 1):
            began = time.perf_counter()
            psconrl.save(philosophers(n), folder / "philosophers.umb")
            written = time.perf_counter()
            plan = psconrl.plan(psconrl.load(folder / "philosophers.umb", maximise="eat"))
            planned = time.perf_counter()
            report(f"{n} philosophers eat", plan.value, 10 / 11 if n == 3 else 1.0)
            theirs = in_storm(folder / "philosophers.umb")
            read = time.perf_counter()
            report(f"{n} philosophers eat, in Storm", plan.value, averages(theirs, 'R{"eat"}max=? [LRA]'))
            checked = time.perf_counter()
            print(
                f"     {theirs.nr_states} states: built and written in {written - began:.2f} s, read and planned in "
                f"{planned - written:.2f} s; Storm reads in {read - planned:.2f} s, checks in {checked - read:.2f} s"
            )
        if arguments.sources is not None:
            for source, constants, objective, limits, value in KNOWN:
                path = arguments.sources / source
                options = {"constants": constants} if constants else {}
                plan = psconrl.plan(psconrl.load(path, maximise=objective, limits=limits, **options))
                report(f"{source}: {objective} {' '.join(limits)}", plan.value, float(value))
            timed = read_explicit(arguments.sources / "ctmc/cluster2.drn")
            path = folder / "cluster.umb"
            path.write_bytes(write_umb(timed))
            theirs = in_storm(path)
            for name in ("num_repairs",):
                ours = psconrl.plan(psconrl.load(path, maximise=name)).value
                report(f"cluster2, a CTMC: {name}", ours, averages(theirs, f'R{{"{name}"}}=? [LRA]'))
            ours = psconrl.plan(psconrl.load(path, maximise="premium")).value
            report("cluster2, a CTMC: premium", ours, averages(theirs, 'LRA=? ["premium"]'))
    print(f"{failed} differ" if failed else "all agree")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
