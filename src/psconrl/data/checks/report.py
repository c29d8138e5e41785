"""All checks of a log, and their report."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psconrl.data.checks.coverage import Coverage, coverage, coverage_findings
from psconrl.data.checks.finding import FAULT, GAPS, REMARKS, Finding
from psconrl.data.checks.gaps import SUBJECT, gap_finding, gap_test
from psconrl.data.checks.state import FALSE_DOUBTS, Tried, state_findings
from psconrl.data.checks.structure import structure_findings
from psconrl.data.checks.suspects import Suspect, tested_rounds
from psconrl.data.rounds.recorded import Recorded


@dataclass(frozen=True, eq=False)
class LogReport:
    """What the checks of a log found; ``tests``: the corrected p-value of everything that was tested."""

    log: Recorded
    findings: tuple[Finding, ...]
    tests: tuple[Tried, ...]
    coverage: Coverage

    @property
    def is_good(self) -> bool:
        """Whether neither the state nor the description of the system is in doubt."""
        return all(finding.check in REMARKS for finding in self.findings)

    def record(self) -> dict[str, Any]:
        """Return plain data."""
        tests = [{"tested": r.suspect.name, "outcome": r.outcome, "p_value": r.p_value} for r in self.tests]
        return {
            "rounds": self.log.n_rounds,
            "states": self.log.n_states,
            "actions": self.log.n_actions,
            "is_good": self.is_good,
            "findings": [finding.record() for finding in self.findings],
            "tests": tests,
            "coverage": self.coverage.record(),
        }

    def __str__(self) -> str:
        verdict = (
            "no test doubts the state or the description"
            if self.is_good
            else "the state, or the description, is in doubt"
        )
        tested = f"{len(self.tests)} tests at level {FALSE_DOUBTS:g}"
        return "\n".join([f"{self.log!r}: {verdict} ({tested})", *(f"  {finding}" for finding in self.findings)])


def checked_log(log: Recorded, limits: Mapping[str, float] | None) -> LogReport:
    """Check a log; see ``Log.check``."""
    tested, gaps = tested_rounds(log), gap_test(log)
    found, results = state_findings(tested, 1 if gaps.rounds else 0)
    if gaps.rounds:
        p_value = min(1.0, gaps.p_value * (len(tested.suspects) + 1))
        results.append(Tried(Suspect(GAPS, SUBJECT, log.broken.states), p_value, "the state before"))
        found += [gap_finding(log, p_value)] if p_value < FALSE_DOUBTS else []
    covered = coverage(log, log.counts(), limits)
    faults = [Finding(FAULT, fault.kind, str(fault)) for fault in log.faults]
    findings = [*faults, *coverage_findings(log, covered), *structure_findings(log), *found]
    return LogReport(log, tuple(findings), tuple(results), covered)
