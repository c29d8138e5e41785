"""What to measure next, in words: the pairs or the noise that matter, how many rows of which, an experiment."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from psconrl.answers.answer import or_none
from psconrl.data.advice.described import shown_action, shown_state
from psconrl.data.advice.evidence import Need
from psconrl.data.rounds.recorded import Recorded


@dataclass(frozen=True)
class Unsettled:
    """A pair of state and action, or an unknown of the noise, on which the answer depends.

    ``share``: of the uncertainty that is due to it; ``rows``: how many more rows of it would do, infinite if no number
    is known to.
    """

    what: str
    share: float
    rows: float

    def record(self) -> dict[str, Any]:
        """Return plain data."""
        return {"what": self.what, "share": self.share, "rows": or_none(self.rows)}


@dataclass(frozen=True)
class Measuring:
    """What would settle whether to change anything.

    ``about``: the limit in question, or the objective. ``matters``: most important first. ``rounds``: length of the
    cheapest experiment, in which a share of the rounds follows the proposal and the others are as today; infinite if no
    experiment of this kind settles the question. ``value``: by how much the objective per round is expected to improve
    by what the experiment tells; ``perfect``: the same of perfect knowledge. ``out_of_reach``: why the
    limit is not expected to be met by any policy, empty if it may be.
    """

    about: str
    matters: tuple[Unsettled, ...]
    rounds: float
    share_of_proposal: float
    value: float
    perfect: float
    out_of_reach: str = ""

    @classmethod
    def of(cls, log: Recorded, need: Need, names: tuple[str, ...]) -> "Measuring":
        """Return a need in words."""
        matters = tuple(
            Unsettled(_shown(log, what), float(share), float(np.ceil(rows)))
            for what, share, rows in zip(need.matters, need.shares, need.rows, strict=True)
        )
        return cls(
            names[need.margin.cost], matters, float(np.ceil(need.rounds)), need.share_of_proposal, need.value,
            need.perfect, _out_of_reach(log, need, names),
        )  # fmt: skip

    @property
    def experiment(self) -> str:
        """The cheapest experiment in a sentence; if the limit is out of reach, that it is."""
        if self.out_of_reach:
            return self.out_of_reach
        if not np.isfinite(self.rounds):
            return "No mixture of today's policy and the proposal settles this; try what matters on purpose."
        if self.rounds <= 0.0:
            return "Go on as today and ask again with more rounds."
        long = f"{self.rounds:,.0f} more round{'' if self.rounds == 1.0 else 's'}"
        if self.share_of_proposal <= 0.0:
            return f"Go on as today for {long}, and record them."
        if self.share_of_proposal >= 1.0:
            return f"Follow the proposal for {long}, and record them."
        share = f"{100.0 * self.share_of_proposal:.0f}%"
        return (
            f"Follow the proposal in {share} of {long}, drawn at random, act as today in the others, and record them."
        )

    def record(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "about": self.about,
            "matters": [one.record() for one in self.matters],
            "rounds": or_none(self.rounds),
            "share_of_proposal": self.share_of_proposal,
            "experiment": self.experiment,
            "value": or_none(self.value),
            "perfect": or_none(self.perfect),
        }

    def __str__(self) -> str:
        lines = [
            f"  {one.what}: {one.share:.0%} of the doubt" + (f", {one.rows:,.0f} more rows" if one.rows < 1e9 else "")
            for one in self.matters
        ]
        if self.out_of_reach:
            return self.out_of_reach
        return "\n".join([f"what would settle {self.about}: {self.experiment}", *lines])


def _shown(log: Recorded, what: tuple[int, int] | str) -> str:
    return what if isinstance(what, str) else f"{shown_action(log, what[1])} in {shown_state(log, what[0])}"


def _out_of_reach(log: Recorded, need: Need, names: tuple[str, ...]) -> str:
    """Say so if the least average that the cost of a limit can have exceeds the limit, by all that is known."""
    i = need.margin.cost
    excess = need.least - need.limit
    if i == 0 or not excess > 0.0:
        return ""
    sign = float(log.signs[i]) if i < log.signs.size else 1.0
    end = "at least" if sign > 0.0 else "at most"
    if log.system is not None:
        return (
            f"No policy is expected to keep the limit on {names[i]}: its average is {end} about "
            f"{sign * need.least:.4g}. Relax the limit, or change the system."
        )
    return (
        f"No policy that plays what was tried is expected to keep the limit on {names[i]}: its average is then {end} "
        f"about {sign * need.least:.4g}. Try other actions, or relax the limit."
    )
