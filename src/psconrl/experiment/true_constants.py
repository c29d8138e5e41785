"""The constants of a model that the theory of an agent assumes to be known, for the spec key ``true_constants``.

An agent names them in its class attribute ``theory_constants``. They are options of its constructor.
"""

from collections.abc import Collection
from typing import Any

import numpy as np

from psconrl.answers.inspection import spans_of
from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError
from psconrl.learning.registry import recipe_for, with_hints
from psconrl.model.cmdp import CMDP
from psconrl.planning.planner import plan_model
from psconrl.planning.proof.certificate import Status
from psconrl.planning.scaling import cost_units
from psconrl.planning.slater import slater_gap
from psconrl.planning.tolerances import FEASIBLE

SPAN_CONSTANTS = ("span", "span_objective", "span_limited", "kappa")


def need_assumed(agent: str, chosen: Collection[str]) -> None:
    """Raise an error if an agent has no constants that can be computed, or if its options contradict them."""
    assumed = recipe_for(agent).theory_constants
    if not assumed:
        raise ConfigError(
            f"true_constants: the theory of agent {quoted(agent)} assumes no constant that can be computed from a model"
        )
    for option in sorted(set(assumed) & set(chosen)):
        raise ConfigError(f"option {option} and true_constants contradict each other")


def true_constants(
    model: CMDP, agent: str, *, known_costs: bool = True, emission: str = "deterministic"
) -> dict[str, Any]:
    """Return the true values of the constants that the theory of an agent assumes, as options of the agent.

    ``known_costs``: whether the agent knows the costs. If not, it may scale them by the ranges that
    it is given, which may depend on the ``emission``.
    """
    recipe = recipe_for(agent)
    best = plan_model(model)
    if best.status is Status.INFEASIBLE:
        raise ConfigError("true_constants: the constraints of the model cannot be met, so it has no optimal policy")
    known: dict[str, Any] = {}
    if "gap" in recipe.theory_constants and model.n_constraints:
        known["gap"] = _positive_gaps(model, agent)
    if set(SPAN_CONSTANTS) & set(recipe.theory_constants):
        hints = {} if known_costs else with_hints(agent, model, {}, emission)
        units = np.ptp(hints["ranges"], axis=1) if "ranges" in hints else cost_units(model.costs)
        known |= _by_spans(spans_of(model, best), units)
    return {name: known[name] for name in recipe.theory_constants if name in known}


def _positive_gaps(model: CMDP, agent: str) -> float | list[float]:
    """Return the Slater gap in the units of every constrained cost; a number if there is one."""
    share = min(slater_gap(model), 1.0)  # infinite if no pair violates a constraint, and then no multiplier is needed
    if share <= FEASIBLE:
        raise ConfigError(
            f"true_constants: the theory of agent {quoted(agent)} needs a policy that stays below every threshold, and "
            "the model has none: its Slater gap is 0"
        )
    return _one_or_list(share * cost_units(model.costs[1:]))


def _by_spans(spans: Floats, units: Floats) -> dict[str, Any]:
    """Return the constants that follow from the spans (m+1,) of the optimal policy's biases.

    ``kappa`` bounds all spans, for costs in their ``units``; it is at least 1.
    """
    return {
        "span": spans[1:].tolist(),
        "span_objective": float(spans[0]),
        "span_limited": _one_or_list(spans[1:]),
        "kappa": float(np.max(spans / units, initial=1.0)),
    }


def _one_or_list(amounts: Floats) -> float | list[float]:
    return float(amounts[0]) if amounts.size == 1 else amounts.tolist()
