"""Explanation of infeasible models: the least average of each cost alone, under the other constraints, and jointly."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.model.cmdp import CMDP
from psconrl.planning.tolerances import INVOLVED


@dataclass(frozen=True, eq=False)
class Infeasibility:
    """Why no policy meets the thresholds, and what could be met instead, in the user's units."""

    names: tuple[str, ...]  # of the constrained costs
    thresholds: Floats  # (m,)
    alone: Floats  # (m,) least average of each cost without any constraint
    with_others: Floats  # (m,) least average under all other constraints; nan if those are infeasible by themselves
    jointly: Floats  # (m,) averages of a policy that minimises the largest excess relative to the cost's range
    multipliers: Floats  # (m,) the Farkas weights; the largest is 1
    at_least: frozenset[str] = frozenset()  # costs that are the negative of a quantity with a lower bound

    def __str__(self) -> str:
        tau = self.thresholds
        hopeless = [i for i in range(len(tau)) if self.alone[i] > tau[i]]
        if hopeless:
            i = hopeless[0]
            others = [j for j in hopeless if j != i]
            more = "".join(f" Nor {self._limit(j)} ({self._end(j)} {self._shown(j, self.alone[j])})." for j in others)
            return (
                f"no policy keeps {self._limit(i)}; the {self._end(i)} reachable average is "
                f"{self._shown(i, self.alone[i])}. {self._relax(i)} the threshold.{more}"
            )
        involved = [i for i in range(len(tau)) if self.multipliers[i] > INVOLVED]
        limits = " and ".join(self._limit(i) for i in involved)
        possible = [i for i in involved if np.isfinite(self.with_others[i])]
        ways = [f"'{self.names[i]}' to {self._shown(i, self.with_others[i])}" for i in possible]
        verbs = [self._relax(i) for i in possible]
        remedy = " or ".join(
            way if k and verbs[k] == verbs[k - 1] else f"{verbs[k] if not k else verbs[k].lower()} {way}"
            for k, way in enumerate(ways)
        )
        prices = ", ".join(f"'{self.names[i]}' {self.multipliers[i]:.3g}" for i in involved)
        return f"no policy keeps {limits} together. {remedy or 'Relax several of them'} (multipliers: {prices})."

    def _floor(self, i: int) -> bool:
        return self.names[i] in self.at_least

    def _shown(self, i: int, x: float) -> str:
        return f"{-x if self._floor(i) else x:.6g}"

    def _limit(self, i: int) -> str:
        tau = float(self.thresholds[i])
        return f"'{self.names[i]}' " + (f">= {-tau:g}" if self._floor(i) else f"<= {tau:g}")

    def _end(self, i: int) -> str:
        return "largest" if self._floor(i) else "least"

    def _relax(self, i: int) -> str:
        return "Lower" if self._floor(i) else "Raise"


def explain_infeasibility(
    cmdp: CMDP, jointly: Floats, multipliers: Floats, least: Callable[[CMDP], float | None]
) -> Infeasibility:
    """Find thresholds that could be met instead, by planning relaxations of a model.

    ``jointly`` are the averages (m,) of a policy of least excess, ``multipliers`` the Farkas weights. ``least`` returns
    the least average objective of a model, or None if that model is infeasible too.
    """
    m = cmdp.n_constraints
    alone, with_others = np.empty(m), np.full(m, np.nan)
    for i in range(m):
        free = least(_only(cmdp, i, []))
        assert free is not None, "a model without constraints is feasible"
        alone[i] = free
        others = [j for j in range(m) if j != i]
        kept = least(_only(cmdp, i, others)) if others else free
        if kept is not None:
            with_others[i] = kept
    return Infeasibility(cmdp.cost_names[1:], cmdp.thresholds, alone, with_others, jointly, multipliers, cmdp.at_least)


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
