r"""The best deterministic policy and its price relative to the optimum.

With constraints an optimal policy may have to randomise, and finding the best deterministic policy is NP-hard. The
search is branch and bound: a plan of the model, or of the model with fewer actions, bounds from below the cost of every
deterministic policy in it. Branching is on the action of a state in which the plan randomises. Rounding the plan to
deterministic policies gives incumbents; branches that cannot be cheaper than the best incumbent are pruned (Land and
Doig 1960).
"""

import heapq
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError, InfeasibleError, SolverError
from psconrl.kernels.chains.occupancy import one_hot
from psconrl.markov.evaluation import Evaluation, evaluate_policy
from psconrl.model.cmdp import CMDP, need_model
from psconrl.model.names import Names
from psconrl.planning.deployable import Deployable
from psconrl.planning.plan import Plan
from psconrl.planning.planner import plan_model, plan_unexplained
from psconrl.planning.proof.certificate import Status
from psconrl.planning.proof.certificate_units import excess_units, units
from psconrl.planning.tolerances import PROVEN_EXCESS, PROVEN_GAP, UNVISITED_WEIGHT

MOST_PLANS = 200  # in one search
MOST_ROUNDINGS = 64  # of one plan


@dataclass(frozen=True, eq=False)
class SimplePolicy(Deployable):
    """A feasible deterministic policy and its price relative to the optimum over all policies."""

    actions: Ints  # (S,)
    value: float  # average objective in the user's sense
    costs: Floats  # (m+1,)
    price: float  # by how much the objective is worse than the optimum; nonnegative up to rounding
    least_price: float  # proven lower bound on the price of every deterministic policy
    unit: float  # of differences of the objective, as in certificates
    policy: Floats  # (S, A)
    occupancy: Floats  # (S, A)
    names: Names

    @property
    def is_proven(self) -> bool:
        """Whether it is proven that no deterministic policy is better."""
        return self.price - self.least_price <= self.tolerance

    @property
    def tolerance(self) -> float:
        """Largest distance of the price from its proven minimum that counts as none, in units of the objective."""
        return PROVEN_GAP * self.unit

    def __repr__(self) -> str:
        proven = "the best" if self.is_proven else f"least possible {self.least_price:.3g}"
        return f"SimplePolicy(value={self.value:.8g}, price={self.price:.3g}, {proven})"


class SearchProgress(NamedTuple):
    """Progress of the search for the best deterministic policy."""

    plans: int  # so far
    value: float  # average objective of the best policy so far, in the user's sense; nan if there is none
    gap: float  # between the best policy so far and the proven bound on all of them; inf if there is none
    seconds: float  # since the search began

    def __str__(self) -> str:
        best = "no policy yet" if np.isnan(self.value) else f"value {self.value:.6g}, gap {self.gap:.1e}"
        return f"{self.plans} plan{'s' if self.plans > 1 else ''}, {self.seconds:.0f} s: {best}"


def best_deterministic(
    cmdp: CMDP,
    best: Plan | None = None,
    *,
    most_plans: int = MOST_PLANS,
    progress: Callable[[SearchProgress], object] | None = None,
) -> SimplePolicy:
    """Return the cheapest deterministic policy within the thresholds.

    ``best``: the plan of the model, if it is known. After ``most_plans`` plans the best policy found is returned with
    the proven least price. ``progress``: called before every plan of the search, for example ``print``. Ctrl-C then
    returns the best policy found, if there is one. Raises an error if no deterministic policy meets the thresholds.

    >>> import psconrl
    >>> best_deterministic(psconrl.load("counterexample"))
    SimplePolicy(value=0.52631579, price=0.00118, the best)
    """
    need_model(cmdp, "best_deterministic")
    if not isinstance(most_plans, int) or most_plans < 1:
        raise ConfigError(f"most_plans must be a whole number from 1; got {quoted(most_plans)}")
    if progress is not None and not callable(progress):
        raise ConfigError(f"progress must be a function, such as print; got {quoted(progress)}")
    root = (plan_model(cmdp) if best is None else best).required()
    search = BranchAndBound(cmdp, progress)
    bound = search.run(root, most_plans)
    if search.actions is None:
        if np.isfinite(bound):
            raise SolverError(f"no deterministic policy was found in {most_plans} plans; allow more with most_plans")
        raise InfeasibleError("no deterministic policy meets the thresholds; play the plan, or relax them")
    assert search.exact is not None
    return simple_policy(cmdp, root, search.actions, search.exact, bound)


def simple_policy(cmdp: CMDP, best: Plan, actions: Ints, exact: Evaluation, bound: float) -> SimplePolicy:
    """Return a deterministic policy with its price; ``bound`` is a lower bound on the cost of all such policies."""
    optimum = best.certificate.lower  # a plan that mixes classes of states does not attain it
    price = float(exact.costs[0] - optimum)
    least = min(max(float(bound - optimum), 0.0), price)
    policy = one_hot(actions, cmdp.n_actions)
    unit = float(units(cmdp, exact.occupancy)[0])
    return SimplePolicy(actions, exact.value, exact.costs, price, least, unit, policy, exact.occupancy, cmdp.names)


def is_within(cmdp: CMDP, exact: Evaluation) -> bool:
    """Whether a policy meets the thresholds, to the tolerance of plans."""
    unit = excess_units(cmdp, exact.occupancy, units(cmdp, exact.occupancy))
    return bool((exact.costs[1:] - cmdp.thresholds <= PROVEN_EXCESS * unit).all())


class BranchAndBound:
    """Branch and bound over the sets of actions available in each state."""

    def __init__(self, cmdp: CMDP, progress: Callable[[SearchProgress], object] | None = None) -> None:
        self.cmdp = cmdp
        self.actions: Ints | None = None  # the best policy so far
        self.exact: Evaluation | None = None
        self._progress, self._began = progress, time.monotonic()
        self._plans = 1  # the root's
        self._least = -np.inf  # lower bound on the cost of the policies in branches not yet explored
        self._seen: set[bytes] = set()
        self._heap: list[tuple[float, int, Bools, Plan]] = []
        self._number = itertools.count()  # so that the heap never compares arrays

    def run(self, root: Plan, most_plans: int) -> float:
        """Search; return a lower bound on the cost of feasible deterministic policies, inf if there are none.

        An interrupted search that reports its progress ends with the best policy so far, if there is one.
        """
        try:
            self._explore(root, most_plans)
        except KeyboardInterrupt:
            if self._progress is None or self.exact is None:
                raise
        return self._bound

    def _explore(self, root: Plan, most_plans: int) -> None:
        self._least = root.certificate.lower
        self._open(self.cmdp.available, root)
        while True:
            self._least = self._heap[0][0] if self._heap else np.inf
            if not (self._plans < most_plans and self._least < self._enough):
                return
            _, _, mask, found = heapq.heappop(self._heap)
            for part in self._branches(mask, found):
                self._report()
                child = plan_unexplained(_with_actions(self.cmdp, part), start=found)
                self._plans += 1
                if child.status is not Status.INFEASIBLE:
                    self._open(part, child)

    @property
    def _bound(self) -> float:
        return self._least if self.exact is None else min(self._least, float(self.exact.costs[0]))

    def _report(self) -> None:
        if self._progress is not None:
            value, gap = np.nan, np.inf
            if self.exact is not None:
                value, gap = self.exact.value, float(self.exact.costs[0]) - self._bound
            self._progress(SearchProgress(self._plans, value, gap, time.monotonic() - self._began))

    @property
    def _enough(self) -> float:
        """Bound from which on a branch is pruned."""
        if self.exact is None:
            return np.inf
        return float(self.exact.costs[0] - PROVEN_GAP * units(self.cmdp, self.exact.occupancy)[0])

    def _open(self, mask: Bools, found: Plan) -> None:
        """Round a plan to deterministic policies, and queue it unless its policy is deterministic and optimal."""
        for actions in self._roundings(found):
            self._consider(actions)
        randomised = (found.policy > 0).sum(axis=1).max() > 1
        settled = found.status is Status.OPTIMAL and not randomised and found.mixture is None
        if not settled and mask.sum() > len(mask):
            heapq.heappush(self._heap, (found.certificate.lower, next(self._number), mask, found))

    def _consider(self, actions: Ints) -> None:
        if actions.tobytes() in self._seen:
            return
        self._seen.add(actions.tobytes())
        exact = evaluate_policy(self.cmdp, one_hot(actions, self.cmdp.n_actions))
        better = self.exact is None or exact.costs[0] < self.exact.costs[0]
        if better and is_within(self.cmdp, exact):
            self.actions, self.exact = actions, exact

    @staticmethod
    def _roundings(found: Plan) -> list[Ints]:
        """Return all roundings of a plan; if there are too many, the most likely actions and the plan's columns."""
        likeliest = found.policy.argmax(axis=1)
        randomised = np.flatnonzero((found.policy > 0).sum(axis=1) > 1)
        choices = [np.flatnonzero(found.policy[s]) for s in randomised]
        if np.prod([float(c.size) for c in choices]) > MOST_ROUNDINGS:
            return [likeliest, *found.columns]
        rounded = [] if found.mixture is None else list(found.mixture.policies)
        for chosen in itertools.product(*choices):
            actions = likeliest.copy()
            actions[randomised] = chosen
            rounded.append(actions)
        return rounded

    @staticmethod
    def _branches(mask: Bools, found: Plan) -> list[Bools]:
        """Split the deterministic policies of a mask by their action where the plan randomises most evenly.

        A deterministic plan may miss its bound if that mixes classes of states. The split is then in the state that the
        plan visits most often.
        """
        mass = UNVISITED_WEIGHT + found.occupancy.sum(axis=1)
        share = np.sort(found.policy, axis=1)[:, -2] * mass if mask.shape[1] > 1 else np.zeros(len(mask))
        s = int(share.argmax()) if share.max() > 0 else int((mass * (mask.sum(axis=1) > 1)).argmax())
        played = found.policy[s] > 0
        rows = [np.eye(mask.shape[1], dtype=bool)[a] for a in np.flatnonzero(played)]
        rest = mask[s] & ~played
        if rest.any():
            rows.append(rest)
        parts = []
        for row in rows:
            part = mask.copy()
            part[s] = row
            parts.append(part)
        return parts


def _with_actions(cmdp: CMDP, available: Bools) -> CMDP:
    """Return the model with fewer actions."""
    return CMDP(
        cmdp.transition,
        cmdp.costs,
        cmdp.thresholds,
        initial=cmdp.initial,
        available=available,
        cost_names=cmdp.cost_names,
        maximise=cmdp.maximise,
        at_least=cmdp.at_least,
    )
