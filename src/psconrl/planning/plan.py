"""``Plan``, the return type of every planner: policy, average costs, shadow prices and certificate."""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.escaping import quoted
from psconrl.errors import InfeasibleError, PolicyError
from psconrl.kernels.chains.occupancy import one_hot, policy_from_occupancy, randomised_in
from psconrl.model.cmdp import CMDP
from psconrl.model.fingerprint import fingerprint
from psconrl.model.names import Names
from psconrl.planning import plan_files
from psconrl.planning.deployable import Deployable, DrawnPolicy
from psconrl.planning.exact.exact_plan import ExactPlan
from psconrl.planning.infeasibility import Infeasibility
from psconrl.planning.mixture_policy import PolicyMixture
from psconrl.planning.proof.certificate import Certificate, Status
from psconrl.planning.proof.proof_files import save_proof
from psconrl.planning.proof.sentences import proven


@dataclass(frozen=True, eq=False)
class Plan(Deployable):
    """A policy with its exact averages, the shadow price of every threshold, and a certificate.

    ``status`` says whether the plan is proven to be optimal. ``value`` is the average objective in the user's sense (a
    reward if the model was built from rewards). ``costs[i]`` is the average of ``cmdp.costs[i]``. ``multipliers[i]`` is
    the value of one more unit of threshold i, in units of the objective. If the model is infeasible, the policy has the
    least possible excess and the multipliers are Farkas weights. ``act`` returns actions, ``save`` and ``Plan.load``
    store the plan, ``to_csv`` and ``to_json`` export it to other programs.

    If no stationary policy is optimal, ``mixture`` holds policies, one of which each run draws at its start. Value,
    costs, occupancy and certificate are then those of the mixture, and ``policy`` is the closest stationary policy.
    """

    status: Status
    value: float
    costs: Floats  # (m+1,)
    thresholds: Floats  # (m,) for which the plan was made
    policy: Floats  # (S, A)
    occupancy: Floats  # (S, A)
    multipliers: Floats  # (m,)
    potential: Floats  # (S,) h of the certificate
    low_potential: Floats  # (S,) low-order part, to be added to the potential; mostly zero
    gains: Floats | None  # (S,) g of a multichain certificate
    certificate: Certificate
    method: str  # "mixture", "lp" or "exact"
    note: str  # deviations from the ordinary procedure; empty if none
    infeasibility: Infeasibility | None
    columns: tuple[Ints, ...]  # deterministic policies to start a later plan from
    names: Names  # of states, actions and costs
    mixture: PolicyMixture | None = None  # policies and their probabilities, if the optimum needs initial randomisation
    origin: CMDP | str = ""  # the model or its fingerprint; empty if unknown
    settles: float = math.nan  # rounds until every average is within 1% of the cost's range of its long-run value
    exact: ExactPlan | None = None  # the plan in rational numbers, if it was made with them

    def of_model(self, cmdp: CMDP) -> "Plan":
        """Return the plan with a reference to its model."""
        marked = object.__new__(Plan)
        marked.__dict__.update(self.__dict__, origin=cmdp)  # dataclasses.replace takes as long as an evaluation
        return marked

    @property
    def model(self) -> str:
        """Fingerprint of the model, computed on first access; empty if the model is unknown."""
        if not isinstance(self.origin, str):
            object.__setattr__(self, "origin", fingerprint(self.origin))
        return str(self.origin)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "origin": self.model}

    @property
    def feasible(self) -> bool:
        """Whether some policy meets the thresholds."""
        return self.status is not Status.INFEASIBLE

    @property
    def meets_constraints(self) -> bool:
        """Whether what ``act`` plays meets the thresholds: always if optimal, not necessarily if not attained."""
        proof = self.certificate
        return self.status is Status.OPTIMAL or bool((proof.excess <= proof.limit_tolerances).all())

    @property
    def policy_certificate(self) -> Certificate:
        """Certificate of ``policy``: that of the plan, unless the plan is a mixture."""
        return self.certificate if self.mixture is None else self.mixture.policy_certificate

    @property
    def policy_meets_constraints(self) -> bool:
        """Whether ``policy``, the stationary one, meets the thresholds."""
        return (
            self.meets_constraints if self.mixture is None else self.feasible and self.mixture.policy_certificate.holds
        )

    @property
    def shown_policy(self) -> Floats:
        """Action probabilities in every state (S, A) over all runs; for a mixture, the long-run action frequencies."""
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
        """Visited states with randomised actions; at most m are needed."""
        if self.mixture is not None:
            return np.empty(0, dtype=np.int64)
        states: Ints = randomised_in(np.ascontiguousarray(self.policy), np.ascontiguousarray(self.occupancy))
        return states

    def required(self) -> "Plan":
        """Return this plan; raise ``InfeasibleError`` if it is infeasible."""
        if not self.feasible:
            raise InfeasibleError(str(self.infeasibility or "no policy meets the thresholds"))
        return self

    def act(self, state: Any, rng: np.random.Generator | None = None) -> Any:
        """Return the action in a state, given by name or number.

        A plan that exceeds its thresholds refuses. So does a mixture: draw a policy for each run, and ask that one.
        """
        self._need_one_policy()
        return super().act(state, rng)

    def probabilities(self, state: Any) -> Floats:
        """Return the probabilities (A,) of the actions in a state, given by name or number; see ``act``."""
        self._need_one_policy()
        return super().probabilities(state)

    def _need_one_policy(self) -> None:
        self._need_playable()
        if self.mixture is not None:
            raise PolicyError(
                f"this plan is a mixture of {len(self.mixture)} policies, of which each run plays one: "
                "policy = plan.draw(rng), then policy.act(state)"
            )

    def draw(self, rng: np.random.Generator) -> DrawnPolicy:
        """Return the policy of one run: drawn from the mixture if the plan is one, else the plan's own.

        >>> import psconrl
        >>> stay_or_go, end = [[1, 0], [0, 1]], [[0, 1], [0, 1]]
        >>> model = psconrl.CMDP([stay_or_go, end], [[[0, 1], [1, 1]], [[1, 0], [0, 0]]], [0.75])
        >>> plan = psconrl.plan(model)
        >>> plan.mixture.shares.tolist(), plan.value
        ([0.25, 0.75], 0.25)
        >>> plan.draw(np.random.default_rng(0)).act(0)
        0
        """
        self._need_playable()
        if not isinstance(rng, np.random.Generator):
            raise PolicyError(f"rng must be a NumPy generator, as numpy.random.default_rng(0); got {quoted(rng)}")
        if self.mixture is None:
            return DrawnPolicy(self.policy.copy(), self.occupancy.copy(), self.names)
        drawn = self.mixture.draw(rng)
        policy: Floats = one_hot(self.mixture.policies[drawn], self.policy.shape[1])
        return DrawnPolicy(policy, policy * self.mixture.distributions[drawn][:, None], self.names)

    def rows(self) -> Iterator[tuple[str | float, ...]]:
        """Yield the rows of the table; for a mixture, those of every policy, with its number from 1 and its share."""
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
        return super().columns_of_table + (() if self.mixture is None else ("policy_number", "policy_share"))

    def _need_playable(self) -> None:
        if not self.feasible:
            why = self.infeasibility or "no policy meets the thresholds."
            raise InfeasibleError(f"{why} The policy of least excess is in plan.policy")
        if not self.meets_constraints:
            raise PolicyError(
                f"the policy of this plan, which is {self.status.value}, exceeds its thresholds by "
                f"{self.certificate.excess.max():.3g}; see plan.note. It is in plan.policy"
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the plan to an ``.npz`` file, atomically."""
        plan_files.save_plan(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "Plan":
        """Load a plan that was saved with ``save``."""
        return Plan(**plan_files.load_plan(path))

    def save_proof(self, path: str | os.PathLike[str], model: CMDP) -> None:
        """Write a proof of the plan to a ``.json`` file, which can be checked without this library.

        ``python -m check_proof model.npz proof.json`` checks it in exact arithmetic; that folder of this package needs
        nothing but Python. ``psconrl verify`` does the same.
        """
        save_proof(model, self, path)

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as JSON, with names and units, as printed by ``psconrl solve --json``."""
        plan_files.write_json(self, path)

    def record(self) -> dict[str, Any]:
        """Return the plan as plain data, as written by ``to_json``; numbers that are not finite become None."""
        return plan_files.record(self)

    @property
    def proven(self) -> tuple[str, ...]:
        """What the certificate proves, a line for the objective and each limit, with the tolerances that applied."""
        return proven(self.status, self.certificate, self.names)

    def __str__(self) -> str:
        return "\n  ".join((repr(self), *self.proven))

    def __repr__(self) -> str:
        costs = ", ".join(f"{c + 0.0:.6g}" for c in (self.names.signs * self.costs)[1:])
        mixture = "" if self.mixture is None else f", mixture of {len(self.mixture)} policies"
        return f"Plan({self.status.value}{mixture}, value={self.value:.8g}, costs=[{costs}], gap={abs(self.gap):.1e})"
