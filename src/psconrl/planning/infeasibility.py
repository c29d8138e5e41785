"""Explanation of infeasible limits: what each can be brought to alone, under the other limits, and jointly."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.model.cmdp import CMDP
from psconrl.planning.tolerances import INVOLVED


@dataclass(frozen=True, eq=False)
class Infeasibility:
    """Why no policy meets the thresholds, and what could be met instead, in the user's units.

    Numbers are those of costs: negative quantities where a threshold is a lower one.
    """

    names: tuple[str, ...]  # of the constrained costs, or of limited quantities
    thresholds: Floats  # (m,)
    alone: Floats  # (m,) least average of each cost without any constraint
    with_others: Floats  # (m,) least average under all other constraints; nan if those are infeasible by themselves
    jointly: Floats  # (m,) averages of a policy that minimises the largest excess relative to the cost's range
    multipliers: Floats  # (m,) the Farkas weights; the largest is 1; nan of limits that are no averages
    lower: tuple[bool, ...]  # (m,) whether a threshold is a lower one

    def __str__(self) -> str:
        tau = self.thresholds
        hopeless = [i for i in range(len(tau)) if self.alone[i] > tau[i]]
        if hopeless:
            i = hopeless[0]
            others = [j for j in hopeless if j != i]
            more = "".join(f" Nor {self._limit(j)} ({self._end(j)} {self._shown(j, self.alone[j])})." for j in others)
            return (
                f"no policy keeps {self._limit(i)}; the {self._end(i)} reachable {self._what} is "
                f"{self._shown(i, self.alone[i])}. {self._relax(i)} the threshold.{more}"
            )
        involved = self._involved
        limits = " and ".join(self._limit(i) for i in involved)
        possible = [i for i in involved if np.isfinite(self.with_others[i])]
        ways = [f"'{self.names[i]}' to {self._shown(i, self.with_others[i])}" for i in possible]
        verbs = [self._relax(i) for i in possible]
        remedy = " or ".join(
            way if k and verbs[k] == verbs[k - 1] else f"{verbs[k] if not k else verbs[k].lower()} {way}"
            for k, way in enumerate(ways)
        )
        prices = ", ".join(f"'{self.names[i]}' {self.multipliers[i]:.3g}" for i in involved)
        weights = f" (multipliers: {prices})" if self._has_weights else ""
        return f"no policy keeps {limits} together. {remedy or 'Relax several of them'}{weights}."

    def record(self) -> dict[str, Any]:
        """Return plain data for JSON, in the sense of the user; what is not known becomes None."""
        signs = np.where(self.lower, -1.0, 1.0)
        numbers = {"alone": self.alone, "with_others": self.with_others, "jointly": self.jointly}
        return {"message": str(self)} | {
            what: {n: x if np.isfinite(x) else None for n, x in zip(self.names, (signs * row).tolist(), strict=True)}
            for what, row in numbers.items()
        }

    @property
    def _has_weights(self) -> bool:
        return bool(np.isfinite(self.multipliers).all())

    @property
    def _what(self) -> str:
        return "average" if self._has_weights else "value"

    @property
    def _involved(self) -> list[int]:
        """The limits that cannot be kept together: those of positive weight, or those without which the others can."""
        if self._has_weights:
            return np.flatnonzero(self.multipliers > INVOLVED).tolist()
        known = np.flatnonzero(np.isfinite(self.with_others)).tolist()
        return known if len(known) > 1 else list(range(len(self.names)))

    def _shown(self, i: int, x: float) -> str:
        return f"{-x if self.lower[i] else x:.6g}"

    def _limit(self, i: int) -> str:
        tau = float(self.thresholds[i])
        return f"'{self.names[i]}' " + (f">= {-tau:g}" if self.lower[i] else f"<= {tau:g}")

    def _end(self, i: int) -> str:
        return "largest" if self.lower[i] else "least"

    def _relax(self, i: int) -> str:
        return "Lower" if self.lower[i] else "Raise"


def explain_infeasibility(
    cmdp: CMDP, jointly: Floats, multipliers: Floats, least: Callable[[CMDP], float | None]
) -> Infeasibility:
    """Find thresholds that could be met instead, by planning relaxations of a model.

    ``jointly`` are the averages (m,) of a policy of least excess, ``multipliers`` the Farkas weights. ``least`` returns
    the least average objective of a model, or None if that model is infeasible too.
    """
    alone, with_others = least_values(cmdp.n_constraints, lambda i, others: least(_only(cmdp, i, others)))
    lower = tuple(name in cmdp.at_least for name in cmdp.cost_names[1:])
    return Infeasibility(cmdp.cost_names[1:], cmdp.thresholds, alone, with_others, jointly, multipliers, lower)


def least_values(m: int, least: Callable[[int, list[int]], float | None]) -> tuple[Floats, Floats]:
    """Return the least value of each of m limited costs alone, and under all other limits; nan if there is none.

    ``least``: returns that of a cost under some limits, given by number, or None.
    """
    others = [[j for j in range(m) if j != i] for i in range(m)]
    alone = [least(i, []) for i in range(m)]
    with_others = [least(i, others[i]) for i in range(m)] if m > 1 else alone
    return np.array(alone, dtype=np.float64), np.array(with_others, dtype=np.float64)


def _only(cmdp: CMDP, objective: int, limits: list[int]) -> CMDP:
    """Return the model that minimises one of the constrained costs under some of the constraints."""
    rows = [objective + 1, *(j + 1 for j in limits)]
    return CMDP(
        cmdp.transition,
        cmdp.costs[rows],
        cmdp.thresholds[limits],
        initial=cmdp.initial,
        available=cmdp.available,
        cost_names=[cmdp.cost_names[r] for r in rows],
    )
