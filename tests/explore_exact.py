"""Plans models that were never planned before, and compares each plan with rational arithmetic: ``make test-exact``.

Models are drawn from the families of ``exact_families``, with new seeds at every run. A failure is shrunk and written
to ``tests/data/exact``, where ``tests/planning/test_exact_cases.py`` replays it. The exit code is 1 if there is any.
Ctrl-C ends the search and prints the table.

    python tests/explore_exact.py --cases 2000
    python tests/explore_exact.py --minutes 10 --jobs 2 --family traps --keep-unproven
    python tests/explore_exact.py --seed 12345 --cases 1 --family edge     # the same model again
"""

import argparse
import json
import secrets
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from exact import number_of_policies
from exact_cases import FOLDER, shrunk, write_case
from exact_draws import MOST_POLICIES
from exact_families import FAMILIES, drawn
from exact_verdict import ESCAPED, KINDS, UNPROVEN, WRONG, Reference, Verdict, judged
from psconrl import CMDP, check_proof, plan
from psconrl.planning.proof.proof_files import checked_proof, plain_model

SECONDS = 60  # for one plan, after which it counts as an escape
FORMS = ("dense", "sparse", "exact")  # of transitions, and dense ones planned in rational arithmetic


class Found(NamedTuple):
    """The verdict on the plan of one model in one form."""

    family: str
    seed: int
    form: str
    verdict: Verdict
    seconds: float


class TooLongError(Exception):
    """A plan took longer than ``SECONDS``."""


@contextmanager
def at_most(seconds):
    """Raise ``TooLongError`` in the block after some seconds, where the system has alarms."""

    def stop(*_):
        raise TooLongError(f"no plan after {seconds} seconds")

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def in_form(cmdp: CMDP, form: str) -> CMDP:
    """Return the model with sparse transitions if these are the form, else with dense ones."""
    P = np.asarray(cmdp.transition)
    return CMDP(
        csr_array(P) if form == "sparse" else P,
        cmdp.costs,
        cmdp.thresholds,
        initial=cmdp.initial,
        available=cmdp.available,
    )


def reference_of(cmdp: CMDP):
    """Return the exact optimum; None if there are too many policies."""
    return Reference(cmdp) if number_of_policies(cmdp, MOST_POLICIES) <= MOST_POLICIES else None


def verdict_on(cmdp: CMDP, form: str, reference) -> Verdict:
    """Plan a model and judge the plan; an exception or a warning is a verdict too."""
    try:
        with warnings.catch_warnings(), at_most(SECONDS):
            warnings.simplefilter("error")
            model = in_form(cmdp, form)
            found = plan(model, exact=form == "exact")
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return Verdict(ESCAPED, f"{type(error).__name__} in {where.name}", str(error)[:200])
    verdict = judged(model, found, reference)
    return verdict if verdict.is_failure or not found.certificate.holds else _with_proof(model, found, verdict)


def _with_proof(model: CMDP, found, verdict: Verdict) -> Verdict:
    """Write the proof of a plan as it would be saved, and check it by the checker that needs no library."""
    plain = plain_model(model)
    try:
        record = checked_proof(model, found, plain)
        check_proof.check(plain, json.loads(json.dumps(record, allow_nan=False)))
    except Exception as error:
        return Verdict(WRONG, f"no proof can be saved ({found.status.value})", f"{type(error).__name__}: {error}"[:200])
    return verdict


def explored(task) -> list[Found]:
    """Judge the plans of one model in every form."""
    family, seed = task
    cmdp = drawn(family, seed)
    if cmdp is None:
        return []
    reference = reference_of(cmdp)
    found = []
    for form in FORMS:
        begin = time.perf_counter()
        verdict = verdict_on(cmdp, form, reference)
        found.append(Found(family, seed, form, verdict, time.perf_counter() - begin))
    return found


def tasks(families, base, cases, deadline):
    """Yield families in turn with increasing seeds, until the number of cases or the time is reached."""
    for k in range(cases):
        if time.monotonic() > deadline:
            return
        yield families[k % len(families)], base + k // len(families)


def results(jobs, work):
    """Yield what was found, in one process or several."""
    if jobs == 1:
        yield from map(explored, work)
        return
    with get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(explored, work, chunksize=4)


def table(found) -> str:
    """Return the numbers of verdicts by family, and the reasons for what was not proven."""
    counts = Counter((one.family, one.verdict.kind) for one in found)
    families = [name for name in FAMILIES if any(one.family == name for one in found)]
    lines = ["| family | " + " | ".join(KINDS) + " |", "|---|" + "---:|" * len(KINDS)]
    for name in families:
        lines.append(f"| {name} | " + " | ".join(str(counts[name, kind] or "") for kind in KINDS) + " |")
    totals = Counter(one.verdict.kind for one in found)
    lines.append("| all | " + " | ".join(str(totals[kind] or "") for kind in KINDS) + " |")
    reasons = Counter((one.verdict.kind, one.verdict.reason) for one in found if one.verdict.reason)
    lines.append("")
    lines += [f"{number:6d}  {kind}: {reason}" for (kind, reason), number in reasons.most_common()]
    return "\n".join(lines)


def keep(one: Found, seconds: float) -> str:
    """Shrink a failing model, write it to the folder of cases, and return the name of the file."""
    cmdp = drawn(one.family, one.seed)

    def fails(model):
        if number_of_policies(model, MOST_POLICIES) > MOST_POLICIES and one.family != "larger":
            return False
        again = verdict_on(model, one.form, reference_of(model))
        return (again.kind, again.reason) == (one.verdict.kind, one.verdict.reason)

    small = shrunk(cmdp, fails, seconds) if fails(cmdp) else cmdp
    last = verdict_on(small, one.form, reference_of(small))
    return write_case(small, one.family, one.seed, one.form, last)


def parsed(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=None, help="number of models (default 500)")
    parser.add_argument("--minutes", type=float, default=None, help="stop drawing after this time")
    parser.add_argument("--seed", type=int, default=None, help="seed of the first model of each family (default: new)")
    parser.add_argument("--family", action="append", choices=sorted(FAMILIES), help="only this family; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--keep-unproven", action="store_true", help="shrink and keep unproven models as well")
    parser.add_argument("--shrink-seconds", type=float, default=60, help="time to shrink a failure; 0 keeps no files")
    parser.add_argument("--list", action="store_true", help="print every failure and unproven model with its seed")
    return parser.parse_args(arguments)


def main(arguments=None) -> int:
    options = parsed(arguments)
    base = secrets.randbelow(10**9) if options.seed is None else options.seed
    cases = options.cases or (10**9 if options.minutes else 500)
    deadline = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    families = options.family or list(FAMILIES)
    print(f"base seed {base}", flush=True)
    found = []
    with suppress(KeyboardInterrupt):  # the table then shows what was found so far
        for some in results(options.jobs, tasks(families, base, cases, deadline)):
            found += some
            for one in some:
                if one.verdict.is_failure or (options.list and one.verdict.kind == UNPROVEN):
                    what = f"{one.verdict.kind}: {one.verdict.reason} {one.verdict.detail}"
                    print(f"{one.family} --seed {one.seed} ({one.form}): {what}", flush=True)
    slowest = max((one.seconds for one in found), default=0.0)
    print(f"\n{len(found)} plans, of which the slowest took {slowest:.1f} s with its verdict\n")
    print(table(found), flush=True)
    failures = [one for one in found if one.verdict.is_failure]
    wanted = failures + [one for one in found if options.keep_unproven and one.verdict.kind == UNPROVEN]
    if options.shrink_seconds > 0:
        kept = set()
        for one in wanted:
            if (one.family, one.seed) not in kept:
                kept.add((one.family, one.seed))
                print("written:", keep(one, options.shrink_seconds), f"in {FOLDER}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
