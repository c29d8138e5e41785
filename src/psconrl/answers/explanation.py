r"""Explanation of a plan's action in a state: what each action would change in every cost, and at the shadow prices.

Playing action a once in state s and then following the plan changes the total of cost i over all future rounds by the
advantage :math:`A_i(s, a)` of ``continuation``. At the shadow prices :math:`\lambda` the sum
:math:`A_0 + \sum_i \lambda_i A_i` is zero for the actions of an optimal plan and nowhere negative (Altman 1999,
chapter 4). Where the plan is not the best, since it never gets there, it is followed as its prices suggest.
"""

from dataclasses import dataclass
from typing import Any

from psconrl.answers.continuation import effects
from psconrl.base.arrays import Floats, Ints
from psconrl.model.cmdp import CMDP, need_model
from psconrl.model.names import Names
from psconrl.planning.plan import Plan
from psconrl.planning.planner import plan


@dataclass(frozen=True, eq=False)
class Explanation:
    """The actions available in one state and what playing each once would change, as costs (less is better)."""

    state: int
    share: float  # long-run share of rounds in this state
    actions: Ints  # (K,) available here, the best first
    probabilities: Floats  # (K,) of the plan
    changes: Floats  # (K, m+1) of the total of every cost over all future rounds
    prices: Floats  # (m,) shadow prices of the plan
    worth: Floats  # (K,) sum of the changes at these prices, in units of the objective
    average_changes: Floats  # (K, m+1) of the long-run averages; zero unless the action leads to another class
    names: Names
    proven: tuple[str, ...] = ()  # what the certificate of the plan proves, with its tolerances
    initially_randomised: bool = False  # whether the plan is a mixture; this then explains its stationary policy

    def record(self) -> dict[str, Any]:
        """Return plain data for JSON, in the user's names and sense: a higher reward is positive, as in tables."""
        costs = self.names.costs
        sign = self.names.signs
        return {
            "state": self.names.state(self.state),
            "sense": self.names.sense,
            "initially_randomised": self.initially_randomised,
            "units": {name: self.names.units.total(name) for name in costs if self.names.units.total(name)},
            "share": self.share,
            "proven": list(self.proven),
            "prices": dict(zip(costs[1:], self.prices.tolist(), strict=True)),
            "actions": [
                {
                    "action": self.names.action(int(a)),
                    "probability": float(p),
                    "changes": dict(zip(costs, (sign * change).tolist(), strict=True)),
                    "average_changes": dict(zip(costs, (sign * average).tolist(), strict=True)),
                    "worth": float(sign[0] * total),
                }
                for a, p, change, average, total in zip(
                    self.actions, self.probabilities, self.changes, self.average_changes, self.worth, strict=True
                )
            ],
        }


def explain(cmdp: CMDP, state: int | str, best: Plan | None = None) -> Explanation:
    """Return what each action in a state would change if it were played once and the plan followed from then on.

    ``cmdp``: the model. ``state``: a state, by name or number. ``best``: the plan of the model, if it is known.

    >>> import psconrl
    >>> why = explain(psconrl.load("queue"), "0 waiting")
    >>> why.names.action(int(why.actions[0])), bool(abs(why.worth[0]) < 1e-9), bool((why.worth >= -1e-9).all())
    ('speed 0 open', True, True)
    """
    need_model(cmdp, "explain")
    s = cmdp.names.state_number(state, cmdp.n_states)
    followed = (plan(cmdp) if best is None else best).required()
    found = effects(cmdp, followed, s)
    return Explanation(
        s,
        found.share,
        found.actions[found.order],
        found.probabilities[found.order],
        found.changes[found.order],
        followed.multipliers,
        found.worth[found.order],
        found.average_changes[found.order],
        cmdp.names,
        followed.proven,
        followed.mixture is not None,
    )
