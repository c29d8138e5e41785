"""Inspection of a model: sizes, structure, diameter, and the range of every cost."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from psconrl.answers.pareto import cost_ranges
from psconrl.base.arrays import Floats
from psconrl.base.sizes import INSPECTED_STATES
from psconrl.markov.evaluation import evaluate
from psconrl.markov.hitting_times import diameter
from psconrl.markov.structure import find_end_components, is_communicating, reachable
from psconrl.markov.unichain import is_unichain
from psconrl.model.cmdp import CMDP, need_model
from psconrl.planning.plan import Plan
from psconrl.planning.planner import plan_model
from psconrl.planning.proof.certificate import Status


@dataclass(frozen=True, eq=False)
class Inspection:
    """Properties of a model. Entries are None if they were not computed because the model is large."""

    n_states: int
    n_actions: int
    n_constraints: int
    transitions: int  # positive entries
    sparse: bool
    reachable: int
    communicating: bool
    weakly_communicating: bool
    unichain: bool | None
    end_components: int
    diameter: float | None
    status: Status
    policies: int  # number of policies in the plan's mixture; 1 if the plan is stationary
    spans: Floats  # (m+1,) span of every cost's bias under the plan; for a mixture the largest over its policies
    cost_names: tuple[str, ...]
    ranges: list[tuple[float, float]]  # least and largest average of every cost, in the user's sense

    def lines(self) -> list[tuple[str, str]]:
        """Return keys and values as text."""
        kind = "communicating" if self.communicating else "weakly communicating" if self.weakly_communicating else ""
        structure = kind or f"multichain ({self.end_components} end components)"
        unichain = {True: "yes", False: "no", None: "not settled (NP-hard in general)"}[self.unichain]
        distance = "not computed (large; ask with --diameter)" if self.diameter is None else f"{self.diameter:.8g}"
        spans = ", ".join(f"{n} {x:.6g}" for n, x in zip(self.cost_names, self.spans, strict=True))
        return [
            ("states", f"{self.n_states} ({self.reachable} reachable)"),
            ("actions", str(self.n_actions)),
            ("constraints", str(self.n_constraints)),
            ("transitions", f"{self.transitions} positive, {'sparse' if self.sparse else 'dense'}"),
            ("structure", structure),
            ("unichain", unichain),
            ("diameter", distance),
            ("plan", self.status.value + (f", mixture of {self.policies} policies" if self.policies > 1 else "")),
            ("span of the bias", spans),
        ]

    def record(self) -> dict[str, Any]:
        """Return plain data for JSON; an infinite diameter becomes the string "inf"."""
        infinite = self.diameter is not None and math.isinf(self.diameter)
        return {
            "n_states": self.n_states,
            "n_actions": self.n_actions,
            "n_constraints": self.n_constraints,
            "transitions": self.transitions,
            "sparse": self.sparse,
            "reachable": self.reachable,
            "communicating": self.communicating,
            "weakly_communicating": self.weakly_communicating,
            "unichain": self.unichain,
            "end_components": self.end_components,
            "diameter": "inf" if infinite else self.diameter,
            "status": self.status.value,
            "policies": self.policies,
            "spans": dict(zip(self.cost_names, self.spans.tolist(), strict=True)),
            "ranges": dict(zip(self.cost_names, self.ranges, strict=True)),
        }


def inspect_model(
    cmdp: CMDP, always_diameter: bool = False, progress: Callable[[str], object] | None = None
) -> Inspection:
    """Compute sizes, structure, diameter, plan status and cost ranges of a model.

    ``progress``: called with a line of text before every step, for example ``print``.

    >>> import psconrl
    >>> inspect_model(psconrl.load("counterexample")).communicating
    True
    """
    need_model(cmdp, "inspect_model")
    report = progress or (lambda step: None)
    small = cmdp.n_states <= INSPECTED_STATES
    report("Plan")
    result = plan_model(cmdp)
    ranges = [(float(low), float(high)) for low, high in cost_ranges(cmdp, progress)]
    ranges = [(-high, -low) if cmdp.names.is_negated(i) else (low, high) for i, (low, high) in enumerate(ranges)]
    report("Structure and diameter")
    components = find_end_components(cmdp.transition, cmdp.available).number
    return Inspection(
        n_states=cmdp.n_states,
        n_actions=cmdp.n_actions,
        n_constraints=cmdp.n_constraints,
        transitions=cmdp.transition.n_possible,
        sparse=cmdp.is_sparse,
        reachable=int(reachable(cmdp).size),
        communicating=is_communicating(cmdp),
        weakly_communicating=components == 1,
        unichain=is_unichain(cmdp) if small else None,
        end_components=components,
        diameter=diameter(cmdp) if small or always_diameter else None,
        status=result.status,
        policies=1 if result.mixture is None else len(result.mixture),
        spans=spans_of(cmdp, result),
        cost_names=cmdp.cost_names,
        ranges=ranges,
    )


def spans_of(cmdp: CMDP, plan: Plan) -> Floats:
    """Return the span (m+1,) of every cost's bias under a plan; for a mixture the largest over its policies."""
    played = [plan.policy] if plan.mixture is None else list(plan.mixture.policies)
    return np.asarray(np.max([np.ptp(evaluate(cmdp, policy).biases, axis=1) for policy in played], axis=0))
