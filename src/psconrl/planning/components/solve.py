"""Solve a model with several end components for a candidate: policies, shares and proof."""

from psconrl.markov.structure import EndComponents
from psconrl.model.cmdp import CMDP
from psconrl.planning.candidate import Candidate
from psconrl.planning.components.oracle import ComponentsOracle
from psconrl.planning.components.stationary import stationary
from psconrl.planning.mixture.column_generation import Follow, mix
from psconrl.planning.problem import Problem

NOTE = "several end components, each planned on its own"


def solve_components(part: CMDP, problem: Problem, parts: EndComponents, follow: Follow | None = None) -> Candidate:
    """Return the cheapest mixture of policies of the whole model, and a stationary policy that may match it."""
    oracle = ComponentsOracle(problem, part.initial, parts)
    found = mix(oracle, problem.thresholds, least_excess=True, follow=follow)
    w = found.weights
    unit = w[0] if found.feasible else 1.0
    policies = tuple(answer.policy for answer in found.answers)
    dual = oracle.proof(w / unit, w[1:] / unit)
    occupancy, policy = stationary(part, problem, policies, found.shares, w)
    return Candidate(found.feasible, occupancy, policy, dual, policies, "mixture", NOTE, found.shares)
