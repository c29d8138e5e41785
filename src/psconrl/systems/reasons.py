"""Why a policy plays an action in a state: what the others would change in the costs of the system, in its units."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from psconrl.arrays import Floats
from psconrl.markov.evaluation import evaluate_policy
from psconrl.model.cmdp import CMDP
from psconrl.model.units import Units
from psconrl.planning.plan import Plan
from psconrl.products import product
from psconrl.systems.functions import shown_values
from psconrl.systems.measures import Measures
from psconrl.systems.quantities import Combination
from psconrl.systems.stated import Stated

NO_CHANGE = 1e-9  # of the range of a cost


@dataclass(frozen=True)
class Alternative:
    """An action in a state, and the effect of playing it once before following the plan again."""

    action: Mapping[str, Any]
    probability: float  # of the plan
    changes: Mapping[str, float]  # of the total of every cost of the system over all future rounds
    loss: float  # at the shadow prices, in units of the objective: zero for what the plan plays, if it is optimal


@dataclass(frozen=True, eq=False)
class Reasons:
    """The actions that are available in a state, the best first; ``str`` has one line for each."""

    state: Mapping[str, Any]
    share: float  # of rounds in this state
    alternatives: tuple[Alternative, ...]
    units: Units

    def __str__(self) -> str:
        lines = [f"{shown_values(self.state)}, {100 * self.share:.3g}% of rounds"]
        for one in self.alternatives:
            played = f"played with {100 * one.probability:.4g}%" if one.probability > 0 else f"loses {one.loss:.4g}"
            changes = ", ".join(
                f"{name} {x:+.4g} {self.units.total(name)}".rstrip() for name, x in one.changes.items() if x
            )
            lines.append(f"  {shown_values(one.action)}: {played}{'; ' + changes if changes else ''}")
        return "\n".join(lines)


def find_reasons(system: Stated, model: CMDP, plan: Plan, measures: Measures, state: Mapping[str, Any]) -> Reasons:
    """Return what each action in a state would change, see ``planning.analysis.explanation`` for the formula."""
    names = system.cost_names
    own = [measures.cost(Combination.of(name)) for name in names]
    costs = np.concatenate([model.costs, np.array(own).reshape(len(own), *model.available.shape)])
    both = CMDP(model.transition, costs, np.zeros(len(costs) - 1), initial=model.initial, available=model.available)
    exact = evaluate_policy(both, plan.policy)
    s = system.state_number(state)
    actions = np.flatnonzero(model.available[s])
    rows = model.transition.rows(s * model.n_actions + actions)
    changes: Floats = costs[:, s, actions].T - exact.gains[:, s] + product(rows, exact.biases.T) - exact.biases[:, s]
    changes[np.abs(changes) <= NO_CHANGE * np.ptp(costs, axis=(1, 2))] = 0.0
    m = model.n_constraints
    worth = product(changes[:, : m + 1], np.concatenate([[1.0], plan.multipliers]))
    played = plan.policy[s, actions]
    order = np.argsort(np.where(played > 0, -np.inf, worth), kind="stable")
    found = tuple(
        Alternative(
            system.actions.label(int(actions[k])),
            float(played[k]),
            dict(zip(names, changes[k, m + 1 :].tolist(), strict=True)),
            float(worth[k]),
        )
        for k in order
    )
    return Reasons(dict(state), float(exact.occupancy[s].sum()), found, system.units)
