"""What a check of a log found."""

from dataclasses import dataclass
from typing import Any

COVERAGE, MARKOV, DRIFT, STRUCTURE, FAULT, GAPS = "coverage", "state", "drift", "structure", "fault", "gaps"
OUTCOME = "outcome"  # a column that tells what happened in a round, unless it was known before the action
REMARKS = (COVERAGE, FAULT, OUTCOME)  # which cast no doubt on the state or the description


@dataclass(frozen=True)
class Finding:
    """One result. ``subject``: what it is about; ``p_value``: corrected for the number of tests, None without one."""

    check: str
    subject: str
    message: str
    p_value: float | None = None

    def record(self) -> dict[str, Any]:
        """Return plain data."""
        return {"check": self.check, "subject": self.subject, "message": self.message, "p_value": self.p_value}

    def __str__(self) -> str:
        return f"{self.check}: {self.message}"
