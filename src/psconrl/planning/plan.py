"""The one return type of every planner: what to do, what it costs, what the limits are worth, and the proof."""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.errors import InfeasibleError, PolicyError
from psconrl.kernels.occupancy import one_hot, policy_from_occupancy
from psconrl.model.names import Names
from psconrl.planning import plan_files
from psconrl.planning.deployable import Deployable
from psconrl.planning.infeasibility import Infeasibility
from psconrl.planning.mixture_policy import PolicyMixture
from psconrl.planning.proof import Certificate, Status
from psconrl.planning.tolerances import PROVEN_EXCESS


@dataclass(frozen=True, eq=False)
class Plan(Deployable):
    """A policy with its exact averages, the price of every threshold, and a certificate.

    ``value`` is the average objective in the user's sense (a reward if the model was built from rewards);
    ``costs[i]`` the average of ``cmdp.costs[i]``. ``multipliers[i]`` is what one more unit of threshold i is worth, in
    units of the objective. If infeasible, the policy has the least possible excess and the multipliers are Farkas'.
    ``act`` plays it; ``save`` and ``Plan.load`` keep it; ``to_csv`` and ``to_json`` write it for other programs.

    Where no stationary policy is best, ``mixture`` holds policies among which a run draws by lot. Then value, costs,
    occupancy and certificate are those of the mixture, and ``policy`` is the stationary one that comes closest.
    """

    status: Status
    value: float
    costs: Floats  # (m+1,)
    thresholds: Floats  # (m,) the limits that were planned for
    policy: Floats  # (S, A)
    occupancy: Floats  # (S, A)
    multipliers: Floats  # (m,)
    potential: Floats  # (S,) the h of the certificate
    low_potential: Floats  # (S,) to be added to it: what one double a state cannot hold; mostly zero
    gains: Floats | None  # (S,) the g of a multichain certificate
    certificate: Certificate
    method: str  # "mixture" or "lp"
    note: str  # what was done beyond the ordinary; empty if nothing
    infeasibility: Infeasibility | None
    columns: tuple[Ints, ...]  # deterministic policies to start a later plan from
    names: Names  # of states, actions and costs
    mixture: PolicyMixture | None = None  # policies and their chances, if a run has to draw a lot at its start
    model: str = ""  # the fingerprint of the model that was planned; empty if it is not known
    settles: float = math.nan  # rounds until every average, from the start, is final within 1% of the cost's range

    @property
    def feasible(self) -> bool:
        """Are there policies within the thresholds?"""
        return self.status is not Status.INFEASIBLE

    @property
    def meets_constraints(self) -> bool:
        """Is what ``act`` plays within the thresholds? An optimal plan is; one that is not attained may not be."""
        allowed = PROVEN_EXCESS * np.abs(self.thresholds)
        return self.status is Status.OPTIMAL or bool((self.certificate.excess <= allowed).all())

    @property
    def policy_certificate(self) -> Certificate:
        """The certificate of ``policy``: that of the plan, unless the plan draws a lot."""
        return self.certificate if self.mixture is None else self.mixture.policy_certificate

    @property
    def policy_meets_constraints(self) -> bool:
        """Is ``policy``, which draws no lot, within the thresholds?"""
        return (
            self.meets_constraints if self.mixture is None else self.feasible and self.mixture.policy_certificate.holds
        )

    @property
    def shown_policy(self) -> Floats:
        """What is played in every state (S, A), over all runs: of a mixture, in the proportions in which it is."""
        if self.mixture is None:
            return self.policy
        shown: Floats = policy_from_occupancy(self.occupancy, self.policy, 0.0)
        return shown

    @property
    def gap(self) -> float:
        """Proven distance from the optimum, in units of the objective; nan if infeasible."""
        return self.certificate.gap if self.feasible else float("nan")

    @property
    def randomised_states(self) -> Ints:
        """Visited states in which the policy tosses a coin; at most m are needed."""
        if self.mixture is not None:
            return np.empty(0, dtype=np.int64)
        several = (self.policy > 0).sum(axis=1) > 1
        return np.flatnonzero(several & (self.occupancy.sum(axis=1) > 0))

    def required(self) -> "Plan":
        """This plan, or an error if it is infeasible: for code that cannot do without one."""
        if not self.feasible:
            raise InfeasibleError(str(self.infeasibility or "no policy meets the thresholds"))
        return self

    def act(self, state: Any, rng: np.random.Generator | None = None) -> Any:
        """The action in a state, given by name or number; a plan that breaks the limits has to be asked otherwise.

        A plan with a ``mixture`` draws its lot when it first sees a generator, and plays the policy it drew whenever it
        is asked with that one again: one generator a run, and a new one for the next.
        """
        self._need_playable()
        if self.mixture is None:
            return super().act(state, rng)
        if not isinstance(rng, np.random.Generator):
            raise PolicyError(
                f"this plan draws one of {len(self.mixture)} policies by lot for each run: give act the generator of "
                f"the run, numpy.random.default_rng(0), or play plan.draw(rng); got {rng!r}"
            )
        action = int(self.mixture.drawn_for(rng)[self.names.state_number(state, len(self.policy))])
        return self.names.answer(action, state)

    def draw(self, rng: np.random.Generator) -> Floats:
        """A policy (S, A) to play for one run: by lot if the plan has a ``mixture``, else its policy.

        >>> import psconrl
        >>> stay_or_go, end = [[1, 0], [0, 1]], [[0, 1], [0, 1]]
        >>> model = psconrl.CMDP([stay_or_go, end], [[[0, 1], [1, 1]], [[1, 0], [0, 0]]], [0.75])
        >>> plan = psconrl.plan(model)
        >>> plan.mixture.shares.tolist(), plan.value
        ([0.25, 0.75], 0.25)
        >>> plan.draw(np.random.default_rng(0))[0].tolist()
        [1.0, 0.0]
        """
        self._need_playable()
        if not isinstance(rng, np.random.Generator):
            raise PolicyError(f"rng must be a NumPy generator, as numpy.random.default_rng(0); got {rng!r}")
        if self.mixture is None:
            return self.policy.copy()
        drawn: Floats = one_hot(self.mixture.draw(rng), self.policy.shape[1])
        return drawn

    def rows(self) -> Iterator[tuple[str | float, ...]]:
        """The rows of the table; of a mixture for every policy, with its number, from 1, and its share."""
        if self.mixture is None:
            yield from super().rows()
            return
        for j, (actions, share) in enumerate(zip(self.mixture.policies, self.mixture.shares, strict=True)):
            for s, a in enumerate(actions):
                long_run = float(share * self.mixture.distributions[j, s])
                yield self.names.state(s), self.names.action(int(a)), 1.0, long_run, j + 1, float(share)

    @property
    def columns_of_table(self) -> tuple[str, ...]:
        """The header of the table."""
        return super().columns_of_table + (() if self.mixture is None else ("lot", "lot_share"))

    def _need_playable(self) -> None:
        if not self.feasible:
            why = self.infeasibility or "no policy meets the thresholds."
            raise InfeasibleError(f"{why} The policy of least excess is in plan.policy")
        if not self.meets_constraints:
            raise PolicyError(
                f"the policy of this plan, which is {self.status.value}, exceeds its limits by "
                f"{self.certificate.excess.max():.3g}; see plan.note. It is in plan.policy"
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Keep the plan in an ``.npz`` file, written whole or not at all."""
        plan_files.save(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "Plan":
        """A plan that was saved."""
        return Plan(**plan_files.load(path))

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write everything for other programs, in names and units: what ``psconrl solve --json`` prints."""
        plan_files.write_json(self, path)

    def record(self) -> dict[str, Any]:
        """The same as plain data; what is not a number becomes None."""
        return plan_files.record(self)

    def __repr__(self) -> str:
        costs = ", ".join(f"{c + 0.0:.6g}" for c in (self.names.signs * self.costs)[1:])
        lot = "" if self.mixture is None else f" by lot among {len(self.mixture)} policies"
        return f"Plan({self.status.value}{lot}, value={self.value:.8g}, costs=[{costs}], gap={abs(self.gap):.1e})"
