"""The constants of a model that the theory of an agent assumes to be known, for the spec key ``true_constants``.

An agent names them in its class attribute ``theory_constants``. They are options of its constructor.
"""

from collections.abc import Collection
from typing import Any

import numpy as np

from psconrl.arrays import Floats
from psconrl.errors import ConfigError
from psconrl.escaping import quoted
from psconrl.learning.registry import recipe_for
from psconrl.model.cmdp import CMDP
from psconrl.planning.analysis.inspection import spans_of
from psconrl.planning.analysis.slater import slater_gap
from psconrl.planning.planner import plan
from psconrl.planning.proof import Status
from psconrl.planning.scaling import cost_units
from psconrl.planning.tolerances import FEASIBLE

SPAN_CONSTANTS = ("span", "span_objective", "span_limited", "kappa")


def need_assumed(agent: str, chosen: Collection[str]) -> None:
    """Raise an error if an agent assumes no constants, or if its options contradict them."""
    assumed = recipe_for(agent).theory_constants
    if not assumed:
        raise ConfigError(f"true_constants: the theory of agent {quoted(agent)} assumes no constant of the model")
    for option in sorted(set(assumed) & set(chosen)):
        raise ConfigError(f"option {option} and true_constants contradict each other")


def true_constants(model: CMDP, agent: str) -> dict[str, Any]:
    """Return the true values of the constants that the theory of an agent assumes, as options of the agent."""
    assumed = recipe_for(agent).theory_constants
    best = plan(model)
    if best.status is Status.INFEASIBLE:
        raise ConfigError("true_constants: the constraints of the model cannot be met, so it has no optimal policy")
    known: dict[str, Any] = {}
    if "gap" in assumed and model.n_constraints:
        known["gap"] = _positive_gap(model, agent)
    if set(SPAN_CONSTANTS) & set(assumed):
        known |= _by_spans(model, spans_of(model, best))
    return {name: known[name] for name in assumed if name in known}


def _positive_gap(model: CMDP, agent: str) -> float:
    gap = slater_gap(model)
    if gap <= FEASIBLE * float(cost_units(model.costs[1:]).max()):
        raise ConfigError(
            f"true_constants: the theory of agent {quoted(agent)} needs a policy that stays below every threshold, and "
            "the model has none: its Slater gap is 0"
        )
    return gap


def _by_spans(model: CMDP, spans: Floats) -> dict[str, Any]:
    """Return the constants that follow from the spans (m+1,) of the optimal policy's biases.

    ``kappa`` bounds all spans, for costs scaled to [0, 1]; it is at least 1.
    """
    limited = spans[1:].tolist()
    return {
        "span": limited,
        "span_objective": float(spans[0]),
        "span_limited": limited[0] if len(limited) == 1 else limited,
        "kappa": float(np.max(spans / cost_units(model.costs), initial=1.0)),
    }
