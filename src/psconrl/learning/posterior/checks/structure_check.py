r"""Tests of a system's structure, of which a right one is doubted with a probability of at most ``FALSE_ALARMS``.

Every noise is tested

- against the family of its distribution (``distribution_check``),
- against every variable of the states and of the actions, and against time (``dependence_check``),
- against other values of its parameter, if this is known,
- against every other noise, in rounds in which both were reported (``correlation_check``),
- against more variation than its family has, against fits, and against every other noise as far as next states, costs
  and reports together show it (``fluctuation_check``).

Every test is an e-value that may be looked at in every round. It finds what is wrong when it reaches
:math:`K / \alpha`, with the number of tests K. The probability that one of them ever does so although the structure is
right is at most :math:`\alpha`, however many rounds are played. If several tests of a noise do, the doubt names the
cause with the most evidence; the diagnosis is revised if another one later has a hundred times more.

Costs are tested, too (``cost_check``), with the same probability of a false alarm once more.

Where next states, costs and reports show only joint results of several noises, these are tested together
(``joint_check``).

**Not found**: what leaves no trace in the next state, in costs or in reports; a pattern in something that is not a
variable, such as a weekday that is not in the state, unless it looks like a change, fits or dispersion. Reports of the
noise are taken to be made whatever its value is.
"""

from typing import Any

import numpy as np

from psconrl.base.saved_fields import in_field, integer, maybe, need_that, read_fields, real, table_of, text
from psconrl.learning.posterior.checks.correlation_check import CorrelationCheck
from psconrl.learning.posterior.checks.cost_check import CostCheck
from psconrl.learning.posterior.checks.dependence_check import DependenceCheck
from psconrl.learning.posterior.checks.distribution_check import FALSE_ALARMS, DistributionCheck
from psconrl.learning.posterior.checks.fluctuation_check import DISPERSION, FITS
from psconrl.learning.posterior.checks.joint_check import JointCheck
from psconrl.learning.posterior.checks.variables import TIME, varying_variables
from psconrl.learning.posterior.counts import Counts
from psconrl.systems.randomness import Parameters
from psconrl.systems.structure import Structure
from psconrl.systems.vocabulary import Vocabulary

FIRST_CHECK = 50  # rounds until the first tests, and least number of rounds between tests
LEAST_BLOCK = 20  # rounds between looks at joint results
UNTIL_NEXT = 1.15  # by which factor there are more rounds at the next tests
UNTIL_NEXT_DISTRIBUTION = 1.25  # the same of the tests against families, which take longer
REVISED = float(np.log(100.0))  # evidence by which another diagnosis has to be ahead
DISTRIBUTION = "distribution"  # a cause, besides variables and time
CONSIDERED = float(np.log(20.0))  # evidence of a change, which is then named in place of fits
OF_FITS = 0.5  # if it is also this share of the evidence of fits


class StructureCheck:
    """All tests of a structure. ``words``: names and values of the variables, without which they are not tested."""

    def __init__(self, structure: Structure, words: Vocabulary | None = None) -> None:
        self._distribution = DistributionCheck(structure, words)
        variables = [] if words is None else varying_variables(structure, words)
        self._dependence = DependenceCheck(structure, variables, words)
        self._joint = JointCheck(structure, variables, self._dependence)
        self._correlation = CorrelationCheck(structure)
        self._costs = CostCheck(structure, words)
        self._next = self._next_distribution = FIRST_CHECK  # number of rounds
        self._noted = 0  # number of rounds that the test of costs has seen
        self._looked = 0  # the same of the tests of joint results
        self._beyond_family: dict[str, float] = {}  # log E of the distributions that were found to be others
        self._texts: dict[str, str] = {}  # and what was said of them
        self._blamed: str | None = None  # the noise that joint results are blamed on
        self._causes: dict[str, str] = {}  # of the doubts, by noise
        tests = self._dependence, self._joint, self._correlation
        self.number = max(len(self._distribution.tested) + sum(each.number for each in tests), 1)
        self._bound = float(np.log(self.number / FALSE_ALARMS))

    def update(self, doubts: dict[str, str], counts: Counts, near: Parameters) -> None:
        """Test the structure if there are enough new rounds; put what is wrong into the table of doubts.

        The search for parameters begins at ``near``, those last drawn.
        """
        rounds = int(counts.visits.sum())
        if rounds < self._next:
            if rounds >= self._noted + FIRST_CHECK:
                self._noted = rounds
                self._costs.note(counts, near)
            if rounds >= self._looked + LEAST_BLOCK:
                self._looked = rounds
                self._joint.note(counts, near)
            return
        self._looked = rounds
        self._noted = rounds
        self._next = max(rounds + FIRST_CHECK, int(UNTIL_NEXT * rounds))
        found = self._dependence.evidence(counts, self._bound)
        joint = self._hidden(doubts, counts, near)
        for name, logs in joint.items():
            found[name] = found.get(name, {}) | {
                cause: log for cause, log in logs.items() if log >= found.get(name, {}).get(cause, -np.inf)
            }
        for name, logs in self._correlation.evidence(counts).items():
            found[name] |= logs
        fresh = rounds >= self._next_distribution
        if fresh:
            self._next_distribution = int(UNTIL_NEXT_DISTRIBUTION * rounds)
            for name, (evidence, text) in self._distribution.findings(counts, near, self._bound).items():
                self._beyond_family[name], self._texts[name] = evidence, text
        for name, evidence in self._beyond_family.items():
            found.setdefault(name, {})[DISTRIBUTION] = evidence
        for name, logs in found.items():
            cause = self._diagnosis(name, logs, fresh)
            if cause is not None and cause != self._causes.get(name):
                self._causes[name] = cause
                doubts[name] = self._text(name, cause, joint.get(name, {}).get(cause) == logs[cause])
        self._costs.update(doubts, counts, near, self._dependence.ends)

    def _hidden(self, doubts: dict[str, str], counts: Counts, near: Parameters) -> dict[str, dict[str, float]]:
        """Return what joint results show of one noise: the one with the most evidence, as others seem to do the same.

        If another one is doubted because of them, it keeps the doubt unless it is to be revised.
        """
        found = self._joint.evidence(counts, near, self._bound)
        if not found:
            return {}
        most = {name: max(logs.values()) for name, logs in found.items()}
        best, last = max(most, key=lambda name: most[name]), self._blamed
        if most[best] < self._bound:
            return {}
        if last is not None and last != best:
            if most[best] < most[last] + REVISED:
                best = last
            else:
                doubts.pop(last, None)
                self._causes.pop(last, None)
        self._blamed = best
        return {best: found[best]}

    def _text(self, name: str, cause: str, joint: bool) -> str:
        if cause == DISTRIBUTION:
            return self._texts[name]
        if joint or cause in (DISPERSION, FITS):
            return self._joint.text(name, cause)
        if (name, cause) in self._correlation.pairs:
            return self._correlation.text(name, cause)
        return self._dependence.text(name, cause)

    def _diagnosis(self, name: str, logs: dict[str, float], fresh: bool = True) -> str | None:
        """Return the cause of a doubt about a noise, if there is one.

        Fits follow a change, too, and sooner than the test of changes: they are named as long as they explain much
        more. A doubt about the family is compared with others only where its evidence is ``fresh``, of the same rounds.
        """
        beyond = {cause: log for cause, log in logs.items() if log >= self._bound}
        known = self._causes.get(name)
        if not beyond:
            return known
        if known == DISTRIBUTION and not fresh:
            return known
        best = max(beyond, key=lambda cause: beyond[cause])
        if best == FITS and logs.get(TIME, -np.inf) >= max(CONSIDERED, OF_FITS * beyond[FITS]):
            return TIME if known in (None, FITS) else known
        if known is not None and logs[best] < logs.get(known, -np.inf) + REVISED:
            return known
        return best

    def state(self) -> dict[str, Any]:
        """Return what the tests remember."""
        return {
            "next": self._next,
            "noted": self._noted,
            "looked": self._looked,
            "next_distribution": self._next_distribution,
            "beyond_family": dict(self._beyond_family),
            "texts": dict(self._texts),
            "causes": dict(self._causes),
            "blamed": self._blamed,
            "dependence": self._dependence.state(),
            "joint": self._joint.state(),
            "costs": self._costs.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        saved = read_fields(
            state,
            {
                "next": integer(),
                "noted": integer(),
                "looked": integer(),
                "next_distribution": integer(),
                "beyond_family": table_of(real(infinite=True)),
                "texts": table_of(text()),
                "causes": table_of(text()),
                "blamed": maybe(text(*self._joint.tested)),
                "dependence": self._dependence.restore,
                "joint": self._joint.restore,
                "costs": self._costs.restore,
            },
        )
        noted = saved["noted"]
        need_that(saved["next"] <= max(noted + FIRST_CHECK, UNTIL_NEXT * noted), "next must follow noted")
        after = max(FIRST_CHECK, UNTIL_NEXT_DISTRIBUTION * noted)
        need_that(saved["next_distribution"] <= after, "next_distribution must follow noted")
        tested = saved["beyond_family"].keys() <= {*self._distribution.tested}
        need_that(tested and saved["beyond_family"].keys() == saved["texts"].keys(), "beyond_family must have texts")
        self._next, self._noted, self._looked, self._next_distribution = list(saved.values())[:4]
        self._beyond_family, self._texts = saved["beyond_family"], saved["texts"]
        self._causes, self._blamed = saved["causes"], saved["blamed"]

    def need_within(self, counts: Counts) -> None:
        """Raise an error unless the rounds that the tests have seen are part of those that were counted."""
        rounds = int(counts.visits.sum())
        need_that(max(self._noted, self._looked) <= rounds, f"noted and looked must be within {rounds:,} rounds")
        with in_field("dependence"):
            self._dependence.need_within(counts)
        with in_field("joint"):
            self._joint.need_within(counts)
