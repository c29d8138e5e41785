r"""Plans that meet the thresholds over every window of a given mean length, not only in the long run.

A window begins in some state and ends after each round with probability 1/L, so that it lasts L rounds on average.
The expected average of a cost over a window from state s is

.. math:: u(s) = \frac1L \sum_{t \ge 0} \Bigl(1 - \frac1L\Bigr)^t E_s\, c(s_t, a_t),

which is the long-run average in the model that returns to s with probability 1/L in every round. So the plan of that
model is the best policy for a window from s that meets the thresholds over the window. The next window begins where
this one has ended. With a plan for each state in which a window can begin, every window meets the thresholds in
expectation, whatever happened before.

If d(s) is the occupancy measure of the window from s, the next window begins in a state drawn from d(s) P. So the first
states of windows are a Markov chain, and the long-run average of a cost is that of u along this chain.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError, ModelError, PolicyError
from psconrl.markov.evaluation import evaluate
from psconrl.model.cmdp import CMDP, need_model
from psconrl.model.fingerprint import fingerprint
from psconrl.planning.deployable import COLUMNS, Deployable, write_table
from psconrl.planning.plan import Plan
from psconrl.planning.planner import plan_model, plan_unexplained
from psconrl.planning.proof.certificate import Status

MOST_STARTS = 1000  # states in which windows may begin; each needs its own plan


@dataclass(frozen=True, eq=False)
class WindowPlan:
    """A plan for the window from every state in which one can begin.

    ``value`` and ``costs`` are the long-run averages of playing window after window. ``plain`` is the plan for the long
    run alone, ``price`` the amount by which it is better. ``worst`` has the largest expected averages of the
    constrained costs over a window, over all first states. ``infeasible`` has the states from which no policy meets the
    thresholds over a window; there the policy of least excess is played. ``controller`` returns an object that plays.
    """

    within: float  # rounds of a window, on average
    plans: Mapping[int, Plan]  # by the state in which the window begins
    value: float  # in the user's sense, as in ``Plan``
    costs: Floats  # (m+1,)
    plain: Plan

    @property
    def price(self) -> float:
        """By how much the plain plan is better in the long run, in units of the objective."""
        return float(self.costs[0] - self.plain.costs[0])

    @property
    def worst(self) -> Floats:
        """Largest expected average of every constrained cost over a window, (m,)."""
        return np.asarray(np.max([part.costs[1:] for part in self.plans.values()], axis=0))

    @property
    def infeasible(self) -> Ints:
        """States from which no policy meets the thresholds over a window."""
        return np.array([state for state, part in self.plans.items() if not part.feasible], dtype=np.int64)

    @property
    def proven(self) -> bool:
        """Whether the plan of every window is proven to be optimal or of least excess."""
        return all(part.certificate.holds and part.status in _PROVEN for part in self.plans.values())

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write all policies as a CSV table: the first state of the window, then the columns of a plan."""
        names = self.plain.names
        rows = ((names.state(first), *row) for first, part in self.plans.items() for row in part.rows())
        write_table(path, ("first_state", *COLUMNS), rows)

    def record(self) -> dict[str, Any]:
        """Return a summary as plain data, with names; ``to_csv`` writes the policies."""
        names = self.plain.names
        costs, worst = names.signs * self.costs, names.signs[1:] * self.worst
        return {
            "within": self.within,
            "value": self.value,
            "price": self.price,
            "costs": dict(zip(names.costs, costs.tolist(), strict=True)),
            "worst": dict(zip(names.costs[1:], worst.tolist(), strict=True)),
            "first_states": [names.state(s) for s in self.plans],
            "infeasible": [names.state(int(s)) for s in self.infeasible],
            "proven": self.proven,
        }

    def controller(self, rng: np.random.Generator | int | None = None) -> "WindowController":
        """Return a controller that plays window after window; the same generator or seed gives the same actions."""
        try:
            return WindowController(self, np.random.default_rng(rng))
        except (TypeError, ValueError):
            raise PolicyError(f"rng must be a NumPy generator or a seed from 0 on; got {quoted(rng)}") from None

    def __repr__(self) -> str:
        lost = f", {self.infeasible.size} of them infeasible" if self.infeasible.size else ""
        return (
            f"WindowPlan(within={self.within:g}, value={self.value:.8g}, price={self.price:.3g}, "
            f"{len(self.plans)} states to begin in{lost})"
        )


_PROVEN = (Status.OPTIMAL, Status.INFEASIBLE)


class WindowController:
    """Plays the plan of the current window and begins a new window with probability 1/L after each action."""

    def __init__(self, windows: WindowPlan, rng: np.random.Generator) -> None:
        self._windows, self._rng = windows, rng
        self._plan: Plan | None = None

    def act(self, state: Any) -> Any:
        """Return the action in a state, given by name or number."""
        if self._plan is None:
            self._plan = self._begin(state)
        action = Deployable.act(self._plan, state, self._rng)
        if self._rng.random() * self._windows.within < 1.0:
            self._plan = None
        return action

    def _begin(self, state: Any) -> Plan:
        names, plans = self._windows.plain.names, self._windows.plans
        number = names.state_number(state, len(self._windows.plain.policy))
        if number not in plans:
            raise PolicyError(f"no window begins in state {quoted(names.state(number))}: the start does not lead there")
        return plans[number]


def plan_windows(
    cmdp: CMDP, within: float, plain: Plan | None = None, progress: Callable[[str], object] | None = None
) -> WindowPlan:
    """Return plans that meet the thresholds over windows of about ``within`` rounds, one for each state to begin in.

    ``cmdp``: the model. ``plain``: the long-run plan of the model, if it is known. ``progress``: called with a line of
    text after the plan of every window, for example ``print``.

    In this example two islands may each be used half of the time, and crossing takes a round. In the long run the best
    policies cross ever more rarely. Over windows of a hundred rounds, half a round is lost in each on average:

    >>> import psconrl
    >>> psconrl.plan_windows(psconrl.load("islands"), within=100)
    WindowPlan(within=100, value=0.50502513, price=0.00503, 2 states to begin in)
    """
    need_model(cmdp, "plan_windows")
    length = _length(within)
    if progress is not None and not callable(progress):
        raise ConfigError(f"progress must be a function, such as print; got {quoted(progress)}")
    if plain is not None and not isinstance(plain, Plan):
        raise ModelError(f"plain must be a plan, as psconrl.plan returns it; got {type(plain).__name__}")
    plain = (plan_model(cmdp) if plain is None else plain).required()
    if plain.model != fingerprint(cmdp):
        raise ModelError("plain must be the plan of this model; it is that of another one")
    plans: dict[int, Plan] = {}
    next_starts: dict[int, Floats] = {}
    waiting = [int(s) for s in np.flatnonzero(cmdp.initial)]
    known = set(waiting)
    while waiting:
        if len(known) > MOST_STARTS:
            raise ConfigError(
                f"windows can begin in more than {MOST_STARTS:,} states, and each needs its own plan; plan the "
                "window from a single state with plan_model(model.restarting(state, 1 / within))"
            )
        state = waiting.pop()
        found = plan_unexplained(cmdp.restarting(state, 1.0 / length), start=plain)
        plans[state], next_starts[state] = found, found.occupancy.ravel() @ cmdp.transition
        new = [int(s) for s in np.flatnonzero(next_starts[state]) if int(s) not in known]
        known.update(new)
        waiting += new
        if progress is not None:
            progress(f"{len(plans)} of {len(known)} states in which windows begin")
    costs = _one_after_another(cmdp, plans, next_starts)
    return WindowPlan(length, dict(sorted(plans.items())), float(plain.names.signs[0] * costs[0]), costs, plain)


def _length(within: Any) -> float:
    try:
        length = float(within)
    except (TypeError, ValueError):
        length = np.nan
    if not 1.0 < length < np.inf:
        raise ConfigError(f"within must be a finite number of rounds above 1; got {quoted(within)}")
    return length


def _one_after_another(cmdp: CMDP, plans: Mapping[int, Plan], next_starts: Mapping[int, Floats]) -> Floats:
    """Return the long-run averages of all costs, (m+1,), from the chain of first states."""
    states = np.array(sorted(plans))
    rows = np.array([next_starts[s][states] for s in states.tolist()])
    averages = np.array([plans[s].costs for s in states.tolist()]).T
    following = (rows / rows.sum(axis=1, keepdims=True))[:, None, :]
    chain = CMDP(following, averages[:, :, None], np.zeros(len(averages) - 1), initial=cmdp.initial[states])
    return evaluate(chain, np.ones((len(states), 1))).costs
