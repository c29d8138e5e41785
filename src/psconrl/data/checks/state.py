"""Is the state good enough? Whether anything else tells more about a round than state and action do, and what.

Every suspect is tested against the next state and against every cost that varies (``association``); its p-value is
the smallest of these, times their number, and those of all suspects are corrected after Holm. So the probability that
a log whose state is good enough is doubted is about ``FALSE_DOUBTS`` at most.

A column whose value in the round before tells nothing is an outcome of the round, such as noise or a cost, unless it
was known before the action. It is named, and casts no doubt; it is not taken into the state, since an outcome explains
away what the state lacks.

What else adds information is named in the order of evidence, what was recorded before past rounds: what is found
becomes a part of the state, and the others are tested again. What then adds nothing more was only its shadow.

Shi et al. (2020) test the order of a Markov process with continuous states by conditional characteristic functions and
random forests. With finitely many states the distributions to compare are tables.
"""

from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.data.checks.association import NO_TEST, Test, association, holm
from psconrl.data.checks.finding import DRIFT, MARKOV, OUTCOME, Finding
from psconrl.data.checks.suspects import COLUMN, PAST, RUN, TIME, Outcome, Suspect, Tested

FALSE_DOUBTS = 0.03  # p-values are those of long logs; so the rate in logs of 1,000 rounds is below 5%, too
COMPARABLE_EVIDENCE = 0.25  # share of the logarithm of the smallest p-value from which on evidence is comparable
SMALLEST_P = 1e-300
MOST_CAUSES = 3  # causes, one after the other


class Tried(NamedTuple):
    """A suspect, its corrected p-value, and the outcome that shows it most."""

    suspect: Suspect
    p_value: float
    outcome: str


def state_findings(tested: Tested, others: int = 0) -> tuple[list[Finding], list[Tried]]:
    """Return what is missing in the state, and the results of all tests. ``others``: tests that are made besides."""
    number = len(tested.suspects) + others
    results = try_all(tested.strata, tested.outcomes, tested.suspects, number)
    evident = [result for result in results if result.p_value < FALSE_DOUBTS]
    left = [result for result in evident if not _is_outcome(result, tested)]
    findings = [_outcome(result) for result in evident if _is_outcome(result, tested)]
    strata = tested.strata
    for _ in range(MOST_CAUSES):
        if not left:
            break
        cause = _first(left, strata, tested)
        labels = cause.suspect.labels
        strata = np.unique(strata * (int(labels.max()) + 2) + labels + 1, return_inverse=True)[1].ravel()
        remaining = [result.suspect for result in left if result is not cause]
        again = try_all(strata, tested.outcomes, remaining, number)
        shadows = [result.suspect.name for result in again if result.p_value >= FALSE_DOUBTS]
        findings.append(_finding(cause, shadows))
        left = [result for result in again if result.p_value < FALSE_DOUBTS]
    return findings, results


def try_all(strata: Ints, outcomes: list[Outcome], suspects: list[Suspect], number: int = 0) -> list[Tried]:
    """Return the results of some suspects, corrected for the ``number`` of all of them."""
    found = [_best(strata, outcomes, suspect.labels) for suspect in suspects]
    corrected = holm(np.array([test.p_value for test, _ in found]), number).tolist()
    return [
        Tried(suspect, p_value, outcome)
        for suspect, p_value, (_, outcome) in zip(suspects, corrected, found, strict=True)
    ]


def _best(strata: Ints, outcomes: list[Outcome], labels: Ints) -> tuple[Test, str]:
    """Return the test of the outcome that shows most, corrected for the number of outcomes."""
    tests = [(association(strata, labels, one.classes, one.scores), one.name) for one in outcomes]
    done = [(test, name) for test, name in tests if test.rounds]
    if not done:
        return NO_TEST, outcomes[0].name
    test, name = min(done, key=lambda pair: pair[0].p_value)
    return Test(min(1.0, len(done) * test.p_value), test.rounds), name


def _first(left: list[Tried], strata: Ints, tested: Tested) -> Tried:
    """Return the cause to name first: the one with the most evidence.

    Past rounds come after what was recorded, unless this has much less evidence.
    """
    most = max(_log_evidence(result) for result in left)
    recorded = [r for r in left if r.suspect.kind != PAST and _log_evidence(r) >= COMPARABLE_EVIDENCE * most]
    return min(recorded or left, key=lambda result: (result.p_value, -_evidence(strata, tested, result)))


def _log_evidence(result: Tried) -> float:
    return float(-np.log(max(result.p_value, SMALLEST_P)))


def _evidence(strata: Ints, tested: Tested, result: Tried) -> float:
    """Return how much a suspect explains, for p-values that are all 0: the information gained, per round."""
    outcome = next(one for one in tested.outcomes if one.name == result.outcome)
    labels = result.suspect.labels
    kept = labels >= 0
    whole = strata[kept], labels[kept], outcome.classes[kept]
    return information(*whole)


def information(strata: Ints, labels: Ints, outcomes: Ints) -> float:
    """Return the empirical information on outcomes in labels, given strata, in nats a round."""

    def entropy(*columns: Ints) -> float:
        codes = np.zeros(strata.size, dtype=np.int64)
        for column in columns:
            codes = np.unique(codes * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1].ravel()
        times: Floats = np.bincount(codes).astype(np.float64)
        return float(-(times * np.log(times / max(strata.size, 1))).sum() / max(strata.size, 1))

    return entropy(strata, labels) + entropy(strata, outcomes) - entropy(strata) - entropy(strata, labels, outcomes)


def _finding(cause: Tried, shadows: list[str]) -> Finding:
    name, kind, p = cause.suspect.name, cause.suspect.kind, cause.p_value
    tells = "tell" if name.startswith("the results") else "tells"
    about = f"({_p(p)}) about {cause.outcome}, given state and action"
    also = f"; given it, nothing more is shown by {_listed(shadows)}" if shadows else ""
    if kind == TIME:
        what = "drifts over time" if name == "the period" else f"depends on {name}"
        remedy = "use the last part of the log only" if name == "the period" else f"add {name} to the state"
        return Finding(DRIFT, name, f"what follows {what}: {name} tells more {about}; {remedy}{also}", p)
    if kind == RUN:
        return Finding(DRIFT, name, f"the runs differ: {name} tells more {about}; make a log of each{also}", p)
    if kind == COLUMN:
        return Finding(MARKOV, name, f"{name} tells more {about}: add it to the state{also}", p)
    if name.startswith("the action"):
        remedy = "what was ordered, or begun, is missing in the state while it is under way"
    elif name.startswith("the result"):
        remedy = "something that lasts for several rounds is missing in the state"
    else:
        remedy = "add what the state was before, or what it shows, to the state"
    return Finding(MARKOV, name, f"{name} {tells} more {about}: {remedy}{also}", p)


def _is_outcome(result: Tried, tested: Tested) -> bool:
    """Return whether a column may be an outcome of the round: its value in the round before tells nothing."""
    before = result.suspect.before
    return before is not None and _best(tested.strata, tested.outcomes, before)[0].p_value >= FALSE_DOUBTS


def _outcome(result: Tried) -> Finding:
    name = result.suspect.name
    message = (
        f"{name} tells more ({_p(result.p_value)}) about {result.outcome}, given state and action, and its value one "
        "round before tells nothing: it is taken to be an outcome of the round; if it is known before the action, add "
        "it to the state"
    )
    return Finding(OUTCOME, name, message, result.p_value)


def _p(value: float) -> str:
    return f"p = {value:.2g}" if value >= 1e-9 else "p < 1e-9"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
